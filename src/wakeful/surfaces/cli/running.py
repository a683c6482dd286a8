"""`run` and `logs`: starting a job now, and reading what it says."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from wakeful import Job, Run, Scheduler
from wakeful.clock import sleep
from wakeful.console.failures import WrongUse, say_aside, say_error, say_note
from wakeful.console.finding import OPEN, Ref, job_named, offered_by_id, run_meant
from wakeful.console.following import POLL_S, WELL, refuse_later, say_begun, until_done
from wakeful.console.opening import change, now_ms, rights_here, server_of
from wakeful.console.output import PrintedOutput, say, say_text
from wakeful.console.running_here import run_in_this_process, runs_here
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Json, print_facts, print_json
from wakeful.errors import RunNotFound
from wakeful.kernel.actions import authorized
from wakeful.private_files import open_unlinked
from wakeful.surfaces.cli.app import RUNS, app
from wakeful.surfaces.cli.job_warnings import COMMAND, HTTP
from wakeful.surfaces.cli.request import request_line
from wakeful.surfaces.cli.runs import error_text, output_text, took

LOG_MOST = 1024 * 1024  # bytes of a log in one JSON value


@app.command("run", rich_help_panel=RUNS)
def run(
    ctx: typer.Context,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The job, by name or id.", show_default=False)],
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends, print its output, and exit with 0 or 1.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen, and change nothing.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Start a job now, within its lanes and limits. Without a running server, this command runs it itself.

    A start cannot be undone; --dry-run says what would happen.
    """
    place = chosen(ctx, db)

    async def work(scheduler: Scheduler) -> None:
        job = await job_named(scheduler, name)
        if dry_run:
            current = await scheduler.get_run(job.current_run) if job.current_run is not None else None
            _say_plan(job, scheduler, current if current is not None and current.status == "active" else None)
        elif server_of(scheduler) is None:
            ended = await run_in_this_process(scheduler, place, job)
            await _report(scheduler, ended.run, as_json=as_json)
            for note in ended.notes:
                say_note(note)
        else:
            run = await scheduler.transact(
                lambda tx, context: authorized.run_job(tx, context, job.id), rights=rights_here()
            )
            run_id = run.id
            if wait:
                await _report(scheduler, await until_done(scheduler, run_id), as_json=as_json, waited=True)
            elif job.options.get("approval"):
                asks = f"{run_id} asks before it starts: wakeful approve {run_id}, or wakeful reject {run_id}"
                print_json({"run": run_id}) if as_json else say(asks)
            else:
                await say_begun(scheduler, run_id, job.name, as_json=as_json)

    change(place, work)


def _say_plan(job: Job, scheduler: Scheduler, current: Run | None) -> None:
    """`current` is the run in progress, where it is in progress in a process."""
    server = server_of(scheduler)
    facts = [("job", f"{job.name} ({job.id})")]
    if job.kind == COMMAND:
        facts += [("command", shlex.join(job.payload["argv"])), ("cwd", job.payload.get("cwd", "."))]
    elif job.kind == HTTP:
        facts += [("request", request_line(job.payload))]
    else:
        facts += [("kind", job.kind)]
    by = f"the server, process {server.get('pid')}" if server is not None else "this command: no server is running"
    facts += [("run by", by)]
    if job.status == "paused":
        facts += [("paused", "yes, but it may be started by hand")]
    problem, cut_off = None, job.status == "running" and server is None and current is not None
    if cut_off:
        facts += [("before", f"{job.current_run} is recorded as crashed: its server ended while it ran")]
    elif job.status == "waiting":
        problem = f"{job.current_run} waits for approval: wakeful approve {job.current_run}, or reject it"
    elif job.status == "running":
        problem = f"it is already running ({job.current_run})"
    elif job.status == "disabled" and not job.over:
        problem = "it is disabled: resume it first"
    elif server is None and not runs_here(job.kind):
        problem = f"only a server that handles jobs of kind {job.kind!r} can run it"
    facts += [("can start", f"no, {problem}" if problem else "yes")]
    print_facts(facts)
    if problem:
        raise typer.Exit(4)


async def _report(scheduler: Scheduler, run: Run, *, as_json: bool, waited: bool = False) -> None:
    """How the run ended. Who waited for its end gets no success for one that waits for a person."""
    if as_json:
        print_json(run.to_dict())
    elif (reply := _reply(run)) is not None:
        PrintedOutput().put(reply)
    else:
        _print_output(run, scheduler.log_path(run.id))
    if run.outcome in WELL:
        if not as_json:
            say_aside(f"{run.job} ended as {run.outcome} after {took(run, now_ms())} ({run.id})")
        return
    if run.status == "waiting" and run.phase == "approval":
        say_note(f"{run.job} waits for approval: wakeful approve {run.id}, or wakeful reject {run.id}")
        if waited:
            raise typer.Exit(1)
        return
    await refuse_later(scheduler, run)
    why = f": {run.error}" if run.error else ""
    ended = f"ended as {run.outcome} after {took(run, now_ms())}" if run.outcome else f"is {run.status}"
    say_error(f"{run.job} {ended}{why} ({run.id})")
    raise typer.Exit(1)


def _reply(run: Run) -> str | None:
    """The reply of an agent: `logs` has all that its program printed."""
    output: Any = run.output
    said = output.get("reply") if run.kind == "agent" and isinstance(output, dict) else None
    return said if isinstance(said, str) and said else None


@app.command("logs", rich_help_panel=RUNS)
def logs(
    ctx: typer.Context,
    *,
    ref: Ref,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the output until the run ends.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Show the output of a run, or of a job's latest run, or a delivery."""
    if as_json and follow:
        raise WrongUse("--follow prints output as it arrives: leave out --json, or --follow.")
    place = chosen(ctx, db)
    if (show := offered_by_id("logs", ref)) is not None:
        show(place, ref, as_json=as_json)
        return

    async def work(scheduler: Scheduler) -> None:
        run = await run_meant(scheduler, ref, (*OPEN, "done") if follow else ("active", "waiting", "done", "queued"))
        if run is None:
            raise RunNotFound(f"{ref} has never run.")
        if as_json:
            print_json(_log_data(run, scheduler.log_path(run.id)))
        elif run.status == "done":
            any_output = _print_output(run, scheduler.log_path(run.id))
            if run.error:
                _say_end(run)
            elif not any_output:
                say_note(f"{run.id} of {run.job} ended as {run.outcome} and printed nothing.")
        else:
            await _follow(scheduler, run, follow=follow)

    change(place, work)


def _log_data(run: Run, left_behind: Path) -> dict[str, Any]:
    """The output as a text: of a long one the end, with `truncated` set."""
    text, truncated = output_text(run), False
    file = _opened(Path(run.log_file)) if run.log_file else None
    if file is None and (not text or run.status != "done"):
        file = _opened(left_behind)
    if file is not None:
        with file:
            size = file.seek(0, os.SEEK_END)
            truncated = size > LOG_MOST
            file.seek(max(0, size - LOG_MOST))
            text = file.read(LOG_MOST).decode("utf-8", "replace")
    facts = {"run": run.id, "job": run.job, "status": run.status, "outcome": run.outcome, "error": run.error}
    facts |= {"error_type": run.error_type, "trace": run.trace}
    return {**facts, "output": text, "truncated": truncated}


async def _follow(scheduler: Scheduler, run: Run, *, follow: bool) -> None:
    """Copy the live log as it grows. Once opened it can be read to its end, even when it is removed with the run."""
    file: IO[bytes] | None = None
    output = PrintedOutput()
    try:
        while True:
            latest = await scheduler.get_run(run.id)
            run = latest if latest is not None else run
            served = scheduler.engine_holder() is not None
            file = file or _opened(scheduler.log_path(run.id))
            _stay_inside(file)
            output.copy(file)
            if run.status == "done" or not follow or not served:
                break
            await sleep(POLL_S)
    finally:
        output.end()
        if file is not None:
            file.close()
    if run.status == "done" and file is None:
        _print_output(run, None)
    if run.status != "done":
        state = (
            f"is {run.status}"
            if served
            else f"was {run.status} when its server ended; the next one records how it ended"
        )
        say_note(f"{run.id} {state}{'' if follow or not served else '; -f follows it'}.")
    elif run.outcome not in WELL:
        _say_end(run)


def _stay_inside(file: IO[bytes] | None) -> None:
    """A log whose middle was left out is shorter than what was read of it: continue at its end."""
    if file is not None and file.tell() > (size := os.fstat(file.fileno()).st_size):
        file.seek(size)


def _say_end(run: Run) -> None:
    """How it ended, and where in its code: on standard error, besides what the run printed."""
    error = error_text(run)
    say_note(f"{run.id} ended as {run.outcome}{f': {error}' if error else ''}")
    if run.trace:
        say_text(run.trace.rstrip(), error=True)


def _print_output(run: Run, left_behind: Path | None) -> bool:
    """The full log where there is one, else what the run kept; a cancelled command's log may be all there is.

    False where there is nothing to print.
    """
    text = output_text(run)
    file = _opened(Path(run.log_file)) if run.log_file else None
    if file is None and not text and left_behind is not None:
        file = _opened(left_behind)
    if file is not None:
        with file:
            output = PrintedOutput()
            output.copy(file)
            output.end()
            return file.tell() > 0
    if text:
        PrintedOutput().put(text)
    return bool(text)


def _opened(path: Path) -> IO[bytes] | None:
    try:
        return open_unlinked(path)
    except FileNotFoundError:
        return None
