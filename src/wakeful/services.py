"""Background services: what is done again and again alongside the engine, by one loop.

A service is one step, `run_once`, and how long to wait until the next. Tests call the step; the loop is here alone. An
error is logged, a store that is away only once, and the step is tried again: a service ends when it is told to.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import weakref
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from wakeful.errors import SchedulerError

log = logging.getLogger("wakeful.services")
Step = Callable[[], Awaitable[float | None]]


class ServiceState(NamedTuple):
    """A service that runs in this process."""

    name: str
    every: float  # seconds between two steps, unless a step says otherwise
    trouble: str | None  # why its last step failed


class Service:
    """One step after the other, from `begin` to `end`."""

    def __init__(
        self, name: str, every: float, *, first: float = 0.0, retry: float | None = None, step: Step | None = None
    ) -> None:
        """`every` may be infinite: then it is woken. `first`: how long to wait before the first step.

        `retry`: after one that failed, if not as ever. `step`: what to do, where no class of its own says it.
        """
        self.name = name
        self.every = every
        self.trouble: str | None = None
        self._begins_after = first
        self._retries_after = every if retry is None else retry
        self._step = step
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def run_once(self) -> float | None:
        """One step; after how many seconds the next is to come, None: as ever."""
        if self._step is None:
            raise NotImplementedError
        return await self._step()

    def begin(self) -> None:
        """Start the loop, unless it runs."""
        if self._task is not None:
            return
        self._woken = asyncio.Event()  # of the loop that runs now
        self._task = asyncio.get_running_loop().create_task(self._go_on(), name=f"wakeful-{self.name}")
        _begun.add(self)

    async def end(self) -> None:
        """No further step; one that is under way is cancelled."""
        task = self.cancel()
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)

    def cancel(self) -> asyncio.Task[None] | None:
        """The same without waiting until it has ended: the task that does."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        return task

    @property
    def is_running(self) -> bool:
        """Whether it was begun and has not ended."""
        return self._task is not None

    def wake(self) -> None:
        """Take the next step now, or right after the one that is under way."""
        self._woken.set()

    async def _go_on(self) -> None:
        await self._wait(self._begins_after)
        while True:
            self._woken.clear()  # before the step: what happens during it counts
            await self._wait(await self._try_once())

    async def _wait(self, seconds: float) -> None:
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds if seconds < math.inf else None):
                    await self._woken.wait()

    async def _try_once(self) -> float:
        try:
            pause = await self.run_once()
        except Exception as error:  # noqa: BLE001 - whatever it was, the next step may do without
            self._note(error)
            return self._retries_after
        self.trouble = None
        return self.every if pause is None else pause

    def _note(self, error: Exception) -> None:
        """Log an error, but not the same one with every step."""
        trouble = str(error) or type(error).__name__
        if trouble != self.trouble:
            trace = None if isinstance(error, SchedulerError) else error
            log.warning("%s failed and is tried again: %s", self.name, trouble, exc_info=trace)
        self.trouble = trouble


_begun: weakref.WeakSet[Service] = weakref.WeakSet()


def running() -> list[ServiceState]:
    """The services that run in this process, by name."""
    found = (ServiceState(one.name, one.every, one.trouble) for one in _begun if one.is_running)
    return sorted(found, key=lambda one: (one.name, one.every, one.trouble or ""))
