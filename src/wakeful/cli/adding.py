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
from wakeful.cli.request import HTTP, oddities, request_line, request_payload
from wakeful.cli.request import given as request_option
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
    kind, payload = _work(name, definition, ctx.meta["argv"])
    data = trigger_data(definition, now())
    assert data is not None  # noqa: S101 - required here
    trigger, options = trigger_from_data(data), job_options(definition)

    async def work(scheduler: Scheduler) -> tuple[Job, dict[str, Any] | None]:
        job_id = await scheduler.add_job(
            name, trigger, kind=kind, payload=payload, source="cli", if_exists=if_exists, **options
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


def _work(name: str, definition: Definition, argv: list[str] | None) -> tuple[str, dict[str, Any]]:
    """What the job does: its kind and payload."""
    option = request_option(definition)
    if argv is None and option is None:
        raise WrongUse(f"Say what to run, after --: wakeful add {shlex.quote(name)} --every 1h -- COMMAND")
    if argv is None:
        _refuse_beside_request(definition)
        return HTTP, request_payload(definition) or {}
    if option is not None:
        raise WrongUse(f"{option} and a command after -- are two things to do: give one of them.")
    return COMMAND, command_payload(definition, argv, Path.cwd()) or {}


def _refuse_beside_request(definition: Definition) -> None:
    for option in ("cwd", "env", "pass_env"):
        if getattr(definition, option) is not None:
            raise WrongUse(f"--{option.replace('_', '-')} is for commands: a request has none.")


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
    changes: dict[str, Any] = dict(job_options(definition, job.options))
    data = trigger_data(definition, now(), job.trigger.to_data())
    if data is not None:
        changes["trigger"] = trigger_from_data(data)
    command = command_payload(definition, argv, Path.cwd(), job.payload if job.kind == COMMAND else {})
    if command is not None and job.kind != COMMAND:
        raise InvalidJob(f"{job.name} is of kind {job.kind!r}: only jobs that run a command have one to change.")
    request = request_payload(definition, job.payload if job.kind == HTTP else {})
    if request is not None and job.kind != HTTP:
        raise InvalidJob(f"{job.name} is of kind {job.kind!r}: only jobs that send a request have one to change.")
    if command is not None or request is not None:
        changes["payload"] = command if command is not None else request
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
    for note in oddities(job.payload) if job.kind == HTTP else ():
        say_note(note)
    if server is None:
        say_note(f"No server is running on {place}: nothing fires until one does (wakeful serve).")


def _print_schedule(job: Job, times: list[int], verb: str) -> None:
    say(f"{verb} {job.name} ({job.id})")
    say(f"  runs   {job.trigger.describe()}")
    if job.kind == COMMAND:
        say(f"  what   {shlex.join(job.payload['argv'])}")
    elif job.kind == HTTP:
        say(f"  what   {request_line(job.payload)}")
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
