"""A real SQLite store whose process can die before or after any commit, whose replies are late, whose disk fills up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from wakeful.errors import StoreFull
from wakeful.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from tests.simulation.order import Order
    from wakeful.clock import Clock
    from wakeful.store.interface import Transaction

T = TypeVar("T")


class Faults:
    """What goes wrong, and how often; shared by all incarnations of one world."""

    max_delay = 0.02  # seconds a request or a reply may take

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.crash_rate = 0.0
        self.full_rate = 0.0
        self.on_death: Callable[[str], None] = lambda _: None
        self.on_commit: Callable[[], None] = lambda: None


class FaultyStore(SqliteStore):
    """The store of one incarnation."""

    def __init__(self, url: str, clock: Clock, faults: Faults, order: Order) -> None:
        super().__init__(url, clock, inline=True)
        self._faults = faults
        self._order = order
        self.dead = False

    def die(self, where: str) -> None:
        """Nothing this incarnation does from here on reaches the disk, and it never hears a reply."""
        if not self.dead:
            self.dead = True
            self._faults.on_death(where)

    def discard(self) -> None:
        """What the operating system does when a process is gone."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._lock.release()

    async def write(self, work: Callable[[Transaction], T], *, not_before: int | None = None) -> T:
        faults = self._faults
        await self._pause()
        if faults.rng.random() < faults.crash_rate:
            self.die("before commit")
            await self._silence()
        if faults.rng.random() < faults.full_rate:
            message = "simulated: the disk is full"
            raise StoreFull(message)

        def watched(tx: Transaction) -> T:
            tx.jobs = self._order.watch(tx.jobs)
            return work(tx)

        result = await super().write(watched, not_before=not_before)
        faults.on_commit()
        if faults.rng.random() < faults.crash_rate:
            self.die("after commit")
            await self._silence()
        await self._pause()
        return result

    async def read(self, work: Callable[[Transaction], T]) -> T:
        await self._pause()
        return await super().read(work)

    async def _pause(self) -> None:
        if self.dead:
            await self._silence()
        await asyncio.sleep(self._faults.rng.random() * self._faults.max_delay)
        if self.dead:
            await self._silence()

    async def _silence(self) -> Any:
        # A timer far away keeps the loop from calling this a deadlock; the world cancels the task long before.
        await asyncio.sleep(10**9)
