"""Another process on the same store, until its stdin ends: `python -m tests.chaos.meddler FOLDER SEED CANCELS`.

It adds, pauses, resumes, removes, cancels and asks for runs, and writes down what was confirmed as done.
"""

from __future__ import annotations

import asyncio
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.chaos.ledger import ASKED, CANCELLED, PAUSED, REMOVED, RESUMED, STORED, Ledger
from tests.chaos.server import url_of
from wakeful import JobNotFound, Once, Scheduler, ScheduleTriggerError

QUICK_LADDER = ["1s"]  # a second crash of one slot waits a second, not half a minute


class Meddler:
    """One at a time, at random, what people do to jobs."""

    def __init__(self, scheduler: Scheduler, ledger: Ledger, rng: random.Random, *, cancels: bool) -> None:
        self._scheduler = scheduler
        self._ledger = ledger
        self._rng = rng
        self._deeds = [self.add] * 10 + [self.pause] * 2 + [self.resume, self.remove] + [self.ask] * 3
        self._deeds += [self.cancel] * 3 if cancels else []
        self._added = 0
        self._napping: list[str] = []

    async def once(self) -> None:
        try:
            await self._rng.choice(self._deeds)()
        except (JobNotFound, ScheduleTriggerError):
            return  # another process was quicker: it ended, is gone, or runs already

    async def add(self) -> None:
        name = f"added-{self._added}"
        self._added += 1
        at = datetime.now(UTC) + timedelta(seconds=self._rng.uniform(-0.1, 2.0))
        kind = self._rng.choice(["work", "work", "thread"])
        await self._scheduler.add_job(
            name, Once(at), kind=kind, payload=self._rng.uniform(0, 0.1), backoff=QUICK_LADDER, source="cli"
        )
        self._ledger.note(STORED, job=name)

    async def pause(self) -> None:
        name = await self._some("nap-")
        if name is not None:
            await self._scheduler.pause_job(name)
            self._ledger.note(PAUSED, job=name)
            self._napping.append(name)

    async def resume(self) -> None:
        if self._napping:
            name = self._napping.pop(self._rng.randrange(len(self._napping)))
            self._ledger.note(RESUMED, job=name)  # before: from here on it may run
            await self._scheduler.resume_job(name)

    async def remove(self) -> None:
        name = await self._some("gone-")
        if name is not None:
            self._ledger.note(REMOVED, job=name)  # before: from here on it need not run
            await self._scheduler.remove_job(name)

    async def cancel(self) -> None:
        runs = [run for run in await self._scheduler.get_run_log(limit=30) if run.status in ("active", "queued")]
        if runs:
            run = self._rng.choice(runs)
            await self._scheduler.cancel_run(run.id)
            self._ledger.note(CANCELLED, run.id, run.attempt, run.job)

    async def ask(self) -> None:
        name = await self._some("tick-")
        if name is not None:
            self._ledger.note(ASKED, await self._scheduler.run_job(name), 1, name)

    async def _some(self, prefix: str) -> str | None:
        jobs = await self._scheduler.list_jobs(enabled=True)
        names = [job.name for job in jobs if job.name.startswith(prefix) and job.status == "idle"]
        return self._rng.choice(names) if names else None


async def meddle(folder: Path, seed: int, *, cancels: bool) -> None:
    rng = random.Random(seed)
    loop = asyncio.get_running_loop()
    over = loop.run_in_executor(None, sys.stdin.read)
    async with Scheduler(url_of(folder)) as scheduler:
        meddler = Meddler(scheduler, Ledger(folder / "ledger"), rng, cancels=cancels)
        while not over.done():
            await meddler.once()
            await asyncio.wait([over], timeout=rng.uniform(0, 0.08))


if __name__ == "__main__":
    asyncio.run(meddle(Path(sys.argv[1]), int(sys.argv[2]), cancels=sys.argv[3] == "1"))
