"""`doctor`: looks at everything that could keep jobs from running, and says what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from wakeful import Job, Scheduler, __version__
from wakeful.cli.app import SERVER, app
from wakeful.cli.opening import now_ms, read, server_of
from wakeful.cli.place import Db, Place, chosen
from wakeful.cli.saying import say
from wakeful.cli.tables import Cell, Json, console, print_beside, print_json
from wakeful.cli.words import count, span, stamp, zone_named
from wakeful.errors import SchedulerError
from wakeful.store.jobs import JobFilter
from wakeful.triggers import system_zone

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import Alert

OLDEST_PYTHON = (3, 11)
LEAST_FREE = 100 * 1024 * 1024
#: No clock that is right shows a time before this version was made, or in the next century.
PLAUSIBLE = range(1_767_225_600_000, 4_102_444_800_000)
STEP_MS = 60_000
NO_HANDLER = "kind:"
MOST_NAMED = 20  # jobs without a handler, of one kind


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str
    do: str | None = None  # what helps where something is wrong


class Inside(NamedTuple):
    """What the store itself knows."""

    jobs: int
    waiting: int  # jobs that will start by time
    unhandled: list[tuple[Job, int]]  # a job that is due without a handler, with how many more of its kind there are
    alerts: list[Alert]
    names: dict[int, str]  # of the jobs the alerts are about
    server: dict[str, Any] | None
    alive_at: int


@app.command("doctor", rich_help_panel=SERVER)
def doctor(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """Check for everything that could keep jobs from running. Exits with 1 if there is a problem."""
    place = chosen(ctx, db)
    checks = examine(place, now_ms())
    well = all(check.ok for check in checks)
    if as_json:
        print_json({"ok": well, "store": str(place), "checks": [check._asdict() for check in checks]})
    else:
        _print(checks)
    if not well:
        raise typer.Exit(1)


def _print(checks: list[Check]) -> None:
    from rich.text import Text

    out = console()
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark, style = ("✓", "green") if check.ok else ("✗", "bold red")
        print_beside(out, Text(f"{mark} ", style).append(f"{check.name:<{width}}  ", "bold"), Cell(check.found))
        if check.do is not None and not check.ok:
            print_beside(out, Text(f"  {'':<{width}}  → ", "yellow"), Cell(check.do, "yellow"))
    wrong = sum(not check.ok for check in checks)
    say()
    say(f"{count(wrong, 'problem')} found" if wrong else "All is well")


def examine(place: Place, now: int) -> list[Check]:
    """Every check, in the order in which one needs the other."""
    checks = [_python(), _zones(now)]
    if not place.exists:
        checks += [
            _folder(place),
            Check("store", ok=True, found=f"none yet at {place}; the first job or server makes it"),
        ]
        return [*checks, *_disk(place), _clock(now, 0)]
    try:
        inside = read(place, _look, None)
    except (SchedulerError, OSError) as error:
        return [*checks, Check("store", ok=False, found=str(error), do="see the sentence above"), _clock(now, 0)]
    assert inside is not None  # noqa: S101 - the place exists
    checks += [_sqlite(), Check("store", ok=True, found=f"{place}, {count(inside.jobs, 'job')}"), _folder(place)]
    return [*checks, *_disk(place), _clock(now, inside.alive_at), _server(inside), *_handlers(inside), *_alerts(inside)]


async def _look(scheduler: Scheduler) -> Inside | None:
    summary = await scheduler.get_summary()
    alerts, hidden = list(await scheduler.list_alerts()), scheduler.hidden_kinds

    def work(tx: Transaction) -> Inside:
        running = (Job(*pair, tx.now) for pair in tx.jobs.matching(JobFilter(status="running", hidden=hidden)))
        about = tx.jobs.definitions(sorted({alert.job_id for alert in alerts if alert.job_id is not None}))
        return Inside(
            sum(summary.jobs.values()),
            tx.jobs.armed(hidden) + sum(job.next_run_at is not None for job in running),
            [found for key, number in summary.parked.items() if key.startswith(NO_HANDLER)
             for found in _first_and_rest(tx, key, number)],
            alerts,
            {job_id: job.name for job_id, job in about.items() if job.removed_at is None},
            server_of(scheduler),
            int(summary.facts.get("alive_at", "0")),
        )  # fmt: skip

    return await scheduler.look(work)


def _first_and_rest(tx: Transaction, key: str, number: int) -> list[tuple[Job, int]]:
    """The jobs that have waited longest for that handler; the last one named stands for the rest, too."""
    jobs = [Job(*pair, tx.now) for pair in tx.jobs.parked_on(key, tx.now, MOST_NAMED)]
    return [(job, number - len(jobs) if job is jobs[-1] else 0) for job in jobs]


def _python() -> Check:
    found = f"Wakeful {__version__} on Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return Check("program", ok=sys.version_info >= OLDEST_PYTHON, found=found, do="use Python 3.11 or newer")


def _sqlite() -> Check:
    # Only the store may import its driver; it has, and refuses one that is too old by itself.
    version = getattr(sys.modules.get("sqlite3"), "sqlite_version", None)
    return Check("database", ok=True, found=f"SQLite {version}" if version else "reachable")


def _zones(now: int) -> Check:
    try:
        shown = stamp(now, zone_named(None))
        zone_named("Europe/Berlin")
    except (LookupError, OSError, ValueError) as error:
        return Check("time zones", ok=False, found=f"no zone data: {error}", do="pip install tzdata")
    return Check("time zones", ok=True, found=f"{system_zone()}, it is {shown}")


def _clock(now: int, alive_at: int) -> Check:
    if now not in PLAUSIBLE:
        return Check("clock", ok=False, found="the clock was never set", do="set the date, or let NTP do it")
    behind = alive_at - now
    if behind > STEP_MS:
        found = f"the clock is {span(behind)} behind the last time a server was alive"
        return Check("clock", ok=False, found=found, do="check the date; jobs whose slots ran already stay silent")
    return Check("clock", ok=True, found="plausible")


def _folder(place: Place) -> Check:
    """The database needs to write its file and beside it."""
    if place.path is None:
        return Check("writable", ok=True, found="decided by the database server")
    file = place.path
    folder = _nearest(file.parent)
    targets = [target for target in (file, folder) if target.exists()]
    closed = [str(target) for target in targets if not os.access(target, os.W_OK)]
    if closed:
        return Check(
            "writable", ok=False, found=f"{closed[0]} may not be written", do="change its owner or permissions"
        )
    return Check("writable", ok=True, found=str(folder))


def _disk(place: Place) -> list[Check]:
    if place.path is None:
        return []
    free = shutil.disk_usage(_nearest(place.path.parent)).free
    found = f"{free / 1024**3:.1f} GiB free" if free > 1024**3 else f"{free / 1024**2:.0f} MiB free"
    return [Check("disk", ok=free >= LEAST_FREE, found=found, do="free some space: nothing can be stored without it")]


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _server(inside: Inside) -> Check:
    if inside.server is not None:
        return Check("server", ok=True, found=f"running, process {inside.server.get('pid')}")
    waits = inside.waiting
    found = f"not running, and {count(waits, 'job')} will not fire" if waits else "not running, and nothing waits"
    return Check("server", ok=not waits, found=found, do="start one: wakeful serve")


def _handlers(inside: Inside) -> list[Check]:
    return [
        Check(
            "handler",
            ok=False,
            found=f"{job.name}{f' and {rest} more are' if rest else ' is'} due, "
            f"but no running program handles kind {job.kind!r}",
            do="start the program that handles them: wakeful serve --app module:scheduler",
        )
        for job, rest in inside.unhandled
    ]


def _alerts(inside: Inside) -> list[Check]:
    if not inside.alerts:
        return [Check("alerts", ok=True, found="none open")]
    return [Check("alert", ok=False, found=alert.message, do=_remedy(alert, inside.names)) for alert in inside.alerts]


def _remedy(alert: Alert, names: dict[int, str]) -> str:
    name = names.get(alert.job_id) if alert.job_id is not None else None
    if name is None:
        return "wakeful alert list"
    return f"wakeful explain {name}" + (f", then wakeful resume {name}" if alert.kind == "disabled" else "")
