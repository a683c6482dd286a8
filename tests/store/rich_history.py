"""A store in which much has happened: every kind of trigger, end, refusal and wait, and a server that was killed."""

from __future__ import annotations

import atexit
import functools
import os
import random
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.kernel.crashing import die
from wakeful import After, Cron, Defer, Every, Interval, Manual, Noop, Once, Scheduler, Skip, Wait
from wakeful.testing import VirtualClock, run

START = datetime(2026, 1, 1, tzinfo=UTC)
ENDS = ("fine",) * 20 + ("nothing", "skipped", "broken", "later", "long", "odd")


def make_history(file, seed):
    """Two days of it in a new file, the same for every seed; at its end something runs, and the process is dead."""
    made = _made(seed)
    shutil.copytree(made, file.parent, dirs_exist_ok=True, copy_function=shutil.copy)
    for path in file.parent.glob("history.db*"):
        path.rename(file.parent / path.name.replace("history.db", file.name))


@functools.cache
def _made(seed):
    """Made once: days are hundreds of commits, so in memory where the system offers it as a disk."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    clock = VirtualClock(START)
    run(_live(f"sqlite:///{folder / 'history.db'}", seed, clock), clock)
    return folder


async def _live(url, seed, clock):
    chance = random.Random(seed)

    async def work(given):
        end = given.payload or chance.choice(ENDS)
        await clock.sleep(f"{chance.randint(1, 40)}s")
        return await _end(end, clock)

    scheduler = Scheduler(url, clock=clock, seed=seed, node="mill", timezone="Europe/Berlin")
    scheduler.on_job_due("work", work)
    await scheduler.open()
    await scheduler.start()
    await _add_jobs(scheduler, chance)
    for _ in range(12):
        await clock.sleep("4h")
        await _meddle(scheduler, chance)
    await scheduler.run_job("stuck")
    await clock.sleep("5m")
    assert scheduler.running_count() >= 1
    await die(scheduler)


async def _end(end, clock):
    if end == "forever":
        await clock.sleep("7d")
    raised = {
        "nothing": Noop("nothing new"),
        "skipped": Skip("not today"),
        "broken": RuntimeError("a broken pipe, a tab\t and a snowman \u2603"),
        "later": Defer(datetime(2026, 1, 20, tzinfo=UTC)),
        "waiting": Wait(why="a person must look"),
        "odd": ValueError("a zero \0 in the middle"),
    }
    if end in raised:
        raise raised[end]
    return "x" * 300_000 if end == "long" else {"rows": 42, "name": "Zo\u00eb"}


async def _add_jobs(scheduler, chance):
    lanes = {"lanes": {"disk": 1}}
    await scheduler.add_job("grid", Every("17m"), kind="work", owner="ada")
    await scheduler.add_job("calendar", Cron("*/20 * * * *"), kind="work", **lanes)
    await scheduler.add_job("gap", Interval("25m", jitter=5), kind="work", **lanes, retry=2)
    await scheduler.add_job("once", Once(datetime(2026, 1, 1, 5, tzinfo=UTC)), kind="work")
    await scheduler.add_job("chained", After("grid", on="any"), kind="work", payload="fine")
    await scheduler.add_job("waiting", Every("5h"), kind="work", payload="waiting")
    await scheduler.add_job("unserved", Every("1h"), kind="nobody-does-this")
    await scheduler.add_job("gpu", Every("1h"), kind="work", labels=["gpu"])
    await scheduler.add_job("disabled", Every("1m"), kind="work", payload="broken", max_errors=2, backoff=["1s"])
    await scheduler.add_job("stuck", Manual(), kind="work", payload="forever", **lanes)
    for number in range(chance.randint(1, 30)):
        await scheduler.add_job(f"small-{number}", Every(f"{chance.randint(1, 9)}h"), kind="work")


async def _meddle(scheduler, chance):
    """What people do meanwhile."""
    names = [job.name for job in await scheduler.list_jobs() if job.name != "stuck"]
    name = chance.choice(names)
    deed = chance.choice(("pause", "resume", "edit", "remove", "again", "rename"))
    if deed == "pause":
        await scheduler.pause_job(name, note="Ada is on holiday")
    elif deed == "resume":
        await scheduler.resume_job(name)
    elif deed == "edit":
        await scheduler.update_job(name, timeout="50m")
    elif deed == "remove" and name.startswith("small"):
        await scheduler.remove_job(name)
    elif deed == "again":
        await scheduler.add_job(f"again-{chance.randint(1, 10**6)}", Every("3h"), kind="work")
    elif deed == "rename":
        await scheduler.update_job(name, name=f"{name}-too")
