"""A job that takes its process down every time it runs: it is found and disabled, and the jobs beside it are not."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.chaos.killing import ROOT
from tests.chaos.ledger import END, READY, START, Ledger
from tests.chaos.meddler import QUICK_LADDER
from tests.chaos.server import url_of
from wakeful import NewJob, Once, Scheduler

INNOCENT = 30
MOST_LIVES = 25
LIFE_S = 240.0


def drill(folder: Path) -> list[str]:
    """Serve, be taken down, serve again, until a server lives; what was wrong."""
    asyncio.run(_store(folder))
    ledger = Ledger(folder / "ledger")
    try:
        deaths = _lives(folder)
        return asyncio.run(_judge(folder, ledger, deaths))
    finally:
        ledger.close()


async def _store(folder: Path) -> None:
    now = datetime.now(UTC)
    async with Scheduler(url_of(folder)) as scheduler:
        jobs = [NewJob("poison", Once(now), kind="poison", backoff=QUICK_LADDER)]
        for n in range(INNOCENT):
            at = Once(now + timedelta(seconds=0.3 * n))
            jobs.append(NewJob(f"innocent-{n}", at, kind="work", payload=0.3, backoff=QUICK_LADDER))
        await scheduler.add_jobs(jobs)


def _lives(folder: Path) -> int:
    """How often the server died before one lived on with everything settled."""
    for deaths in range(MOST_LIVES):
        with (folder / "server.log").open("ab") as said:
            server = subprocess.Popen([sys.executable, "-m", "tests.chaos.server", str(folder)], cwd=ROOT, stderr=said)
        try:
            end = time.monotonic() + LIFE_S
            while server.poll() is None and time.monotonic() < end and not asyncio.run(_settled(folder)):
                with _quietly():
                    server.wait(0.3)
            if server.poll() is None:
                return deaths
            assert server.returncode == -signal.SIGKILL, f"the server ended with {server.returncode}"
        finally:
            server.terminate()
            server.wait(120)
    return MOST_LIVES


class _quietly:  # noqa: N801 - reads as a word
    """Not yet dead is no error."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, subprocess.TimeoutExpired)


async def _settled(folder: Path) -> bool:
    async with Scheduler(url_of(folder)) as scheduler:
        return not any(job.enabled or job.status == "running" for job in await scheduler.list_jobs())


async def _judge(folder: Path, ledger: Ledger, deaths: int) -> list[str]:
    wrong = []
    async with Scheduler(url_of(folder)) as scheduler:
        poison = await scheduler.get_job("poison")
        jobs = [job for job in await scheduler.list_jobs() if job.name != "poison"]
        alerts = await scheduler.list_alerts()
    assert poison is not None
    starts = [line for line in ledger.lines() if line.what == START and line.job == "poison"]
    ready = len([line for line in ledger.lines() if line.what == READY])
    if poison.enabled or not any(note.startswith("disabled ") for note in poison.notes):
        wrong.append(f"the poison was not disabled after {deaths} deaths: {poison.to_dict()}")
    if not any(alert.kind == "disabled" for alert in alerts):
        wrong.append("there is no alert that the poison was disabled")
    ends = {line.job for line in ledger.lines() if line.what == END}
    blamed = [job.name for job in jobs if job.name not in ends or job.last_outcome != "success"]
    if blamed:
        wrong.append(f"innocent jobs suffered: {blamed}")
    print(f"  poison: {len(starts)} starts, {deaths} deaths, {ready} lives, {len(jobs)} innocent jobs done")
    return wrong
