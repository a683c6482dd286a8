"""`approve` and `reject`: what a person says to a run that waits for one."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from wakeful import Run, Scheduler
from wakeful.cli.app import RUNS, app
from wakeful.cli.failures import say_note
from wakeful.cli.finding import Ref, run_meant, run_with_id
from wakeful.cli.opening import change, server_of
from wakeful.cli.place import Db, chosen
from wakeful.cli.saying import say
from wakeful.cli.tables import Json, print_json
from wakeful.cli.words import plain
from wakeful.errors import ScheduleTriggerError

WAITING = ("waiting",)

Note = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="A note, stored with the answer.", show_default=False)
]


@app.command("approve", rich_help_panel=RUNS)
def approve(ctx: typer.Context, *, ref: Ref, note: Note = None, as_json: Json = False, db: Db = None) -> None:
    """Approve a run that waits for approval. It continues as a new run of the same slot."""
    place = chosen(ctx, db)

    async def work(scheduler: Scheduler) -> tuple[Run, Run, bool]:
        run = await _asking(scheduler, ref)
        again = await scheduler.approve_run(run.id, by=_who(), note=note)
        return await run_with_id(scheduler, again), run, server_of(scheduler) is not None

    again, run, served = change(place, work)
    if as_json:
        print_json(again.to_dict())
    else:
        say(f"{again.id} goes on where {run.id} of {plain(run.job)} asked")
    if not served:
        say_note(f"No server is running on {place}: nothing fires until one does (wakeful serve).")


@app.command("reject", rich_help_panel=RUNS)
def reject(ctx: typer.Context, *, ref: Ref, note: Note = None, as_json: Json = False, db: Db = None) -> None:
    """Reject a run that waits for approval. It is cancelled, and its job continues with the next slot."""

    async def work(scheduler: Scheduler) -> Run:
        run = await _asking(scheduler, ref)
        await scheduler.reject_run(run.id, by=_who(), note=note)
        return await run_with_id(scheduler, run.id)

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


def _who() -> str:
    """The person at this terminal, as far as the system knows."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "cli"
