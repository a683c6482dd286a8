"""`ledger`: what became of every time a job was due."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from wakeful import Ledger, Scheduler, Slot, Tally
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.humanize import count, stamp
from wakeful.console.opening import change, now, read, rights_here, shown_zone
from wakeful.console.output import say
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Column, Json, print_json, print_sentence, print_table
from wakeful.kernel.views.ledger import read_since
from wakeful.surfaces.cli.app import TIME, app
from wakeful.surfaces.cli.when import read_when
from wakeful.triggers import to_ms

SHOWN = 20  # jobs in one table
COLUMNS = [
    Column("JOB", 10), Column("DUE", 4), Column("RAN", 4), Column("RUNNING", 7, spare=1), Column("WAITING", 7, spare=2),
    Column("PASSED", 6), Column("MERGED", 6, spare=3), Column("MISSING", 7), Column("UNACCOUNTED", 11, spare=4),
]  # fmt: skip


@app.command("ledger", rich_help_panel=TIME)
def ledger(
    ctx: typer.Context,
    *,
    ref: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="A job's name or id; else all jobs.", show_default=False)
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="A duration up to now, such as 7d, or a time.")
    ] = "7d",
    slot: Annotated[
        str | None, typer.Option("--slot", metavar="TIME", help="What became of this one time of the job.")
    ] = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Account for every time that jobs were due.

    Each ran, is running, waits, was passed over, was merged into another run, or is missing. All of them add up.
    """
    place = chosen(ctx, db)
    zone = shown_zone(place)
    if slot is not None:
        if ref is None:
            raise WrongUse("--slot goes with a job: wakeful ledger JOB --slot 2026-12-24T18:00")
        meant, job = read_when(slot, now=now(), zone=zone, option="--slot"), ref
        _print_slot(change(place, lambda scheduler: scheduler.get_slot(job, meant)), as_json=as_json)
        return

    async def work(scheduler: Scheduler) -> Ledger:
        job = await scheduler.get_job(ref) if ref is not None else None
        if job is not None and not job.trigger.timed:
            say_note(f"{job.name} starts {job.schedule}, not by time, so it has no slots: see wakeful runs.")
        return await scheduler.server_side.get_ledger(ref, partial(read_since, since), rights_here())

    read_since(since, 0)  # wrong use is reported without a store as well
    nothing = Ledger(now(), now(), Tally(), {})
    found = change(place, work) if ref is not None else read(place, work, nothing)
    if as_json:
        print_json(found.to_dict())
        return
    print_sentence(_sentence(found, stamp(to_ms(found.since), zone)))
    for name, reasons in (("waiting", found.total.waiting), ("passed over", found.total.passed_over)):
        for why, number in reasons.items():
            say(f"  {name}: {number} {why}")
    if len(found.jobs) > 1:
        print_table(COLUMNS, [_row(name, tally) for name, tally in found.worst(SHOWN)])
    if len(found.jobs) > SHOWN:
        say(f"and {count(len(found.jobs) - SHOWN, 'more job')}: --json has them all")


def _sentence(found: Ledger, since: str) -> str:
    tally = found.total
    if not tally.due:
        return f"Nothing came due since {since}."
    parts = [
        f"{tally.ran} ran", f"{tally.running} running", f"{sum(tally.waiting.values())} waiting",
        f"{sum(tally.passed_over.values())} passed over", f"{tally.merged} merged", f"{tally.missing} missing",
        f"{tally.unaccounted} unaccounted",
    ]  # fmt: skip
    return f"{count(tally.due, 'slot')} came due since {since}: {', '.join(parts)}."


def _row(name: str, tally: Tally) -> list[str]:
    waiting, passed = sum(tally.waiting.values()), sum(tally.passed_over.values())
    numbers = (tally.due, tally.ran, tally.running, waiting, passed, tally.merged, tally.missing, tally.unaccounted)
    return [name, *map(str, numbers)]


def _print_slot(slot: Slot, *, as_json: bool) -> None:
    if as_json:
        print_json(slot.to_dict())
        return
    print_sentence(slot.sentence)
    for run in slot.runs:
        say(f"  {run.id}  attempt {run.attempt}  {run.outcome or run.status}")
