"""The week before the demo: the real engine, in virtual time, from seven days ago until now."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.clock import SystemClock
from wakeful.demo.books import workflow
from wakeful.demo.fleet import agents, jobs, make_scheduler
from wakeful.demo.place import DemoFolder
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.model.run import run_views
from wakeful.kernel.rules.outcome import APPROVAL
from wakeful.store.runs import RunFilter
from wakeful.virtual_time import VirtualClock, run

if TYPE_CHECKING:
    from wakeful.scheduler import Scheduler

WEEK = timedelta(days=7)
HOUR_MS = 3_600_000
#: When the workflow was deployed, in hours before now.
DEPLOYED = 24.0
#: When the machine was off, in hours before now, and for how long.
OUTAGES = ((76.0, 2.0), (5.0, 0.75))
#: Housekeeping and idle looks have nothing to do in a week that is made at once.
QUICK = Tuning(sweep_ms=6 * HOUR_MS, longest_sleep_s=3_600)
#: A folder in memory, where a commit does not wait for a disk.
MEMORY = Path("/dev/shm")  # noqa: S108 - the folder that is made in it is private


def live_a_week(place: DemoFolder) -> None:
    """Make the week, which takes a few seconds; it ends as the server begins."""
    quick = MEMORY if os.access(MEMORY, os.W_OK) else place.folder
    with tempfile.TemporaryDirectory(prefix="wakeful-week-", dir=quick) as folder:
        draft = DemoFolder(Path(folder))
        draft.write(place.read())
        clock = VirtualClock(datetime.fromtimestamp(SystemClock().now() / 1000, UTC) - WEEK)
        run(_week(draft, clock), clock)
        draft.change(lived=True)
        for path in sorted(draft.folder.iterdir(), key=lambda one: one.suffix == ".json"):
            shutil.move(path, place.folder / path.name)


async def _week(place: DemoFolder, clock: VirtualClock) -> None:
    scheduler = make_scheduler(place, clock, QUICK)
    end = clock.now() + int(WEEK.total_seconds() * 1000)
    async with scheduler:
        await scheduler.add_jobs(jobs())
        await scheduler.agents.apply(agents())
        await scheduler.pause_job("spring-cleaning", "until it has been reviewed")
        await scheduler.start()
        person = asyncio.get_running_loop().create_task(_attend(scheduler, clock))
        await _sleep_through(scheduler, clock, end, *OUTAGES[0])
        await _until(clock, end - int(DEPLOYED * HOUR_MS))
        await scheduler.add_workflow(workflow)
        await _sleep_through(scheduler, clock, end, *OUTAGES[1])
        while (left := SystemClock().now() - clock.now()) > 0:  # time went on meanwhile
            await clock.sleep(timedelta(milliseconds=left))
        person.cancel()
        await _answer(scheduler)
        await scheduler.stop()


async def _sleep_through(scheduler: Scheduler, clock: VirtualClock, end: int, hours: float, length: float) -> None:
    """The machine is off for `length` hours, `hours` before the end."""
    await _until(clock, end - int(hours * HOUR_MS))
    await scheduler.stop()
    await clock.sleep(timedelta(hours=length))
    await scheduler.start()


async def _until(clock: VirtualClock, at: int) -> None:
    await clock.sleep(timedelta(milliseconds=at - clock.now()))


async def _attend(scheduler: Scheduler, clock: VirtualClock) -> None:
    """A person who looks at what waits every two hours."""
    while True:
        await clock.sleep("2h")
        if scheduler.is_running():
            await _answer(scheduler)


async def _answer(scheduler: Scheduler) -> None:
    """Approve what asks, and acknowledge what is known."""
    wanted = RunFilter(status="waiting", phase=APPROVAL, limit=10)
    for asking in await scheduler.read(lambda tx: run_views(tx, tx.runs.matching(wanted))):
        await scheduler.approve_run(asking.id, by="ada")
    for alert in await scheduler.list_alerts():
        if alert.acked_at is None:
            await scheduler.ack_alert(alert.id)
