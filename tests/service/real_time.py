"""For tests on the machine's own clock: wait for what was said to happen, never for a number of seconds."""

from __future__ import annotations

import asyncio
import functools
import threading

from wakeful import Scheduler

PATIENCE = 300  # seconds after which a wait is a failure; nothing takes so long on purpose
#: A limit of a run that is to begin within it, also on a slow machine, and whose end is waited for.
TO_BEGIN_S = 4


def real(test):
    """Run an async test on a real event loop."""

    @functools.wraps(test)
    def wrapper(*given, **named):
        asyncio.run(test(*given, **named))

    return wrapper


class Watch:
    """Gets what a scheduler stores, and wakes the tasks that wait for it."""

    def __init__(self, scheduler):
        self.events = []
        self._changed = asyncio.Event()
        scheduler.subscribe(self._hear)

    def _hear(self, event):
        self.events.append(event)
        self._changed.set()

    async def until(self, condition, seconds=PATIENCE):
        """Wait until the condition holds for what was heard."""
        async with asyncio.timeout(seconds):
            while not condition(self.events):
                self._changed.clear()
                await self._changed.wait()

    async def finished(self, count=1):
        await self.until(lambda events: sum(event.type == "finished" for event in events) >= count)

    async def started(self, count=1):
        await self.until(lambda events: sum(event.type == "started" for event in events) >= count)


class Gate:
    """A sync handler that says when it is in and stays until it is let out."""

    def __init__(self):
        self.inside = threading.Semaphore(0)
        self.open = threading.Event()
        self.now = 0
        self.most = 0
        self._lock = threading.Lock()

    def __call__(self, run):
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.inside.release()
        self.open.wait(PATIENCE)
        with self._lock:
            self.now -= 1
        return threading.current_thread().name

    async def entered(self):
        """Wait, beside the event loop, until one more is in."""
        assert await asyncio.to_thread(self.inside.acquire, timeout=PATIENCE)


def make(tmp_path, **options):
    return Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}", timezone="UTC", **options)
