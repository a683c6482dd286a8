"""`list`, `show` and `remove`: jobs as they are."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful import Job, Run, Scheduler
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.finding import Ref, job_named, job_or_run, offered_by_id
from wakeful.console.humanize import ago, ahead, brief, count, need_seconds, next_times, relative, stamp, zone_of
from wakeful.console.opening import change, now_ms, read, rights_here, say_undo, shown_zone, zones_of_runs
from wakeful.console.output import Yes, ask_before, say
from wakeful.console.store_location import Db, StoreLocation, chosen
from wakeful.console.tables import Cell, Column, Json, JsonLines, coloured, print_facts, print_json, print_table
from wakeful.domains import hidden_kinds
from wakeful.domains.agents.naming import AGENT
from wakeful.kernel.actions import authorized
from wakeful.kernel.model.job import job_views
from wakeful.kernel.rules.holding import hold_of, hold_words
from wakeful.kernel.rules.option_reading import write_duration
from wakeful.kernel.views.cut_off import CUT_OFF
from wakeful.store.jobs import STATUS_SQL, JobFilter
from wakeful.surfaces.cli.app import JOBS, app
from wakeful.surfaces.cli.approval import question_facts
from wakeful.surfaces.cli.folding import folded_note, is_folded_job
from wakeful.surfaces.cli.job_warnings import COMMAND, HTTP, returning_note
from wakeful.surfaces.cli.monitoring import monitor_data, monitor_facts, ping_address, state_cell
from wakeful.surfaces.cli.request import request_facts
from wakeful.surfaces.cli.runs import Zones, cut_off_ids, print_run, run_rows
from wakeful.threads import room
from wakeful.triggers import iso, to_ms

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

FIRST_PAGE = 50  # jobs a listing shows by default
PAGE = 1_000  # jobs read at a time
RECENT = 5


@app.command("list", rich_help_panel=JOBS)
def list_jobs(
    ctx: typer.Context,
    *,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATUS", help="Only idle, running, waiting, paused, done or disabled ones."),
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
    everything: Annotated[
        bool, typer.Option("--all", help="Show all of them, also those that agents have by themselves.")
    ] = False,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also jobs of internal kinds, such as deliveries.")
    ] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List jobs with their schedule, status and last result."""
    place = chosen(ctx, db)
    if status is not None and status not in STATUS_SQL:
        raise WrongUse(f"--status {status!r} is not a status: use idle, running, waiting, paused, done or disabled.")
    if everything and number is not None:
        raise WrongUse("Use --all or --limit, not both.")
    hidden = () if internal else hidden_kinds()
    wanted = JobFilter(kind=kind, owner=owner, status=status, contains=match or None, hidden=hidden)
    most = number if number is not None or everything or as_json else FIRST_PAGE
    if place.server:
        from wakeful.surfaces.cli.remote_views import print_jobs

        asked = {"kind": kind, "owner": owner, "status": status, "q": match, "internal": internal}
        print_jobs(place, asked, most, as_json=as_json)
        return
    folds = not (everything or match or kind or owner or status)
    if as_json:
        lines = JsonLines()
        read(place, lambda scheduler: _each_page(scheduler, wanted, most, lambda jobs: lines.put(_data(jobs))), 0)
        lines.end()
    elif not read(place, lambda scheduler: _print_jobs(scheduler, wanted, most, shown_zone(place), folds=folds), 0):
        say(_nothing(place, filtered=wanted._replace(hidden=()) != JobFilter()))


def _data(jobs: list[Job]) -> list[dict[str, Any]]:
    return [job.to_dict() for job in jobs]


async def _each_page(
    scheduler: Scheduler,
    wanted: JobFilter,
    most: int | None,
    show: Callable[[list[Job]], None],
) -> int:
    """Show what is wanted, at most so many, a page at a time; how many there were. Only a few pages are kept."""
    shown, wanted = 0, wanted._replace(limit=PAGE if most is None else min(PAGE, most))
    jobs = await scheduler.read(partial(_page, wanted))
    while jobs:
        shown += len(jobs)
        left = PAGE if most is None else min(PAGE, most - shown)
        if not left or len(jobs) < (wanted.limit or 0):
            show(jobs)
            break
        wanted = wanted._replace(after=jobs[-1].name, limit=left)
        reading = scheduler.read(partial(_page, wanted))  # while this page is printed
        _, jobs = await asyncio.gather(room("printing").call(show, jobs), reading)
    return shown


def _page(wanted: JobFilter, tx: Transaction) -> list[Job]:
    return job_views(tx, tx.jobs.matching(wanted))


async def _print_jobs(
    scheduler: Scheduler, wanted: JobFilter, most: int | None, zone: tzinfo, *, folds: bool = False
) -> int:
    present, cut_off, folded, passed = now_ms(), await cut_off_ids(scheduler), 0, dict[str, None]()

    def show(jobs: list[Job]) -> None:
        nonlocal folded
        kept = [job for job in jobs if not (folds and is_folded_job(job))]
        folded += len(jobs) - len(kept)
        passed.update(dict.fromkeys(job.passed_over for job in kept if job.passed_over is not None))
        if kept:
            print_table(*job_rows(kept, present, zone, cut_off))

    shown = await _each_page(scheduler, wanted, most, show)
    if shown and (hold := hold_of(await scheduler.read(lambda tx: tx.nodes.held()))) is not None:
        say_note(f"Everything is paused {hold_words(hold)}: nothing starts until wakeful resume --all.")
    for why in passed:
        say_note(f"{why}.")
    if folded:
        say_note(folded_note(folded, "wake job", "of agents"))
    if shown == most:
        more = await scheduler.read(lambda tx: tx.jobs.count(wanted)) - shown
        if more > 0:
            say_note(f"{count(more, 'more job')} not shown: use --limit N or --all to see more.")
    return shown


def job_rows(
    jobs: Sequence[Job], now: int, zone: tzinfo, cut_off: Container[str] = ()
) -> tuple[list[Column], list[list[str | Cell]]]:
    """Columns and rows of a listing of jobs; `zone`: of jobs without one, `cut_off`: runs whose server has ended."""
    columns = [
        Column("NAME", 12),
        Column("SCHEDULE", 20, spare=2),
        Column("STATUS", 8),
        Column("NEXT", 11),
        Column("AT", 13, spare=3),
        Column("LAST", 18, spare=1),
    ]
    exact = need_seconds(to_ms(job.next_run_at) if job.next_run_at is not None else None for job in jobs)
    rows: list[list[str | Cell]] = [
        [
            job.name,
            job.schedule,
            _status(job, cut_off),
            *next_start(job, now, zone, exact=exact),
            _last(job, now),
        ]
        for job in jobs
    ]
    return columns, rows


def _last(job: Job, now: int) -> Cell:
    if job.last_run_at is None or job.last_outcome is None:
        return Cell("")
    when = f" {ago(to_ms(job.last_run_at), now)}" if job.current_run is None else ""  # else it is another run's time
    return Cell(f"{job.last_outcome}{when}", coloured(job.last_outcome).style)


def _status(job: Job, cut_off: Container[str] = ()) -> Cell:
    if job.monitor is not None and job.status == "idle":
        return state_cell(job.monitor["state"])
    if job.current_run in cut_off:
        return Cell(CUT_OFF, "red")
    return Cell("idle", "blue") if job.status == "idle" and job.waiting_for is not None else coloured(job.status)


def next_start(job: Job, now: int, zone: tzinfo, *, exact: bool = False) -> tuple[str, str]:
    """How far the next start is, and when that is."""
    if job.waiting_for is not None and job.status == "idle":
        return "due", ""
    if job.next_run_at is None:
        return "-", ""
    ms = to_ms(job.next_run_at)
    return ahead(ms, now), brief(ms, zone_of(job, zone), now, exact=exact)


def _nothing(place: StoreLocation, *, filtered: bool) -> str:
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
    """Show a job with its runs, a run with its output, or a delivery."""
    place = chosen(ctx, db)
    if place.server:
        from wakeful.surfaces.cli.remote_views import print_one

        print_one(place, ref, as_json=as_json)
        return
    if (show_it := offered_by_id("show", ref)) is not None:
        show_it(place, ref, as_json=as_json)
        return

    async def work(scheduler: Scheduler) -> tuple[Job | Run, list[Run], Zones, frozenset[str], str | None]:
        subject, cut_off = await job_or_run(scheduler, ref), await cut_off_ids(scheduler)
        runs = [subject] if isinstance(subject, Run) else await scheduler.get_run_log(subject.id, RECENT)
        zones = await zones_of_runs(scheduler, runs, place)
        url = None if isinstance(subject, Run) else await ping_address(scheduler, place, subject)
        return subject, runs, zones, cut_off, url

    job, runs, zones, cut_off, url = change(place, work)
    if isinstance(job, Run):
        print_run(job, zones[job.job_id], cut_off, as_json=as_json)
    elif as_json:
        upcoming = [iso(ms) for ms in next_times(job, RECENT)]
        print_json({**monitor_data(job, url), "upcoming": upcoming, "runs": [run.to_dict() for run in runs]})
    else:
        zone = zone_of(job, shown_zone(place))
        current = next((run for run in runs if run.id == job.current_run), None)
        monitor = monitor_facts(job, url, now_ms(), zone)
        print_facts(_facts(job, now_ms(), current, zone, monitor, cut_off=job.current_run in cut_off))
        if runs:
            say()
            print_table(*run_rows(runs, now_ms(), zones, with_job=False, cut_off=cut_off))


Facts = list[tuple[str, str | Cell]]


def _in_full(job: Job) -> str:
    """When it runs, with the moment from which a rhythm counts."""
    return job.trigger.describe() if job.schedule == job.trigger.brief() else job.schedule


def _facts(job: Job, now: int, current: Run | None, zone: tzinfo, monitor: Facts, *, cut_off: bool) -> Facts:
    verb = "is" if monitor else "runs"
    facts: Facts = [("name", job.name), ("id", job.id), (verb, _in_full(job)), *monitor]
    facts += [] if monitor else _work_of(job)
    facts += [("option", f"{key}: {_text(value)}") for key, value in job.options.items()]
    facts += [("status", Cell(f"{CUT_OFF}: its server has ended", "red") if cut_off else _status(job))]
    if current is not None and current.unstoppable is not None:
        facts += [("", Cell(f"{current.id} {current.unstoppable} and cannot be stopped", "red"))]
    if current is not None and job.status == "waiting":
        facts += question_facts(current, now, zone)
    if job.waiting_for is not None:
        facts += [("waits for", job.waiting_for)]
    times = [] if monitor else next_times(job, 3)
    exact = need_seconds(times)
    facts += [
        ("" if number else "next", f"{stamp(ms, zone, exact=exact)}, {ahead(ms, now)}")
        for number, ms in enumerate(times)
    ]
    facts += _times_run(job, now, zone)
    if job.last_error:
        facts += [("last error", Cell(job.last_error, "red" if job.consecutive_errors else ""))]
    if job.consecutive_errors:
        facts += [("errors", f"{job.consecutive_errors} in a row")]
    if job.missed:
        facts += [("missed", count(job.missed, "scheduled time"))]
    facts += [("note", note) for note in job.notes]
    return [*facts, ("made by", f"{job.source}{f' for {job.owner}' if job.owner else ''}, revision {job.revision}")]


def _work_of(job: Job) -> Facts:
    """What the job does."""
    if job.kind == COMMAND:
        rest = {key: value for key, value in job.payload.items() if key != "argv"}
        return [("command", shlex.join(job.payload["argv"])), *((key, _text(value)) for key, value in rest.items())]
    if job.kind == HTTP:
        return [(key, _text(value)) for key, value in request_facts(job.payload)]
    if job.kind == AGENT:
        return [("kind", job.kind), *_asked(job.payload)]
    return [("kind", job.kind), ("payload", json.dumps(job.payload, ensure_ascii=False))]


def _asked(payload: Mapping[str, Any]) -> Facts:
    """What an agent is asked, and how, one line for each part."""
    facts: Facts = []
    for key, value in payload.items():
        if isinstance(value, dict):
            parts = {name: write_duration(part) if name == "timeout" else part for name, part in value.items()}
            text = ", ".join(
                f"{name}: {part if isinstance(part, str) else _text(part)}" for name, part in parts.items()
            )
            facts.append((key, text))
        elif key != "does":
            facts.append((key, _text(value)))
    return facts


def _times_run(job: Job, now: int, zone: tzinfo) -> list[tuple[str, str | Cell]]:
    """When it last started, and how it last ended; while it runs, the outcome is that of an earlier start."""
    if job.last_run_at is None:
        return []
    when = f"{stamp(to_ms(job.last_run_at), zone)}, {relative(to_ms(job.last_run_at), now)}"
    if job.current_run is None:
        return [("last", f"{job.last_outcome}, {when}" if job.last_outcome else when)]
    return [("started", when), *([("last", job.last_outcome)] if job.last_outcome else [])]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@app.command("remove", rich_help_panel=JOBS)
def remove(
    ctx: typer.Context,
    *,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Jobs, by name or id.", show_default=False)],
    yes: Yes = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Remove jobs. A run in progress finishes, and the history is kept.

    Undo restores them for ten minutes. Questions that wait for approval are cancelled, which cannot be undone.
    """
    place = chosen(ctx, db)
    jobs = change(place, lambda scheduler: all_found(scheduler, names))
    ask_before(f"Remove {', '.join(job.name for job in jobs)}?", yes=yes)

    async def work(scheduler: Scheduler) -> str | None:
        rights, action = rights_here(scheduler), None
        for job in jobs:
            action = await scheduler.transact(partial(authorized.remove_job, ref=job.id), rights=rights)
            if not as_json:
                say(f"Removed {job.name} ({job.id})")
        return action

    action = change(place, work)
    if as_json:
        print_json(names_of(jobs, action))
    else:
        say_undo(action)
    for note in filter(None, map(returning_note, jobs)):
        say_note(note)


async def all_found(scheduler: Scheduler, names: list[str]) -> list[Job]:
    """All of them, or none is touched."""
    jobs: dict[str, Job] = {}
    for name in names:
        job = await job_named(scheduler, name)
        jobs[job.id] = job
    return list(jobs.values())


def names_of(jobs: Sequence[Job], action: str | None) -> dict[str, Any]:
    """Which jobs were changed, as the API says it, and by which id that can be undone."""
    return {"count": len(jobs), "names": [job.name for job in jobs], "action": action}
