"""`add` and `edit`: saying what runs when."""

from __future__ import annotations

import shlex
import sys
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from wakeful import Job, Scheduler
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.finding import job_named
from wakeful.console.humanize import need_seconds, next_times, relative, stamp, zone_of
from wakeful.console.opening import change, default_zone, now, now_ms, rights_here, server_of, shown_zone
from wakeful.console.output import Yes, ask_before_final, say
from wakeful.console.store_location import Db, StoreLocation, chosen
from wakeful.console.tables import Json, print_json
from wakeful.domains.agents.naming import AGENT
from wakeful.domains.monitors import MONITOR, rotate_key
from wakeful.errors import InvalidJob, JobExists
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.actions.jobs import add_jobs
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.actions.recording import note, origin_of
from wakeful.scheduler.jobs import IF_EXISTS
from wakeful.surfaces.cli.agent_schedules import agent_job_name, changed_schedule, refuse_beside_agent
from wakeful.surfaces.cli.app import JOBS, WithCommand, app
from wakeful.surfaces.cli.definition import (
    OF_KINDS,
    Definition,
    command_payload,
    given,
    job_options,
    own_kind,
    own_payload,
    refuse_beside_ping,
    request_payload,
    takes_definition,
    when_data,
)
from wakeful.surfaces.cli.job_warnings import COMMAND, HTTP, missing_predecessors, overwritten_note, warnings_about
from wakeful.surfaces.cli.monitoring import monitor_data, ping_address
from wakeful.surfaces.cli.request import request_line
from wakeful.triggers import iso, trigger_from_data
from wakeful.triggers.fields import RHYTHMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from wakeful.kernel.context import Context
    from wakeful.kernel.hooks import Draft
    from wakeful.store.interface import Transaction

SHOWN = 3  # how many next times are shown

Name = Annotated[str, typer.Argument(metavar="NAME", help="The job's name or id.", show_default=False)]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="What to call the job.", show_default=False)]


@app.command("add", cls=WithCommand, rich_help_panel=JOBS)
@takes_definition
def add(
    ctx: typer.Context,
    *,
    name: NewName,
    definition: Definition,
    if_exists: Annotated[
        str, typer.Option("--if-exists", metavar="error|update|keep", help="What to do when the name is taken.")
    ] = "error",
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Add a job that runs a command, sends a request or asks an agent.

    For example: wakeful add backup --cron "0 2 * * *" -- ./backup.sh --full
    """
    place = chosen(ctx, db)
    if if_exists not in IF_EXISTS:
        raise WrongUse(f"--if-exists is {', '.join(IF_EXISTS[:-1])} or {IF_EXISTS[-1]}, not {if_exists!r}.")
    make = _new_job(name, definition, ctx.meta["argv"], default_zone(place))

    async def work(scheduler: Scheduler) -> SaveResult:
        draft = scheduler.host.draft(await scheduler.read(make), "cli")
        done = await scheduler.transact(lambda tx, context: _put(tx, context, draft, if_exists), rights=rights_here())
        return done._replace(server=server_of(scheduler), url=await ping_address(scheduler, place, done.job))

    try:
        done = change(place, work, create=True)
    except JobExists:
        agent = definition.get("agent")
        taken = name if agent is None else agent_job_name(agent, name)
        raise JobExists(
            f"A job named {taken!r} already exists: choose another name, change it with wakeful edit, "
            "or use --if-exists update."
        ) from None
    _report(done, place, as_json=as_json)


def _new_job(name: str, definition: Definition, argv: list[str] | None, zone: str) -> Callable[[Transaction], NewJob]:
    """The job, once its agent can be looked up."""
    agent = definition.get("agent")
    if agent is not None:
        refuse_beside_agent(definition, argv)
    kind, payload = (AGENT, None) if agent is not None else _work(name, definition, argv)
    data = when_data(definition, now(), zone)
    assert data is not None  # noqa: S101 - required here
    trigger, options = trigger_from_data(data), job_options(definition)
    if agent is not None:
        from wakeful.domains.agents.ad_hoc_schedules import added_schedule  # loads much of what agents are

        prompt = definition.get("prompt")
        full = agent_job_name(agent, name)
        return lambda tx: added_schedule(tx, agent, full, trigger, prompt=prompt, options=options)
    new = NewJob(name, trigger, kind=kind, payload=payload, **options)
    return lambda _: new


def _put(tx: Transaction, context: Context, draft: Draft, if_exists: str) -> SaveResult:
    """Store the job; what that did is seen in the same transaction."""
    before = tx.jobs.by_name(draft.name)
    (job_id,) = add_jobs(tx, context, [draft], if_exists, context.zone())
    after = tx.jobs.by_id(job_id)
    assert after is not None  # noqa: S101 - just written
    job = Job(*after, tx.now)
    missing = missing_predecessors(tx, [job])
    if before is None:
        note(tx, origin_of(context), "add", after[0])
        return SaveResult(job, "created", [], missing)
    changed = differences(Job(*before, tx.now), job)
    action = "kept" if if_exists == "keep" else "updated" if changed else "unchanged"
    if action == "updated":
        note(tx, origin_of(context), "edit", after[0])
    return SaveResult(job, action, changed, missing)


def _note_edit(tx: Transaction, context: Context, job_id: str) -> None:
    """Keep who changed the job."""
    note(tx, origin_of(context), "edit", find_job(tx, job_id)[0])


def _work(name: str, definition: Definition, argv: list[str] | None) -> tuple[str, dict[str, Any] | None]:
    """What the job does: its kind and payload."""
    if "ping" in definition:
        refuse_beside_ping(definition, argv)
        return MONITOR, None
    if "prompt" in definition:
        raise WrongUse("--prompt goes with --agent AGENT.")
    if (own := own_kind(definition)) is not None:
        return _own_work(*own, definition, argv)
    of_request, of_command = given(HTTP, definition), given(COMMAND, definition)
    if argv is None and of_request is None:
        raise WrongUse(
            f"Give the command to run, after --: wakeful add {shlex.quote(name)} {_when(definition)} -- COMMAND"
        )
    if argv is None:
        if of_command is not None:
            raise WrongUse(f"{of_command} is for commands: a request has none.")
        if "url" not in definition:
            raise WrongUse(f"{of_request} goes with --url ADDRESS.")
        return HTTP, request_payload(definition) or {}
    if of_request is not None and "url" not in definition:
        raise WrongUse(f"{of_request} is for requests (--url ADDRESS): a command has none.")
    if of_request is not None:
        raise WrongUse("--url and a command after -- are two things to do: give one of them.")
    return COMMAND, command_payload(definition, argv, Path.cwd(), read_input=_input) or {}


def _own_work(kind: str, flag: str, definition: Definition, argv: list[str] | None) -> tuple[str, dict[str, Any]]:
    if argv is not None or "url" in definition:
        other = "--url" if argv is None else "a command after --"
        raise WrongUse(f"{flag} and {other} are two things to do: give one of them.")
    return kind, own_payload(kind, definition, Path.cwd()) or {}


def _when(definition: Definition) -> str:
    """The schedule that was given, to show a whole command with it; another one where there is none."""
    given = (rhythm.word for rhythm in RHYTHMS if rhythm.value is not None and rhythm.word in definition)
    return next((shlex.join((f"--{word}", definition[word])) for word in given), "--every 1h")


def _input() -> str:
    """What comes on standard input, for `--stdin -`."""
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        raise WrongUse("--stdin - needs text: what came on standard input is not UTF-8.") from None


@app.command("edit", cls=WithCommand, rich_help_panel=JOBS)
@takes_definition
def edit(
    ctx: typer.Context,
    *,
    name: Name,
    definition: Definition,
    new_name: Annotated[str | None, typer.Option("--name", metavar="NEW", help="A new name.")] = None,
    new_key: Annotated[
        bool,
        typer.Option("--rotate-key", help="Give a monitor a new key. The old one ends at once: it cannot be undone."),
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Change the given options of a job and leave the rest. "none" resets an option to its default."""
    place = chosen(ctx, db)
    argv, zone = ctx.meta["argv"], default_zone(place)
    if new_key:
        ask_before_final(f"{name} gets a new key, and pings with the old one are rejected.", yes=yes)

    async def work(scheduler: Scheduler) -> SaveResult:
        job = await job_named(scheduler, name)
        changes = _changes(job, definition, argv, zone)
        if new_name is not None:
            changes["name"] = new_name
        if not changes and not new_key:
            raise WrongUse(f"Say what to change about {job.name}: see wakeful edit --help.")
        changed = await scheduler.update_job(job.id, revision=job.revision, **changes) if changes else job
        if new_key:
            await rotate_key(scheduler, job.id)
        if new_key or changed.revision != job.revision:
            await scheduler.transact(lambda tx, context: _note_edit(tx, context, job.id), rights=rights_here())
        missing = await scheduler.read(lambda tx: missing_predecessors(tx, [changed]))
        defined = differences(job, changed)
        fields = [*defined, *(["key"] if new_key else [])]
        url, server = await ping_address(scheduler, place, changed), server_of(scheduler)
        undone = overwritten_note(changed) if defined else None
        return SaveResult(changed, "updated" if fields else "unchanged", fields, missing, server, undone, url)

    _report(change(place, work), place, as_json=as_json)


def _changes(job: Job, definition: Definition, argv: list[str] | None, zone: str) -> dict[str, Any]:
    changes: dict[str, Any] = dict(job_options(definition, job.options))
    data = when_data(definition, now(), zone, job.trigger.to_data())
    if data is not None:
        changes["trigger"] = trigger_from_data(data)
    if job.kind == AGENT or "agent" in definition or "prompt" in definition:
        changes = changed_schedule(job, definition, changes)
    if (own := own_kind(definition)) is not None:
        kind, flag = own
        if job.kind != kind:
            raise InvalidJob(f"{job.name} is of kind {job.kind!r}: {flag} is for jobs of kind {kind!r}.")
        changes["payload"] = own_payload(kind, definition, Path.cwd(), job.payload)
    before = job.payload if job.kind == COMMAND else {}
    command = command_payload(definition, argv, Path.cwd(), before, _input)
    if command is not None and job.kind != COMMAND:
        raise InvalidJob(f"{job.name} is of kind {job.kind!r}: only jobs that run a command have one to change.")
    request = request_payload(definition, job.payload if job.kind == HTTP else {})
    if request is not None and job.kind != HTTP:
        raise InvalidJob(f"{job.name} is of kind {job.kind!r}: only jobs that send a request have one to change.")
    if command is not None or request is not None:
        changes["payload"] = command if command is not None else request
    return changes


# -- what was done, in words ------------------------------------------------------------------------------------------


class SaveResult(NamedTuple):
    """What became of a job that was added or edited."""

    job: Job
    action: str  # created, updated, unchanged or kept
    changed: list[str]
    missing: set[str]  # predecessors that do not exist
    server: dict[str, Any] | None = None
    undone: str | None = None  # what takes the change back
    url: str | None = None  # where a monitor is pinged


_DONE = {"created": "Added", "updated": "Changed", "unchanged": "Nothing to change in", "kept": "Kept"}
_WORDS = {field.stored: field.name for fields in OF_KINDS.values() for field in fields if field.stored}


def differences(before: Job, after: Job) -> list[str]:
    """What is another now, in the words of the options."""
    old, new = before.to_dict(), after.to_dict()
    found = ["name"] if old["name"] != new["name"] else []
    found += ["schedule"] if old["trigger"] != new["trigger"] else []
    found += [name for name in ("kind", "owner", "source") if old[name] != new[name]]
    for part in ("payload", "options"):
        keys = dict.fromkeys([*(old[part] or {}), *(new[part] or {})])
        found += [_WORDS.get(key, key) for key in keys if (old[part] or {}).get(key) != (new[part] or {}).get(key)]
    return found


def _report(done: SaveResult, place: StoreLocation, *, as_json: bool) -> None:
    job, server = done.job, done.server
    times, warnings = next_times(job, SHOWN), warnings_about(job, done.missing)
    warnings += [done.undone] if done.undone is not None else []
    if as_json:
        did = {"action": done.action, "changed": done.changed, "warnings": warnings}
        upcoming = [iso(ms) for ms in times]
        print_json({**monitor_data(job, done.url), "upcoming": upcoming, "server_running": server is not None, **did})
    else:
        _print_schedule(done, times, zone_of(job, shown_zone(place)))
    for warning in warnings:
        say_note(warning)
    if server is None:
        say_note(f"No server is running on {place}: {_meanwhile(job)} (wakeful serve).")


def _meanwhile(job: Job) -> str:
    """What happens to a job while no server runs."""
    if job.trigger.type == "manual":
        return f"it runs with wakeful run {shlex.quote(job.name)}, and over HTTP once one does"
    return "nothing fires until one does"


def _print_schedule(done: SaveResult, times: list[int], zone: tzinfo) -> None:
    job = done.job
    as_it_was = " as it was" if done.action == "kept" else ""
    say(f"{_DONE[done.action]} {job.name} ({job.id}){as_it_was}")
    if done.changed:
        say(f"  new    {', '.join(done.changed)}")
    say(f"  {'is' if job.monitor is not None else 'runs':<5}  {job.schedule}")
    if job.monitor is not None:
        say(f"  ping   {done.url}")
        return
    if job.kind == COMMAND:
        say(f"  what   {shlex.join(job.payload['argv'])}")
    elif job.kind == HTTP:
        say(f"  what   {request_line(job.payload)}")
    elif job.kind == AGENT:
        say(f"  what   {job.payload['agent']} is asked{_prompt_of(job.payload)}")
    present, exact = now_ms(), need_seconds(times)
    for number, ms in enumerate(times):
        say(f"  {'' if number else 'next':<5}  {stamp(ms, zone, exact=exact)}  {relative(ms, present)}")
    if not times and job.status in ("paused", "done", "disabled"):
        way = "run" if job.over else "resume"
        say(f"  next   not by time: it is {job.status} (wakeful {way} {shlex.quote(job.name)})")


def _prompt_of(payload: dict[str, Any]) -> str:
    prompt = " ".join(str(payload.get("prompt") or "").split())
    return f": {prompt[:60]}{'...' if len(prompt) > 60 else ''}" if prompt else ""
