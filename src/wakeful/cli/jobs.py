"""`list`, `show`, `remove`, `pause` and `resume`: jobs as they are."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful import Job, Run, Scheduler
from wakeful.cli.adding import COMMAND, next_times
from wakeful.cli.app import JOBS, app
from wakeful.cli.failures import WrongUse, say_error, say_note
from wakeful.cli.finding import Ref, job_named, job_or_run
from wakeful.cli.opening import change, now_ms, read
from wakeful.cli.place import Db, Place, chosen
from wakeful.cli.request import HTTP, request_facts
from wakeful.cli.runs import print_run, run_rows
from wakeful.cli.saying import say
from wakeful.cli.tables import Cell, Column, Json, JsonLines, coloured, print_facts, print_json, print_table
from wakeful.cli.words import ago, ahead, brief, count, plain, relative, stamp, zone_of
from wakeful.domains import hidden_kinds
from wakeful.errors import SchedulerError
from wakeful.store.jobs import STATUS_SQL, JobFilter
from wakeful.triggers import iso, to_ms

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

TOGETHER = 64  # changes that share a commit
FIRST_PAGE = 50  # jobs a listing shows by default
PAGE = 1_000  # jobs read at a time
RECENT = 5

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Jobs, by name or id.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="Every job.")]


@app.command("list", rich_help_panel=JOBS)
def list_jobs(
    ctx: typer.Context,
    *,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Only idle, running, paused or disabled ones.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Only jobs of this kind.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", metavar="OWNER", help="Only this owner's jobs.")] = None,
    match: Annotated[str | None, typer.Option("--match", metavar="TEXT", help="Only names with this text.")] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--limit",
            metavar="N",
            min=1,
            help="At most this many (default: 50; with --json: all).",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all of them.")] = False,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also jobs of internal kinds, such as deliveries.")
    ] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List jobs with their schedule, status and last result."""
    place = chosen(ctx, db)
    if status is not None and status not in STATUS_SQL:
        raise WrongUse(f"--status {status!r} is none of idle, running, paused and disabled.")
    if everything and number is not None:
        raise WrongUse("Say --all or --limit; not both.")
    hidden = () if internal else hidden_kinds()
    wanted = JobFilter(kind=kind, owner=owner, status=status, contains=match or None, hidden=hidden)
    most = number if number is not None or everything or as_json else FIRST_PAGE
    if as_json:
        lines = JsonLines()
        read(place, lambda scheduler: _each_page(scheduler, wanted, most, lambda jobs: lines.put(_data(jobs))), 0)
        lines.end()
    elif not read(place, lambda scheduler: _print_jobs(scheduler, wanted, most), 0):
        say(_nothing(place, filtered=wanted._replace(hidden=()) != JobFilter()))


def _data(jobs: list[Job]) -> list[dict[str, Any]]:
    return [job.to_dict() for job in jobs]


async def _each_page(
    scheduler: Scheduler, wanted: JobFilter, most: int | None, show: Callable[[list[Job]], None]
) -> int:
    """Show what is wanted, at most so many, a page at a time; how many there were. Only a few pages are kept."""
    shown, wanted = 0, wanted._replace(limit=PAGE if most is None else min(PAGE, most))
    jobs = await scheduler.look(partial(_page, wanted))
    while jobs:
        shown += len(jobs)
        left = PAGE if most is None else min(PAGE, most - shown)
        if not left or len(jobs) < (wanted.limit or 0):
            show(jobs)
            break
        wanted = wanted._replace(after=jobs[-1].name, limit=left)
        reading = scheduler.look(partial(_page, wanted))  # while this page is printed
        _, jobs = await asyncio.gather(asyncio.to_thread(show, jobs), reading)
    return shown


def _page(wanted: JobFilter, tx: Transaction) -> list[Job]:
    return [Job(*pair, tx.now) for pair in tx.jobs.matching(wanted)]


async def _print_jobs(scheduler: Scheduler, wanted: JobFilter, most: int | None) -> int:
    present = now_ms()
    shown = await _each_page(scheduler, wanted, most, lambda jobs: print_table(*job_rows(jobs, present)))
    if shown == most:
        more = await scheduler.look(lambda tx: tx.jobs.count(wanted)) - shown
        if more > 0:
            say_note(f"{count(more, 'more job')} not shown: use --limit N or --all to see more.")
    return shown


def job_rows(jobs: Sequence[Job], now: int) -> tuple[list[Column], list[list[str | Cell]]]:
    """Columns and rows of a listing of jobs."""
    columns = [
        Column("NAME", 12),
        Column("SCHEDULE", 20, spare=2),
        Column("STATUS", 8),
        Column("NEXT", 11),
        Column("AT", 13, spare=3),
        Column("LAST", 18, spare=1),
    ]
    rows: list[list[str | Cell]] = [
        [job.name, job.trigger.describe(), _status(job), *_next(job, now), _last(job, now)] for job in jobs
    ]
    return columns, rows


def _last(job: Job, now: int) -> Cell:
    if job.last_run_at is None or job.last_outcome is None:
        return Cell("")
    return Cell(f"{job.last_outcome} {ago(to_ms(job.last_run_at), now)}", coloured(job.last_outcome).style)


def _status(job: Job) -> Cell:
    return Cell("waiting", "blue") if job.status == "idle" and job.waiting_for is not None else coloured(job.status)


def _next(job: Job, now: int) -> tuple[str, str]:
    """How far the next start is, and when that is."""
    if job.waiting_for is not None and job.status == "idle":
        return "due", ""
    if job.next_run_at is None:
        return "-", ""
    ms = to_ms(job.next_run_at)
    return ahead(ms, now), brief(ms, zone_of(job), now)


def _nothing(place: Place, *, filtered: bool) -> str:
    if not place.exists:
        return f"No jobs: there is no store at {place} yet. Add one: wakeful add NAME --every 1h -- COMMAND"
    return f"No {'such ' if filtered else ''}jobs in {place}."


@app.command("show", rich_help_panel=JOBS)
def show(
    ctx: typer.Context,
    *,
    ref: Ref,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Show a job with its latest runs, a run with its output, or a delivery."""
    if ref.startswith("dlv_"):
        from wakeful.delivery.commands import show_delivery

        show_delivery(chosen(ctx, db), ref, as_json=as_json)
        return

    async def work(scheduler: Scheduler) -> tuple[Job | Run, list[Run]]:
        subject = await job_or_run(scheduler, ref)
        return subject, [] if isinstance(subject, Run) else await scheduler.get_run_log(subject.id, RECENT)

    job, runs = change(chosen(ctx, db), work)
    if isinstance(job, Run):
        print_run(job, as_json=as_json)
    elif as_json:
        upcoming = [iso(ms) for ms in next_times(job, RECENT)]
        print_json({**job.to_dict(), "upcoming": upcoming, "runs": [run.to_dict() for run in runs]})
    else:
        print_facts(_facts(job, now_ms(), next((run for run in runs if run.id == job.current_run), None)))
        if runs:
            say()
            print_table(*run_rows(runs, now_ms(), with_job=False))


def _facts(job: Job, now: int, current: Run | None) -> list[tuple[str, str | Cell]]:
    zone = zone_of(job)
    facts: list[tuple[str, str | Cell]] = [("name", job.name), ("id", job.id), ("runs", job.trigger.describe())]
    if job.kind == COMMAND:
        facts += [("command", shlex.join(job.payload["argv"]))]
        rest = {key: value for key, value in job.payload.items() if key != "argv"}
        facts += [(key, value if isinstance(value, str) else _text(value)) for key, value in rest.items()]
    elif job.kind == HTTP:
        facts += [(key, _text(value)) for key, value in request_facts(job.payload)]
    else:
        facts += [("kind", job.kind), ("payload", json.dumps(job.payload, ensure_ascii=False))]
    facts += [("option", f"{key}: {_text(value)}") for key, value in job.options.items()]
    facts += [("status", _status(job))]
    if current is not None and current.unstoppable is not None:
        facts += [("", Cell(f"{current.id} {current.unstoppable} and cannot be stopped", "red"))]
    if job.waiting_for is not None:
        facts += [("waits for", job.waiting_for)]
    times = next_times(job, 3)
    facts += [("" if number else "next", f"{stamp(ms, zone)}, {ahead(ms, now)}") for number, ms in enumerate(times)]
    if job.last_run_at is not None:
        ms = to_ms(job.last_run_at)
        facts += [("last", Cell(f"{job.last_outcome or 'running'}, {stamp(ms, zone)}, {relative(ms, now)}"))]
    if job.last_error:
        facts += [("last error", Cell(job.last_error, "red" if job.consecutive_errors else ""))]
    if job.consecutive_errors:
        facts += [("errors", f"{job.consecutive_errors} in a row")]
    if job.missed:
        facts += [("missed", count(job.missed, "slot"))]
    facts += [("note", note) for note in job.notes]
    return [*facts, ("made by", f"{job.source}{f' for {job.owner}' if job.owner else ''}, revision {job.revision}")]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@app.command("remove", rich_help_panel=JOBS)
def remove(
    ctx: typer.Context,
    *,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Jobs, by name or id.", show_default=False)],
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")] = False,
    db: Db = None,
) -> None:
    """Remove jobs. A run in progress finishes, and the history is kept."""
    place = chosen(ctx, db)
    jobs = change(place, lambda scheduler: _all_found(scheduler, names))
    if not yes and sys.stdin.isatty():
        listed = ", ".join(job.name for job in jobs)
        typer.confirm(f"Remove {plain(listed)}?", abort=True)

    async def work(scheduler: Scheduler) -> None:
        for job in jobs:
            await scheduler.remove_job(job.id)
            say(f"Removed {job.name} ({job.id})")

    change(place, work)


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
    db: Db = None,
) -> None:
    """Stop scheduled starts until the job is resumed. A run in progress finishes, and manual starts still work."""
    _require_names(names, everything=everything)

    async def work(scheduler: Scheduler) -> list[Job]:
        jobs = (
            await _all_found(scheduler, names or [])
            if not everything
            else [
                job
                for status in (
                    "idle",
                    "running",
                )  # a disabled job stays disabled, so that resuming all does not revive it
                for job in await scheduler.list_jobs(status=status)
            ]
        )
        await _each(jobs, lambda job: scheduler.pause_job(job.id, note))
        return jobs

    _say_changed("Paused", change(chosen(ctx, db), work), everything=everything)


@app.command("resume", rich_help_panel=JOBS)
def resume(ctx: typer.Context, *, names: Names = None, everything: All = False, db: Db = None) -> None:
    """Resume jobs from now on: errors are reset and nothing is caught up. --all resumes every paused job."""
    _require_names(names, everything=everything)
    failed: list[SchedulerError] = []

    async def work(scheduler: Scheduler) -> list[Job]:
        async def one(job: Job) -> Job | None:
            try:
                await scheduler.resume_job(job.id)
            except SchedulerError as error:
                failed.append(error)
                return None
            return await scheduler.get_job(job.id)

        jobs = (
            await _all_found(scheduler, names or [])
            if not everything
            else [
                *await scheduler.list_jobs(status="paused"),
                *await scheduler.list_jobs(status="running", enabled=True),  # those may be paused, too
            ]
        )
        return [job for job in await _each(jobs, one) if job is not None]

    _say_changed("Resumed", change(chosen(ctx, db), work), everything=everything)
    for error in failed:
        say_error(str(error))
    if failed:
        raise typer.Exit(failed[0].exit_code)


def _require_names(names: list[str] | None, *, everything: bool) -> None:
    if bool(names) == everything:
        raise WrongUse("Name the jobs, or say --all; not both." if names else "Name the jobs, or say --all.")


async def _each(jobs: list[Job], act: Any) -> list[Any]:
    done: list[Any] = []
    for begin in range(0, len(jobs), TOGETHER):
        done += await asyncio.gather(*[act(job) for job in jobs[begin : begin + TOGETHER]])
    return done


def _say_changed(verb: str, jobs: list[Job], *, everything: bool) -> None:
    if everything:
        say(f"{verb} {count(len(jobs), 'job')}")
        return
    present = now_ms()
    for job in jobs:
        when = f", next {' · '.join(_next(job, present))}" if verb == "Resumed" and job.next_run_at else ""
        say(f"{verb} {job.name}{when}")
    running = [job.name for job in jobs if job.status == "running"]
    if verb == "Paused" and running:
        say_note(f"{', '.join(running)} is running and will finish; wakeful cancel ends it.")
