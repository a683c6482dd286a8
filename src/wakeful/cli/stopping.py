"""`remove`, `pause` and `resume`: jobs that start no more by themselves, and again do. Each can be undone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Container, Sequence
from datetime import tzinfo
from typing import Annotated, Any, TypeVar

import typer

from wakeful import Job, Scheduler
from wakeful.cli.acting import rights_here, say_undo
from wakeful.cli.app import JOBS, app
from wakeful.cli.failures import WrongUse, say_error, say_note
from wakeful.cli.finding import job_named
from wakeful.cli.jobs import next_words
from wakeful.cli.opening import change, now_ms
from wakeful.cli.place import Db, chosen
from wakeful.cli.saying import say
from wakeful.cli.tables import Json, print_json
from wakeful.cli.words import count, plain
from wakeful.cli.zones import shown_zone
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.actions.authorized import BulkResult, JobSelection
from wakeful.kernel.actions.drafts import check_note
from wakeful.triggers import to_ms

T = TypeVar("T")
TOGETHER = 250  # jobs that are changed in one transaction

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Jobs, by name or id.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="Every job.")]


@app.command("remove", rich_help_panel=JOBS)
def remove(
    ctx: typer.Context,
    *,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Jobs, by name or id.", show_default=False)],
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Remove jobs. A run in progress finishes, the history is kept, and undo restores them for ten minutes.

    Questions that wait for approval are cancelled, which cannot be undone.
    """
    place = chosen(ctx, db)
    jobs = change(place, lambda scheduler: _all_found(scheduler, names))
    if not yes and sys.stdin.isatty():
        listed = ", ".join(job.name for job in jobs)
        typer.confirm(f"Remove {plain(listed)}?", abort=True)

    async def work(scheduler: Scheduler) -> str | None:
        rights, action = rights_here(scheduler), None
        for job in jobs:
            action = await scheduler.server_side.remove_job(job.id, rights)
            if not as_json:
                say(f"Removed {job.name} ({job.id})")
        return action

    action = change(place, work)
    if as_json:
        print_json(_many(jobs, action))
    else:
        say_undo(action)


async def _all_found(scheduler: Scheduler, names: list[str]) -> list[Job]:
    """All of them, or none is touched."""
    jobs: dict[str, Job] = {}
    for name in names:
        job = await job_named(scheduler, name)
        jobs[job.id] = job
    return list(jobs.values())


@app.command("pause", rich_help_panel=JOBS)
def pause(
    ctx: typer.Context,
    *,
    names: Names = None,
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="The reason, shown with the job.")] = None,
    everything: All = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Stop scheduled starts until the job is resumed. A run in progress finishes, and manual starts still work."""
    _require_names(names, everything=everything)

    async def work(scheduler: Scheduler) -> tuple[list[Job], bool, str | None]:
        jobs = (
            await _all_found(scheduler, names or [])
            if not everything
            else [
                job
                # A disabled job stays disabled, so that resuming all does not revive it.
                for status in ("idle", "running", "waiting")
                for job in await scheduler.list_jobs(status=status)
            ]
        )
        rights, text = rights_here(scheduler), check_note(note)
        done = await _by_parts(jobs, lambda part: scheduler.server_side.pause_jobs(part, text, rights))
        return jobs, scheduler.engine_holder() is not None, done.action

    place = chosen(ctx, db)
    jobs, served, action = change(place, work)
    if as_json:
        print_json(_many(jobs, action))
        return
    _say_changed("Paused", jobs, shown_zone(place), everything=everything)
    running = [job.name for job in jobs if job.status == "running"]
    if running and served and not everything:
        verb, it = ("is", "it") if len(running) == 1 else ("are", "them")
        say_note(f"{', '.join(running)} {verb} running and will finish; wakeful cancel ends {it}.")
    say_undo(action)


@app.command("resume", rich_help_panel=JOBS)
def resume(
    ctx: typer.Context, *, names: Names = None, everything: All = False, as_json: Json = False, db: Db = None
) -> None:
    """Resume paused or disabled jobs. Errors are reset, nothing is caught up, and --all resumes every paused job.

    A one-shot that failed, or whose time passed while it was paused, runs at once.
    """
    _require_names(names, everything=everything)
    stopped: set[str] = set()

    async def work(scheduler: Scheduler) -> tuple[list[Job], BulkResult]:
        jobs = (
            await _all_found(scheduler, names or [])
            if not everything
            else [
                *await scheduler.list_jobs(status="paused"),
                *await scheduler.list_jobs(status="running", enabled=True),  # those may be paused, too
                *await scheduler.list_jobs(status="waiting", enabled=True),
            ]
        )
        for job in jobs:
            if job.over and job.status == "disabled" and job.trigger.type == "once":
                say_note(f"{job.name} did not succeed at its one time, which has passed: resuming it runs it now.")
        rights = rights_here(scheduler)
        done = await _by_parts(jobs, lambda part: scheduler.server_side.resume_jobs(part, rights))
        resumed = [job for job in jobs if job.name not in done.refused]
        stopped.update(job.id for job in resumed if job.status in ("paused", "disabled"))
        if everything:
            return resumed, done
        return [job for job in await _each(resumed, lambda job: scheduler.get_job(job.id)) if job is not None], done

    place = chosen(ctx, db)
    jobs, done = change(place, work)
    if as_json:
        print_json({**_many(jobs, done.action), "refused": done.refused})
    else:
        _say_changed("Resumed", jobs, shown_zone(place), everything=everything, stopped=stopped)
        for refusal in done.refused.values():
            say_error(refusal)
        say_undo(done.action)
    if done.refused:
        raise typer.Exit(ScheduleTriggerError.exit_code)


def _many(jobs: Sequence[Job], action: str | None) -> dict[str, Any]:
    """Which jobs were changed, as the API says it, and by which id that can be undone."""
    return {"count": len(jobs), "names": [job.name for job in jobs], "action": action}


def _what_follows(job: Job, now: int, zone: tzinfo, *, stopped: bool) -> str:
    """When a job that was resumed starts again; `stopped`: it was, and a server may have started it since."""
    if job.next_run_at is not None and to_ms(job.next_run_at) > now:
        return f", next {' · '.join(next_words(job, now, zone))}"
    if stopped and job.trigger.type == "once":
        return ", which starts now: its time has passed"
    return ""


def _require_names(names: list[str] | None, *, everything: bool) -> None:
    if bool(names) == everything:
        raise WrongUse("Name the jobs, or say --all; not both." if names else "Name the jobs, or say --all.")


async def _by_parts(jobs: list[Job], act: Callable[[JobSelection], Awaitable[BulkResult]]) -> BulkResult:
    """Change many, so many at a time that others get between."""
    changed, unchanged, refused, action = list[str](), list[str](), dict[str, str](), None
    for begin in range(0, len(jobs), TOGETHER):
        done = await act(JobSelection(refs=tuple(job.id for job in jobs[begin : begin + TOGETHER])))
        changed, unchanged, refused = changed + done.changed, unchanged + done.unchanged, {**refused, **done.refused}
        action = action or done.action
    return BulkResult(changed, unchanged, refused, action)


async def _each(jobs: list[Job], act: Callable[[Job], Awaitable[T]]) -> list[T]:
    done: list[T] = []
    for begin in range(0, len(jobs), TOGETHER):
        done += await asyncio.gather(*[act(job) for job in jobs[begin : begin + TOGETHER]])
    return done


def _say_changed(verb: str, jobs: list[Job], zone: tzinfo, *, everything: bool, stopped: Container[str] = ()) -> None:
    if everything:
        say(f"{verb} {count(len(jobs), 'job')}")
        return
    present = now_ms()
    for job in jobs:
        then = _what_follows(job, present, zone, stopped=job.id in stopped) if verb == "Resumed" else ""
        already = verb == "Paused" and job.status == "paused"  # as it was before
        say(f"{job.name} was paused already" if already else f"{verb} {job.name}{then}")
