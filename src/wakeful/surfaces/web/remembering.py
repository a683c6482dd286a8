"""What is costly to find out is remembered for a while: the longer, the more it cost.

A page of a small store is always of this second. In a store with 100,000 jobs, sums over all of them are some seconds
old, and no reader waits for new ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from wakeful.clock import SystemClock
from wakeful.scheduler import Scheduler

T = TypeVar("T")
#: What took so many milliseconds is remembered for this many times as long; what took less than CHEAP_MS, not at all.
TIMES = 40
CHEAP_MS = 15
LONGEST_MS = 60_000
MOST_KEYS = 100


class _Known(NamedTuple, Generic[T]):
    value: T
    at: int
    took: int


class Remembered(Generic[T]):
    """One costly question about a store; `key` tells its forms apart."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Scheduler, dict[str, _Known[T]]] = WeakKeyDictionary()
        self._asking: dict[tuple[int, str], asyncio.Task[Any]] = {}

    async def ask(self, scheduler: Scheduler, key: str, find: Callable[[], Awaitable[T]]) -> T:
        """The answer, at most as old as it was costly; an older one while a new one is looked for."""
        known = self._known.setdefault(scheduler, {}).get(key)
        if known is None:
            return await self._find(scheduler, key, find)
        age = SystemClock().boot() - known.at
        if known.took < CHEAP_MS:
            return await self._find(scheduler, key, find)
        if age > min(LONGEST_MS, known.took * TIMES) and (id(scheduler), key) not in self._asking:
            task = asyncio.ensure_future(self._find(scheduler, key, find))
            self._asking[id(scheduler), key] = task
            task.add_done_callback(lambda done: self._done(id(scheduler), key, done))
        return known.value

    def _done(self, number: int, key: str, task: asyncio.Task[Any]) -> None:
        self._asking.pop((number, key), None)
        if not task.cancelled():
            task.exception()  # the next reader asks again, and is told

    async def _find(self, scheduler: Scheduler, key: str, find: Callable[[], Awaitable[T]]) -> T:
        began = SystemClock().boot()
        value = await find()
        ended = SystemClock().boot()
        known = self._known.setdefault(scheduler, {})
        known.pop(key, None)
        known[key] = _Known(value, ended, ended - began)
        while len(known) > MOST_KEYS:
            known.pop(next(iter(known)))
        return value
