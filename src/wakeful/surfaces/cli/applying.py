"""`plan` and `apply`: show and apply the difference between a configuration file and the store."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from wakeful import Scheduler
from wakeful.console.failures import say_note
from wakeful.console.humanize import count, money
from wakeful.console.opening import change, now_ms, read, say_undo, server_of, user_name
from wakeful.console.output import say, say_text
from wakeful.console.store_location import Db, StoreLocation, given_store, place_beside
from wakeful.console.tables import Json, print_json
from wakeful.domains import domains
from wakeful.domains.agents.naming import AGENT
from wakeful.kernel.domain import Applicable, FileChanges
from wakeful.kernel.domain import load as load_reference
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.surfaces.cli.checking import File, budget_notes, config_named
from wakeful.surfaces.cli.folding import folded_wakes

if TYPE_CHECKING:
    from wakeful.config.entries import FleetFile
    from wakeful.config.loading import Loaded
    from wakeful.domains.files.planning import DesiredJob, OwnedJob, Plan, PlanContext
    from wakeful.foresight.adding import Added
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.surfaces.cli.comparing import Comparison

CHANGES = 5  # what `plan` exits with where there is something to do


@app.command("plan", rich_help_panel=SERVER)
def plan(
    ctx: typer.Context,
    *,
    file: File = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Compare a week before and after the change.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Show what apply would change, and change nothing. Exits with 5 if there is something to change."""
    from wakeful.domains.files.applying import of_another_file, plan_fleet, ready_fleet, terms_of
    from wakeful.domains.files.planning import make_plan

    loaded, place = _file_and_place(ctx, file, db, "plan")
    wanted = loaded.jobs

    async def work(scheduler: Scheduler) -> Whole:
        fleet, terms = ready_fleet(scheduler, wanted), terms_of(wanted, scheduler.clock.now())
        sections = _sections(scheduler, loaded)

        def look(tx: Transaction) -> Whole:
            jobs = plan_fleet(tx, fleet, terms)
            found = Whole(jobs, _merged([section.plan(tx) for section in sections]), _added(tx, jobs, wanted, terms))
            why = of_another_file(tx, fleet, jobs)
            return found if why is None else found.noting(why)

        return await scheduler.read(look)

    nothing = Whole(make_plan([], [], terms_of(wanted, now_ms())), FileChanges())
    if place.exists:
        found = read(place, work, nothing)
    else:
        scheduler = Scheduler(place.url)
        jobs = make_plan(ready_fleet(scheduler, wanted).wanted, [], terms_of(wanted, now_ms()))
        others = _merged([section.plan(None) for section in _sections(scheduler, loaded)])
        found = Whole(jobs, others, _added(None, jobs, wanted, terms_of(wanted, now_ms())))
    if simulate and not found.is_empty and not found.others.wrong:
        from wakeful.surfaces.cli.comparing import compare

        found = found._replace(simulated=compare(place, loaded))
    _report(found, as_json=as_json)
    if found.others.wrong:
        raise typer.Exit(1)
    if not found.is_empty:
        raise typer.Exit(CHANGES)


@app.command("apply", rich_help_panel=SERVER)
def apply(
    ctx: typer.Context,
    *,
    file: File = None,
    yes: Annotated[bool, typer.Option("--yes", help="Also if it removes more than half of the file's jobs.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Apply the jobs and workflows of a file, in one transaction. Others are left alone."""
    from wakeful.domains.files.applying import apply_fleet, ready_fleet, terms_of

    loaded, place = _file_and_place(ctx, file, db, "apply")
    wanted = loaded.jobs

    async def work(scheduler: Scheduler) -> tuple[Whole, dict[str, Any] | None]:
        fleet, terms = ready_fleet(scheduler, wanted), terms_of(wanted, scheduler.clock.now())
        sections = _sections(scheduler, loaded)

        def all_of_it(tx: Transaction, context: Context) -> Whole:
            jobs = apply_fleet(tx, context, fleet, terms, confirmed=yes, person=user_name())
            assert jobs is not None  # noqa: S101 - it is applied whether or not it was before
            return Whole(jobs, _merged([section.apply(tx, context) for section in sections]))

        return await scheduler.transact(all_of_it), server_of(scheduler)

    done, server = change(place._replace(config=None), work, create=True)
    _report(done, as_json=as_json)
    if not as_json:
        say_undo(done.jobs.action)
    if server is None:
        say_note(f"No server is running on {place}: nothing fires until one does (wakeful serve).")
    if done.others.wrong:
        raise typer.Exit(1)


class Whole(NamedTuple):
    """What applying a file does: to jobs, and to what else domains have in it."""

    jobs: Plan
    others: FileChanges
    adds: Added | None = None  # to a day
    simulated: Comparison | None = None

    @property
    def is_empty(self) -> bool:
        return self.jobs.is_empty and self.others.is_empty

    def noting(self, line: str) -> Whole:
        return self._replace(others=self.others._replace(notes=(*self.others.notes, line)))


def _file_and_place(
    ctx: typer.Context, file: Path | None, db: str | None, command: str
) -> tuple[Loaded, StoreLocation]:
    from wakeful.config.loading import load
    from wakeful.config.reading import ConfigError

    found = config_named(file, command)
    sections = [domain.section for domain in domains() if domain.apply is not None and domain.section is not None]
    needs = ("defaults", "fleet", "include", "limits", *sections)
    try:  # first: what it reads of the file is not read again
        place = place_beside(found, given_store(ctx, db), os.environ, Path.cwd())
    except ConfigError:
        load(found, needs=needs)  # which has all that is wrong with the file
        raise
    return load(found, needs=needs), place


def _sections(scheduler: Scheduler, loaded: Loaded) -> list[Applicable]:
    """What else there is to apply."""
    from wakeful.config.schema import section_of

    found: list[Applicable] = [
        load_reference(domain.apply)(scheduler, section_of(loaded.config, domain))
        for domain in domains()
        if domain.apply is not None
    ]
    return [*found, *budget_of(loaded)]


def budget_of(loaded: Loaded) -> list[Applicable]:
    """What all agents may use in a day, for a file that sets it or has agents."""
    from wakeful.domains.agents.budgets.applying import FileLimits
    from wakeful.domains.agents.budgets.rules import given_limits

    says_so = loaded.config.limits.model_fields_set & {"runs_per_day", "cost_per_day", "tokens_per_day"}
    if not says_so and not any(entry.new.kind == AGENT for entry in loaded.jobs.entries):
        return []
    notes = [f"{place}: {sentence}" for place, sentence in budget_notes(loaded, now_ms())]
    return [FileLimits(given_limits(**loaded.config.limits.of_agents(), zone=loaded.jobs.zone), notes)]


def _added(tx: Transaction | None, jobs: Plan, file: FleetFile, terms: PlanContext) -> Added:
    """What applying the file adds to a day."""
    from wakeful.foresight.adding import JobDelta, added
    from wakeful.kernel.rules.policy import trigger_of

    def stored(one: OwnedJob) -> JobDelta:
        return JobDelta(-1, one.job.name, one.job.kind, one.job.payload, trigger_of(one.job.trigger), one.job.id)

    def coming(one: DesiredJob, job_id: int | None = None) -> JobDelta:
        draft = one.draft
        return JobDelta(1, draft.name, draft.kind, draft.payload, draft.trigger, job_id)

    runs = [coming(one) for one in jobs.create if one.enabled]
    runs += [stored(one) for one in jobs.remove if one.state.enabled]
    for one in jobs.update:
        runs += [stored(one.owned)] if one.owned.state.enabled else []
        runs += [coming(one.wanted, one.owned.job.id)] if one.wanted.enabled else []
    return added(tx, runs, terms.now, file.zone)


def _merged(changes: Sequence[FileChanges]) -> FileChanges:
    return FileChanges(
        tuple(name for one in changes for name in one.create),
        {name: pairs for one in changes for name, pairs in one.update.items()},
        tuple(name for one in changes for name in one.remove),
        sum(one.unchanged for one in changes),
        tuple(line for one in changes for line in one.wrong),
        tuple(line for one in changes for line in one.notes),
    )


# -- in words ---------------------------------------------------------------------------------------------------------


def _report(found: Whole, *, as_json: bool) -> None:
    jobs, others = found.jobs, found.others
    if as_json:
        print_json(_as_data(found))
        return
    folded = _folded(jobs)
    for line in _lines(jobs, others, folded):
        say_text(line)
    if found.adds is not None and (words := found.adds.words(money)) is not None:
        say(words)
    if found.simulated is not None:
        from wakeful.surfaces.cli.comparing import report_comparison

        report_comparison(found.simulated)
    if found.is_empty:
        workflows = f" and {count(others.unchanged, 'workflow')}" if others.unchanged else ""
        say(f"Nothing to do: {count(jobs.unchanged, 'job')}{workflows} already as in the file.")
    for name in jobs.passed:
        say_note(f"{name} is not added: its time has passed.")
    for note in (*jobs.notes, *others.notes):
        say_note(note)
    if folded:
        say_note(f"{count(len(folded), 'wake job')} of agents not shown: use --json.")
    for wrong in others.wrong:
        say_note(f"not deployed: {wrong}")


def _folded(jobs: Plan) -> set[str]:
    """The jobs nobody wrote, by which agents are woken."""
    new = [one.draft.name for one in jobs.create if one.draft.kind == AGENT]
    return folded_wakes(new) | folded_wakes([one.job.name for one in jobs.remove if one.job.kind == AGENT])


def _lines(jobs: Plan, others: FileChanges, folded: Container[str]) -> Iterator[str]:
    for wanted in jobs.create:
        if wanted.draft.name in folded:
            continue
        off = "" if wanted.enabled else ", disabled"
        yield f"+ {wanted.draft.name}  {wanted.draft.trigger.brief()}{off}"
    yield from (f"+ {name}  workflow" for name in others.create)
    changed = [(update.owned.job.name, update.changes) for update in jobs.update]
    for name, pairs in [*changed, *others.update.items()]:
        yield f"~ {name}  " + "; ".join(f"{key}: {_word(old)} -> {_word(new)}" for key, (old, new) in pairs.items())
    gone = (*(one.job.name for one in jobs.remove), *others.remove)
    yield from (f"- {name}" for name in gone if name not in folded)


def _as_data(found: Whole) -> dict[str, Any]:
    jobs, others = found.jobs, found.others
    changed = [(one.owned.job.name, one.changes) for one in jobs.update]
    return {
        "create": [*(one.draft.name for one in jobs.create), *others.create],
        "update": [
            {"name": name, "changes": {key: list(pair) for key, pair in pairs.items()}}
            for name, pairs in [*changed, *others.update.items()]
        ],
        "remove": [*(one.job.name for one in jobs.remove), *others.remove],
        "unchanged": jobs.unchanged + others.unchanged,
        **({"adds": found.adds.to_dict()} if found.adds is not None and not found.is_empty else {}),
        **({"simulated": found.simulated.to_dict()} if found.simulated is not None else {}),
        **({"wrong": list(others.wrong)} if others.wrong else {}),
        **({"notes": [*jobs.notes, *others.notes]} if jobs.notes or others.notes else {}),
    }


def _word(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
