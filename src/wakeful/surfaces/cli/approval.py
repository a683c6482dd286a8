"""`approvals`, `approve` and `reject`: which runs wait for a person, and what the person says to them."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful import Run, Scheduler
from wakeful.console.failures import say_note
from wakeful.console.finding import Ref, run_meant
from wakeful.console.humanize import brief, count, plain, relative
from wakeful.console.opening import change, now_ms, read, rights_here, server_of, shown_zone
from wakeful.console.output import say
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Cell, Column, HowMany, Json, print_json, print_table
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.actions import authorized
from wakeful.kernel.context import Rights
from wakeful.kernel.model.run import run_views
from wakeful.kernel.rules.approval import APPROVAL
from wakeful.store.runs import RunFilter
from wakeful.surfaces.cli.app import RUNS, app
from wakeful.triggers import to_ms
from wakeful.triggers.moments import read_moment

if TYPE_CHECKING:
    from datetime import tzinfo

    from wakeful.store.interface import Transaction

WAITING = ("waiting",)

Note = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="A note, stored with the answer.", show_default=False)
]


@app.command("approvals", rich_help_panel=RUNS)
def approvals(
    ctx: typer.Context,
    *,
    number: HowMany = 50,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List the runs that wait for approval, newest first."""
    place = chosen(ctx, db)
    nothing: list[Run] = []
    found = read(place, lambda scheduler: questions(scheduler, number + 1), nothing)
    shown, more = found[:number], len(found) > number
    if as_json:
        print_json([_as_data(run) for run in shown])
    elif shown:
        now, zone = now_ms(), shown_zone(place)
        print_table(
            [Column("JOB", 12), Column("RUN", 17), Column("SINCE", 12), Column("QUESTION", 20)],
            [[run.job, run.id, asked_when(run, now, zone), question_of(run)] for run in shown],
        )
        say_note("Answer with wakeful approve RUN or wakeful reject RUN.")
        if more:
            say_note(f"Shown: the newest {count(number, 'run')}. Use --limit N to see more.")
    else:
        say(f"No run in {place} waits for approval.")


async def questions(scheduler: Scheduler, number: int) -> list[Run]:
    """The runs that wait for a person, newest first."""
    wanted = RunFilter(status="waiting", phase=APPROVAL, limit=number, hidden=scheduler.host.hidden_kinds)

    def work(tx: Transaction) -> list[Run]:
        return run_views(tx, tx.runs.matching(wanted))

    return await scheduler.read(work)


def _as_data(run: Run) -> dict[str, Any]:
    return {
        "run": run.id,
        "job": run.job,
        "job_id": run.job_id,
        "asked_at": run.approvals[-1]["asked_at"] if run.approvals else None,
        "question": question_of(run),
        "approve": f"wakeful approve {run.id}",
        "reject": f"wakeful reject {run.id}",
    }


def question_of(run: Run) -> str:
    """What the run asks."""
    return str(run.approvals[-1]["question"]) if run.approvals else ""


def asked_when(run: Run, now: int, zone: tzinfo) -> str:
    """Since when the run waits for an answer."""
    asked = run.approvals[-1]["asked_at"] if run.approvals else None
    ms = read_moment(asked, "asked_at") if asked is not None else to_ms(run.due_at)
    return f"{relative(ms, now)}, {brief(ms, zone, now)}"


def question_facts(run: Run, now: int, zone: tzinfo) -> list[tuple[str, str | Cell]]:
    """What a run asks, since when, and how to answer it."""
    answers = f"wakeful approve {run.id}, or wakeful reject {run.id}"
    return [("asks", Cell(question_of(run), "yellow")), ("", f"{asked_when(run, now, zone)}; {answers}")]


@app.command("approve", rich_help_panel=RUNS)
def approve(ctx: typer.Context, *, ref: Ref, note: Note = None, as_json: Json = False, db: Db = None) -> None:
    """Approve a run that waits for approval. It continues as a new run; a schedule that an agent made begins.

    It cannot be undone.
    """
    place = chosen(ctx, db)

    async def work(scheduler: Scheduler) -> tuple[Run, Run, str, bool]:
        run = await _asking(scheduler, ref)
        again = await scheduler.transact(
            lambda tx, context: authorized.approve_run(tx, context, run.id, note), rights=_rights()
        )
        job = await scheduler.get_job(run.job_id)
        schedule = "" if job is None else job.schedule
        return again, run, schedule, server_of(scheduler) is not None

    again, run, schedule, served = change(place, work)
    if as_json:
        print_json(again.to_dict())
    elif again.id == run.id:  # it asked whether its job may run at all
        say(f"{plain(run.job)} is approved, and starts {plain(schedule)}")
    else:
        say(f"{again.id} continues where {run.id} of {plain(run.job)} asked")
    if not served:
        say_note(f"No server is running on {place}: nothing fires until one does (wakeful serve).")


@app.command("reject", rich_help_panel=RUNS)
def reject(ctx: typer.Context, *, ref: Ref, note: Note = None, as_json: Json = False, db: Db = None) -> None:
    """Reject a run that waits for approval. It is cancelled, and its job continues as scheduled; one that an agent
    asked for is removed.

    It cannot be undone.
    """

    async def work(scheduler: Scheduler) -> Run:
        run = await _asking(scheduler, ref)
        return await scheduler.transact(
            lambda tx, context: authorized.reject_run(tx, context, run.id, note), rights=_rights()
        )

    run = change(chosen(ctx, db), work)
    if as_json:
        print_json(run.to_dict())
    else:
        say(f"{run.id} of {plain(run.job)} was rejected")


async def _asking(scheduler: Scheduler, ref: str) -> Run:
    run = await run_meant(scheduler, ref, WAITING)
    if run is None:
        raise ScheduleTriggerError(f"{ref} does not wait for approval.", {"job": ref, "reason": "no_question"})
    return run


def _rights() -> Rights:
    return rights_here()._replace(caller=_who())


def _who() -> str:
    """The person at this terminal, as far as the system knows."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "cli"
