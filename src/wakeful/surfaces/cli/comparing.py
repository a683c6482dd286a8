"""`plan --simulate`: a week as the jobs are, next to a week as the file has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.console.humanize import count, money
from wakeful.console.output import say
from wakeful.console.tables import Column, print_table
from wakeful.foresight.question import SimulationRequest
from wakeful.foresight.simulating import Simulation, simulate
from wakeful.surfaces.cli.foreseeing import applying, copy_of, setup_of

if TYPE_CHECKING:
    from wakeful.config.loading import Loaded
    from wakeful.console.store_location import StoreLocation

SHOWN = 20
COLUMNS = [Column("JOB", 10), Column("RUNS", 6), Column("SKIPPED", 6)]


class Comparison(NamedTuple):
    """The same week twice."""

    before: Simulation
    after: Simulation

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        sides = (self.before, self.after)
        return {name: {"runs": one.total, **one.tail()} for name, one in zip(("before", "after"), sides, strict=True)}

    def rows(self) -> list[list[str]]:
        """The jobs that do something else after than before."""
        known = [{job.name: (job.runs, sum(job.skipped.values())) for job in one.jobs} for one in self]
        names = sorted({*known[0], *known[1]})
        pairs = [(name, known[0].get(name, (0, 0)), known[1].get(name, (0, 0))) for name in names]
        return [
            [name, f"{before[0]} -> {after[0]}", f"{before[1]} -> {after[1]}"]
            for name, before, after in pairs
            if before != after
        ]


def compare(place: StoreLocation, loaded: Loaded) -> Comparison:
    """Simulate a week without and with the file, from the same moment."""
    snapshot, setup = copy_of(place), setup_of(place, loaded)
    return Comparison(
        simulate(snapshot, SimulationRequest(), setup),
        simulate(snapshot, SimulationRequest(), setup, prepare=applying(loaded)),
    )


def report_comparison(found: Comparison) -> None:
    """In words: the sums, what changes for which job, and the notes that come with the file."""
    before, after = found
    say(f"Simulated for 7 days: {count(before.total, 'run')} before, {count(after.total, 'run')} after.")
    if before.cost.high or after.cost.high:
        say(f"Cost: about {money(before.cost.expected)} before, {money(after.cost.expected)} after.")
    rows = found.rows()
    if rows:
        print_table(COLUMNS, rows[:SHOWN])
    if len(rows) > SHOWN:
        say(f"and {count(len(rows) - SHOWN, 'more job')}: --json has them all")
    known = {(note.kind, note.job) for note in before.notes}
    for note in [one for one in after.notes if (one.kind, one.job) not in known][:SHOWN]:
        say(f"! {note.text}")
