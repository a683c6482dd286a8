"""`pause` and `resume`: whether jobs start by themselves. Each can be undone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from wakeful import Job, Scheduler
from wakeful.console.failures import WrongUse, say_error, say_note
from wakeful.console.humanize import count
from wakeful.console.opening import change, now_ms, rights_here, say_undo, shown_zone
from wakeful.console.output import say
from wakeful.console.store_location import Db, StoreLocation, chosen
from wakeful.console.tables import Json, print_json
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.actions.selections import BulkResult, JobSelection, pause_many, resume_many
from wakeful.surfaces.cli.app import JOBS, app
from wakeful.surfaces.cli.jobs import all_found, names_of, next_start
from wakeful.triggers import to_ms

if TYPE_CHECKING:
    from wakeful.kernel.actions.holding import Held

T = TypeVar("T")
TOGETHER = 250  # jobs that are changed in one transaction

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Jobs, by name or id.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="Everything at once, without changing any job.")]


@app.command("pause", rich_help_panel=JOBS)
def pause(
    ctx: typer.Context,
    *,
    names: Names = None,
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="The reason, shown with the job.")] = None,
    everything: All = False,
    messages: Annotated[
        bool, typer.Option("--messages", help="With --all: send no messages either, as after a restore.")
    ] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Stop scheduled starts until the job is resumed. A run in progress finishes, and manual starts still work.

    With --all nothing starts at all, not even by hand, on any node, until wakeful resume --all.
    """
    _require_names(names, everything=everything)
    place = chosen(ctx, db)
    if everything:
        _pause_everything(place, note, messages=messages, as_json=as_json)
        return
    if messages:
        raise WrongUse("--messages goes with --all.")

    async def work(scheduler: Scheduler) -> tuple[list[Job], bool, str | None]:
        jobs = await all_found(scheduler, names or [])
        done = await _by_parts(scheduler, jobs, partial(pause_many, note=note))
        return jobs, scheduler.engine_holder() is not None, done.action

    jobs, served, action = change(place, work)
    if as_json:
        print_json(names_of(jobs, action))
        return
    _say_changed("Paused", jobs, shown_zone(place))
    running = [job.name for job in jobs if job.status == "running"]
    if running and served:
        verb, it = ("is", "it") if len(running) == 1 else ("are", "them")
        say_note(f"{', '.join(running)} {verb} running and will finish; wakeful cancel ends {it}.")
    say_undo(action)


@app.command("resume", rich_help_panel=JOBS)
def resume(
    ctx: typer.Context, *, names: Names = None, everything: All = False, as_json: Json = False, db: Db = None
) -> None:
    """Resume paused or disabled jobs. Errors are reset, and nothing is caught up.

    A one-shot that failed, or whose time passed while it was paused, runs at once. --all ends wakeful pause --all and
    nothing else: jobs that were paused by name stay paused.
    """
    _require_names(names, everything=everything)
    place = chosen(ctx, db)
    if everything:
        _resume_everything(place, as_json=as_json)
        return
    before: dict[str, str] = {}

    async def work(scheduler: Scheduler) -> tuple[list[Job], BulkResult]:
        jobs = await all_found(scheduler, names or [])
        for job in jobs:
            if job.over and job.status == "disabled" and job.trigger.type == "once":
                say_note(f"{job.name} did not succeed at its one time, which has passed: resuming it runs it now.")
        done = await _by_parts(scheduler, jobs, resume_many)
        resumed = [job for job in jobs if job.name not in done.refused]
        before.update({job.id: _was(job) for job in resumed})
        return [job for job in await _each(resumed, lambda job: scheduler.get_job(job.id)) if job is not None], done

    jobs, done = change(place, work)
    if as_json:
        print_json({**names_of(jobs, done.action), "refused": done.refused})
    else:
        _say_changed("Resumed", jobs, shown_zone(place), before=before)
        for refusal in done.refused.values():
            say_error(refusal)
        say_undo(done.action)
    if done.refused:
        raise typer.Exit(ScheduleTriggerError.exit_code)


def _pause_everything(place: StoreLocation, note: str | None, *, messages: bool, as_json: bool) -> None:
    async def work(scheduler: Scheduler) -> tuple[Held, int]:
        rights = rights_here(scheduler)
        done = await scheduler.server_side.hold_all(note, rights, messages=messages)
        return done, (await scheduler.get_summary()).open_runs

    done, runs = change(place, work)
    if as_json:
        print_json(_held(done))
        return
    was = "Everything was paused already" if done.action is None else "Paused everything"
    say(f"{was}: nothing starts until wakeful resume --all")
    if runs:
        say_note(f"{count(runs, 'run')} active or waiting; what runs will finish, and wakeful cancel ends it.")
    say_undo(done.action)


def _resume_everything(place: StoreLocation, *, as_json: bool) -> None:
    done = change(place, lambda scheduler: scheduler.server_side.release_all(rights_here(scheduler)))
    if as_json:
        print_json(_held(done))
        return
    if done.action is None:
        say("Everything was not paused: nothing to resume")
        say_note("Jobs that were paused by name are resumed by name: wakeful list --status paused shows them.")
    else:
        say("Resumed everything; jobs that were paused by name stay paused")
    say_undo(done.action)


def _held(done: Held) -> dict[str, Any]:
    return {
        "held": done.hold is not None,
        **(done.hold.to_dict() if done.hold is not None else {}),
        "action": done.action,
    }


def _was(job: Job) -> str:
    return "failing" if job.status == "idle" and job.consecutive_errors else job.status


def _what_follows(job: Job, now: int, zone: tzinfo, *, stopped: bool) -> str:
    """When a job that was resumed starts again; `stopped`: it was, and a server may have started it since."""
    if job.next_run_at is not None and to_ms(job.next_run_at) > now:
        far, at = next_start(job, now, zone)
        return f", down {far} · {at} without a ping" if job.monitor is not None else f", next {far} · {at}"
    if stopped and job.trigger.type == "once":
        return ", which starts now: its time has passed"
    return ""


def _require_names(names: list[str] | None, *, everything: bool) -> None:
    if bool(names) == everything:
        raise WrongUse("Name the jobs or use --all, not both." if names else "Name the jobs, or use --all.")


async def _by_parts(scheduler: Scheduler, jobs: list[Job], act: Callable[..., BulkResult]) -> BulkResult:
    """Change many, so many at a time that others get between. All of it is one action."""
    rights, changed, unchanged = rights_here(scheduler), list[str](), list[str]()
    refused, action = dict[str, str](), None
    for begin in range(0, len(jobs), TOGETHER):
        part = JobSelection(refs=tuple(job.id for job in jobs[begin : begin + TOGETHER]))
        done = await scheduler.transact(partial(act, many=part), rights=rights)
        changed, unchanged, refused = changed + done.changed, unchanged + done.unchanged, {**refused, **done.refused}
        action = action or done.action
    return BulkResult(changed, unchanged, refused, action)


async def _each(jobs: list[Job], act: Callable[[Job], Awaitable[T]]) -> list[T]:
    done: list[T] = []
    for begin in range(0, len(jobs), TOGETHER):
        done += await asyncio.gather(*[act(job) for job in jobs[begin : begin + TOGETHER]])
    return done


def _say_changed(verb: str, jobs: list[Job], zone: tzinfo, *, before: Mapping[str, str] | None = None) -> None:
    """`before`: what each resumed job was."""
    present = now_ms()
    for job in jobs:
        was = job.status if before is None else before[job.id]
        then = "" if before is None else _what_follows(job, present, zone, stopped=was in ("paused", "disabled"))
        unchanged = {"Paused paused": "was paused already", "Resumed idle": "was not paused"}.get(f"{verb} {was}")
        say(f"{job.name} {unchanged}{then}" if unchanged else f"{verb} {job.name}{then}")
