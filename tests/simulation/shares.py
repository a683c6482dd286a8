"""Worlds in which more jobs want lanes than lanes can hold: whatever happened before, equal jobs have equal shares.

Groups of equal jobs want one lane each, some jobs want two, kinds refuse some starts, and nodes die. Once the faults
are over, starts are counted for some hours: of equal jobs none has twice as many as another, and who needs several
lanes gets its turn.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import ClassVar

from tests.simulation.invariants import Broken
from tests.simulation.people import LANES
from tests.simulation.world import World
from wakeful import Every, NewJob, Run, Scheduler, SchedulerError

WINDOW_H = 4
FEWEST = 6  # starts of the busiest of a group, below which a share says nothing


class Sharing(World):
    """Crowded lanes."""

    kinds = (("worker", 1),)
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 30, "_run_now": 4, "_cancel": 4, "_pause": 3, "_resume": 6, "_kill": 3, "_restart": 2,
    }  # fmt: skip

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._groups = self._make_groups()
        self.shares: Counter[str] = Counter()
        self._furnished = False

    def _make_groups(self) -> dict[str, list[NewJob]]:
        """Equal jobs, by what they have in common; those that need several lanes by themselves."""
        rng = self.rng
        lengths = {lane: rng.choice((120, 300, 600)) for lane in LANES}
        overlap = rng.choice(("skip", "queue"))
        groups = {}
        for lane, size in LANES.items():
            jobs = [self._job({lane: size}, lengths[lane], overlap, "1m") for _ in range(rng.randrange(size + 2, 7))]
            groups[lane] = jobs
        every = rng.choice(("10m", "30m"))
        for number in range(rng.randrange(1, 3)):
            groups[f"both {number}"] = [self._job(dict(LANES), 60, "skip", every, rng.choice((0, 0, 100)))]
        return groups

    def _job(self, lanes: dict[str, int], seconds: int, overlap: str, every: str, priority: int = 0) -> NewJob:
        name = f"job-{self._names}"
        self._names += 1
        payload = {"seconds": seconds}
        options = {"lanes": lanes, "overlap": overlap, "priority": priority}
        return NewJob(name, Every(every), kind="worker", payload=payload, **options)

    async def _furnish(self, scheduler: Scheduler) -> None:
        async def work(found: Run) -> None:
            self._started(found)
            self.shares[found.job] += 1
            await asyncio.sleep(found.payload["seconds"])

        scheduler.on_job_due("worker", work)
        if not self._furnished:
            await scheduler.add_jobs([job for group in self._groups.values() for job in group])
            self._furnished = True

    async def _end(self) -> None:
        assert self._scheduler is not None
        for group in self._groups.values():
            for job in group:
                await self._resume_all(job.name)
        await self.clock.sleep("20m")  # so that all stand in line
        self.shares.clear()
        self.hooks.refused.clear()
        await self.clock.sleep(f"{WINDOW_H}h")
        self._look()
        for what, group in self._groups.items():
            check_shares(what, {job.name: self._turns(job.name) for job in group})
        await super()._end()

    def _turns(self, name: str) -> int:
        """How often its turn came: a kind that refuses a start, by chance, has had it."""
        return self.shares[name] + self.hooks.refused[name]

    async def _resume_all(self, name: str) -> None:
        assert self._scheduler is not None
        try:
            await self._scheduler.resume_job(name)
        except SchedulerError as refused:  # it is not over: nothing ends such a job
            raise Broken(f"{name} cannot be resumed: {refused}") from refused


class Even(Sharing):
    """Lanes that are about as wide as is asked for, and equal jobs that become due together again and again."""

    def _make_groups(self) -> dict[str, list[NewJob]]:
        groups = {}
        for lane, size in LANES.items():
            number = self.rng.randrange(size + 1, 5)
            seconds = int(600 * size * self.rng.choice((0.9, 1, 1.1, 1.2)) / number)
            groups[lane] = [self._job({lane: size}, seconds, "skip", "10m") for _ in range(number)]
        return groups


class Pressed(Sharing):
    """One lane has more urgent jobs than it can hold; others need both, and wait for ever; some want only the other."""

    def _make_groups(self) -> dict[str, list[NewJob]]:
        rng = self.rng
        pressed, other = rng.sample(sorted(LANES), 2)
        seconds = rng.choice((120, 300))
        urgent = range(3 * LANES[pressed] + rng.randrange(3))
        quick = rng.choice((30, 600))
        self._hopeless = [self._job(dict(LANES), 60, "skip", "5m") for _ in range(rng.randrange(1, 3))]
        return {
            pressed: [self._job({pressed: LANES[pressed]}, seconds, "skip", "1m", 100) for _ in urgent],
            other: [self._job({other: LANES[other]}, quick, "skip", "10m") for _ in range(LANES[other])],
        }

    async def _furnish(self, scheduler: Scheduler) -> None:
        if not self._furnished:
            await scheduler.add_jobs(self._hopeless)
        await super()._furnish(scheduler)


def check_shares(what: str, shares: dict[str, int]) -> None:
    """Equal jobs have equal shares, and each has one."""
    least, most = min(shares.values()), max(shares.values())
    if least == 0:
        raise Broken(f"X31: {min(shares, key=lambda name: shares[name])} of {what} never started: {shares}")
    if most >= FEWEST and most >= 2 * least:
        raise Broken(f"X31: equal jobs of {what} have unequal shares: {shares}")
