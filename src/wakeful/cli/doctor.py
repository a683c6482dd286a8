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
from wakeful.triggers import system_zone

if TYPE_CHECKING:
    from wakeful.store.records import Alert

OLDEST_PYTHON = (3, 11)
LEAST_FREE = 100 * 1024 * 1024
#: No clock that is right shows a time before this version was made, or in the next century.
PLAUSIBLE = range(1_767_225_600_000, 4_102_444_800_000)
STEP_MS = 60_000
NO_HANDLER = "kind:"


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str
    do: str | None = None  # what helps where something is wrong


class Inside(NamedTuple):
    """What the store itself can tell."""

    jobs: list[Job]
    alerts: list[Alert]
    server: dict[str, Any] | None
    alive_at: int


@app.command("doctor", rich_help_panel=SERVER)
def doctor(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """Check everything that could keep jobs from running; exit 1 if something does."""
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
    checks += [_sqlite(), Check("store", ok=True, found=f"{place}, {count(len(inside.jobs), 'job')}"), _folder(place)]
    return [*checks, *_disk(place), _clock(now, inside.alive_at), _server(inside), *_handlers(inside), *_alerts(inside)]


async def _look(scheduler: Scheduler) -> Inside | None:
    summary = await scheduler.get_summary()
    return Inside(
        await scheduler.list_jobs(),
        list(await scheduler.list_alerts()),
        server_of(scheduler),
        int(summary.facts.get("alive_at", "0")),
    )


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
    waiting = sum(job.next_run_at is not None for job in inside.jobs)
    found = f"not running, and {count(waiting, 'job')} will not fire" if waiting else "not running, and nothing waits"
    return Check("server", ok=not waiting, found=found, do="start one: wakeful serve")


def _handlers(inside: Inside) -> list[Check]:
    left = [job for job in inside.jobs if (job.waiting_for or "").startswith(NO_HANDLER)]
    return [
        Check("handler", ok=False, found=f"{job.name} is due, but nobody runs jobs of kind {job.kind!r}",
              do="start the program that handles them: wakeful serve --app module:scheduler")
        for job in left
    ]  # fmt: skip


def _alerts(inside: Inside) -> list[Check]:
    if not inside.alerts:
        return [Check("alerts", ok=True, found="none open")]
    names = {job.id: job.name for job in inside.jobs}
    return [Check("alert", ok=False, found=alert.message, do=_remedy(alert, names)) for alert in inside.alerts]


def _remedy(alert: Alert, names: dict[str, str]) -> str:
    from wakeful import ids

    name = names.get(ids.job_text(alert.job_id)) if alert.job_id is not None else None
    if name is None:
        return "wakeful alert list"
    return f"wakeful explain {name}" + (f", then wakeful resume {name}" if alert.kind == "disabled" else "")
