"""Fleets in which nodes die and freeze just when jobs are due."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from tests.simulation.fleet import Fleet
from wakeful import Every


class Siege(Fleet):
    """A world where nothing happens but that a node dies or freezes just when jobs are due: broken rules show soon."""

    absences = (60,)

    async def _step(self) -> None:
        now = self.clock.now()
        await asyncio.sleep((20_000 - now % 20_000) / 1000 + self.rng.random() * 0.08)
        if (node := self._somebody()) is not None and self.rng.random() < 0.4:
            node.die("killed")
        elif node is not None:
            node.frozen_until = asyncio.get_running_loop().time() + 24
        await asyncio.sleep(32)

    async def _add(self) -> None:
        assert self._scheduler is not None
        name, self._names = f"job-{self._names}", self._names + 1
        every, needs = Every("20s", anchor=datetime(2026, 1, 1, tzinfo=UTC)), self._needs()
        await self._scheduler.add_job(name, every, kind=self.rng.choice(("good", "slow")), payload=needs, **needs)


class Ambush(Siege):
    """A world where a node freezes while it claims, is taken over from, and thaws just when jobs are due again."""

    async def _step(self) -> None:
        await asyncio.sleep((20_000 - self.clock.now() % 20_000) / 1000 + self.rng.random() * 0.08)
        until = 40 - self.clock.now() % 20_000 / 1000
        if (node := self._somebody()) is not None:
            node.frozen_until = asyncio.get_running_loop().time() + until
        await asyncio.sleep(until + 12)
