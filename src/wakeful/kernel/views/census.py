"""How many jobs there are in each status, for those who ask every few seconds.

A store of no more than a step's jobs is counted when it is asked about. A larger one is counted step by step in the
background, at most twice a minute and only while somebody asks: an answer then is that of the last round.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING

from wakeful import clock as clocks
from wakeful.errors import SchedulerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wakeful.store.interface import Store

log = logging.getLogger("wakeful.metrics")
STEP = 2_000  # jobs that are looked at in one go
PAUSE_S = 0.005  # after each step
ROUND_MS = 30_000  # between two rounds
FIRST_S = 1.0  # how long the first answer waits for the first round


class Census:
    """Belongs to the event loop."""

    def __init__(self, store: Store, hidden: tuple[str, ...]) -> None:
        self._store = store
        self._hidden = hidden
        self._found: Mapping[str, int] | None = None
        self._began: int | None = None
        self._round: asyncio.Task[None] | None = None

    async def counts(self) -> Mapping[str, int] | None:
        """How many jobs there are by status; None while a large store is counted for the first time."""
        found, after = await self._store.read(lambda tx: tx.gauges.statuses(0, STEP, self._hidden))
        if after is None:
            return found
        now = self._store.clock.boot()
        idle = self._round is None or self._round.done()
        if idle and (self._began is None or now - self._began >= ROUND_MS):
            self._began = now
            self._round = asyncio.get_running_loop().create_task(self._count_all(found, after))
        if self._found is None and self._round is not None:
            await asyncio.wait({self._round}, timeout=FIRST_S)
        return self._found

    async def end(self) -> None:
        """Count no further."""
        if self._round is not None:
            self._round.cancel()
            await asyncio.wait({self._round})

    async def _count_all(self, first: Mapping[str, int], start: int) -> None:
        total, after = Counter(first), start
        while True:
            await clocks.sleep(PAUSE_S)
            try:
                found, following = await self._step(after)
            except SchedulerError as error:
                log.debug("the jobs cannot be counted now: %s", error)
                return
            total.update(found)
            if following is None:
                self._found = dict(total)
                return
            after = following

    async def _step(self, after: int) -> tuple[dict[str, int], int | None]:
        return await self._store.read(lambda tx: tx.gauges.statuses(after, STEP, self._hidden))
