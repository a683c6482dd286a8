"""`add` and `edit`: saying what runs when."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful import Job, Scheduler
from wakeful.cli.app import JOBS, WithCommand, app
from wakeful.cli.definition import Definition, command_payload, job_options, takes_definition, trigger_data
from wakeful.cli.failures import WrongUse, say_note
from wakeful.cli.finding import job_named
from wakeful.cli.opening import change, now, now_ms, server_of
from wakeful.cli.place import Db, Place, chosen
from wakeful.cli.saying import say
from wakeful.cli.tables import Json, print_json
from wakeful.cli.words import relative, stamp, zone_of
from wakeful.errors import InvalidJob, JobExists
from wakeful.triggers import iso, to_ms, trigger_from_data

COMMAND = "command"
SHOWN = 3  # how many next times are shown

Name = Annotated[str, typer.Argument(metavar="NAME", help="The job's name or id.", show_default=False)]


@app.command("add", cls=WithCommand, rich_help_panel=JOBS)
@takes_definition
def add(
    ctx: typer.Context,
    *,
    name: Name,
    definition: Definition,
    if_exists: Annotated[
        str, typer.Option("--if-exists", metavar="error|update|keep", help="What to do when the name is taken.")
    ] = "error",
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Add a job that runs a command: wakeful add backup --cron "0 2 * * *" -- ./backup.sh --full"""
    place = chosen(ctx, db)
    argv = ctx.meta["argv"]
    if argv is None:
        raise WrongUse(f"Say what to run, after --: wakeful add {shlex.quote(name)} --every 1h -- COMMAND")
    data = trigger_data(definition, now())
    payload = command_payload(definition, argv, Path.cwd())
    assert data is not None and payload is not None  # noqa: S101, PT018 - both are required here
    trigger, options = trigger_from_data(data), job_options(definition)

    async def work(scheduler: Scheduler) -> tuple[Job, dict[str, Any] | None]:
        job_id = await scheduler.add_job(
            name, trigger, kind=COMMAND, payload=payload, source="cli", if_exists=if_exists, **options
        )
        return await job_named(scheduler, job_id), server_of(scheduler)

    try:
        job, server = change(place, work, create=True)
    except JobExists:
        raise JobExists(
            f"A job named {name!r} already exists: choose another name, change it with wakeful edit, "
            "or say --if-exists update."
        ) from None
    _report(job, server, place, as_json=as_json, verb="Added")


@app.command("edit", cls=WithCommand, rich_help_panel=JOBS)
@takes_definition
def edit(
    ctx: typer.Context,
    *,
    name: Name,
    definition: Definition,
    new_name: Annotated[str | None, typer.Option("--name", metavar="NEW", help="A new name.")] = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Change the given options of a job and leave the rest. "none" resets an option to its default."""
    place = chosen(ctx, db)
    argv = ctx.meta["argv"]

    async def work(scheduler: Scheduler) -> tuple[Job, bool, dict[str, Any] | None]:
        job = await job_named(scheduler, name)
        changes = _changes(job, definition, argv)
        if new_name is not None:
            changes["name"] = new_name
        if not changes:
            raise WrongUse(f"Say what to change about {job.name}: see wakeful edit --help.")
        changed = await scheduler.update_job(job.id, revision=job.revision, **changes)
        return changed, changed.revision != job.revision, server_of(scheduler)

    job, moved, server = change(place, work)
    _report(job, server, place, as_json=as_json, verb="Changed" if moved else "Nothing to change in")


def _changes(job: Job, definition: Definition, argv: list[str] | None) -> dict[str, Any]:
    changes: dict[str, Any] = dict(job_options(definition))
    data = trigger_data(definition, now(), job.trigger.to_data())
    if data is not None:
        changes["trigger"] = trigger_from_data(data)
    old = job.payload if job.kind == COMMAND else {}
    payload = command_payload(definition, argv, Path.cwd(), old)
    if payload is not None:
        if job.kind != COMMAND:
            raise InvalidJob(f"{job.name} is of kind {job.kind!r}: only jobs that run a command have one to change.")
        changes["payload"] = payload
    return changes


# -- what was done, in words ------------------------------------------------------------------------------------------


def _report(job: Job, server: dict[str, Any] | None, place: Place, *, as_json: bool, verb: str) -> None:
    times = next_times(job, SHOWN)
    if as_json:
        print_json({**job.to_dict(), "upcoming": [iso(ms) for ms in times], "server_running": server is not None})
    else:
        _print_schedule(job, times, verb)
    if job.kind == COMMAND:
        _warn_about(job.payload)
    if server is None:
        say_note(f"No server is running on {place}: nothing fires until one does (wakeful serve).")


def _print_schedule(job: Job, times: list[int], verb: str) -> None:
    say(f"{verb} {job.name} ({job.id})")
    say(f"  runs   {job.trigger.describe()}")
    if job.kind == COMMAND:
        say(f"  what   {shlex.join(job.payload['argv'])}")
    present, zone = now_ms(), zone_of(job)
    for number, ms in enumerate(times):
        say(f"  {'' if number else 'next':<5}  {stamp(ms, zone)}  {relative(ms, present)}")
    if not times and job.status in ("paused", "disabled"):
        say(f"  next   not by time: it is {job.status} (wakeful resume {shlex.quote(job.name)})")


def next_times(job: Job, number: int) -> list[int]:
    """When the job starts next, as far as that is known: its armed start, then those after it."""
    # Later starts of an interval depend on when each run ends.
    known = 1 if job.trigger.type == "interval" else number
    return [to_ms(at) for at in job.upcoming(known)]


def _warn_about(payload: dict[str, Any]) -> None:
    """A program that cannot be found from here may exist where the server runs: worth a word, not a refusal."""
    program, cwd = payload["argv"][0], payload.get("cwd")
    if cwd is not None and not Path(cwd).is_dir():
        say_note(f"The directory {cwd} does not exist here.")
    if "/" in program:
        path = Path(cwd or ".", Path(program).expanduser() if program.startswith("~") else program)
        if program.startswith("~"):
            say_note(f"{program!r} begins with ~, which only a shell expands: write the whole path.")
        elif not path.exists():
            say_note(f"{program!r} does not exist in {cwd}." if program[0] != "/" else f"{program!r} does not exist.")
        elif not os.access(path, os.X_OK):
            say_note(f"{program!r} is not executable: chmod +x it.")
    elif shutil.which(program) is None:
        shell = " There is no shell: for one, write -- sh -c '...'." if any(c in program for c in " |;&<>$") else ""
        say_note(f"{program!r} was not found on PATH here.{shell}")
