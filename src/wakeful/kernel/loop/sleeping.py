"""How the engine's loop waits: until a moment, or until something on the same event loop wakes it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.loop.config import EngineConfig
    from wakeful.store.interface import Store


class Sleeper:
    """One sleep at a time, which `wake` ends early."""

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    async def sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        handle = loop.call_later(seconds, self.wake)
        try:
            await waiter
        finally:
            handle.cancel()
            self._waiter = None

    def wake(self) -> None:
        """End the sleep, if there is one."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class OtherProcesses:
    """Whether another process wrote: a job added or a run cancelled from the command line. Asked every so often."""

    def __init__(self, store: Store, clock: Clock, config: EngineConfig) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._next = 0

    async def wrote(self) -> bool:
        now = self._clock.boot()
        if self._config.virtual or now < self._next:
            return False
        self._next = now + self._config.tuning.poll_ms
        return await self._store.changed_elsewhere()

    def delay(self, longest: float) -> float:
        """Seconds until it is asked again, where it is asked at all."""
        return longest if self._config.virtual else max(0.0, (self._next - self._clock.boot()) / 1000)
