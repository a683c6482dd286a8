"""What is costly to find out is remembered for a while: the longer, the more it cost.

A page of a small store is always of this second. In a store with 100,000 jobs, sums over all of them are some seconds
old, and no reader waits for new ones; where there are none yet, a reader is told so after a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from wakeful.clock import Clock, SystemClock
from wakeful.scheduler import Scheduler

T = TypeVar("T")
#: What took so many milliseconds is remembered for this many times as long; what took less than CHEAP_MS, not at all.
TIMES = 40
CHEAP_MS = 15
LONGEST_MS = 60_000
MOST_KEYS = 100
FIRST_S = 1.0  # how long readers wait for a first answer, together


class _CacheEntry(NamedTuple, Generic[T]):
    value: T
    at: int
    took: int


class _Asking(NamedTuple, Generic[T]):
    task: asyncio.Task[T]
    began: int


class Remembered(Generic[T]):
    """One costly question about a store; `key` tells its forms apart."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._known: WeakKeyDictionary[Scheduler, dict[str, _CacheEntry[T]]] = WeakKeyDictionary()
        self._asking: dict[tuple[int, str], _Asking[T]] = {}

    async def ask(self, scheduler: Scheduler, key: str, find: Callable[[], Awaitable[T]]) -> T:
        """The answer, at most as old as it was costly; an older one while a new one is looked for."""
        known = self._known.setdefault(scheduler, {}).get(key)
        if known is None:
            return await self._find(scheduler, key, find)
        age = self._clock.boot() - known.at
        if known.took < CHEAP_MS:
            return await self._find(scheduler, key, find)
        if age > min(LONGEST_MS, known.took * TIMES):
            self._begin(scheduler, key, find)
        return known.value

    async def ask_soon(self, scheduler: Scheduler, key: str, find: Callable[[], Awaitable[T]]) -> T | None:
        """As `ask`; None while the first answer is still looked for, which continues without its reader."""
        if key in self._known.setdefault(scheduler, {}):
            return await self.ask(scheduler, key, find)
        asking = self._begin(scheduler, key, find)
        waited_s = (self._clock.boot() - asking.began) / 1000
        await asyncio.wait({asking.task}, timeout=max(0.0, FIRST_S - waited_s))
        return asking.task.result() if asking.task.done() else None

    def _begin(self, scheduler: Scheduler, key: str, find: Callable[[], Awaitable[T]]) -> _Asking[T]:
        """Look for an answer, unless somebody does already."""
        asking = self._asking.get((id(scheduler), key))
        if asking is None:
            task = asyncio.ensure_future(self._find(scheduler, key, find))
            self._asking[id(scheduler), key] = asking = _Asking(task, self._clock.boot())
            task.add_done_callback(lambda done: self._done(id(scheduler), key, done))
        return asking

    def _done(self, number: int, key: str, task: asyncio.Task[T]) -> None:
        self._asking.pop((number, key), None)
        if not task.cancelled():
            task.exception()  # the next reader asks again, and is told

    async def _find(self, scheduler: Scheduler, key: str, find: Callable[[], Awaitable[T]]) -> T:
        began = self._clock.boot()
        value = await find()
        ended = self._clock.boot()
        known = self._known.setdefault(scheduler, {})
        known.pop(key, None)
        known[key] = _CacheEntry(value, ended, ended - began)
        while len(known) > MOST_KEYS:
            known.pop(next(iter(known)))
        return value
