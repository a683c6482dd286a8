"""One look at the stored events for all who read them.

The newest groups are read once for all readers: at once when this process committed something, and once a second
for what others did. They are kept in a small ring for readers that are up to date; one that is further behind reads the
store itself, at its own pace. Without readers nothing is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Collection, Iterator

from wakeful import clock as clocks
from wakeful.errors import SchedulerError
from wakeful.scheduler import Scheduler
from wakeful.store.records import EventGroup

log = logging.getLogger("wakeful.api")

LOOK_S = 1.0
PAUSE_S = 0.02  # commits within it are read together
BATCH = 200
RING_CHARS = 4_000_000


class Feed:
    """Belongs to one event loop."""

    def __init__(self, scheduler: Scheduler, ending: asyncio.Event) -> None:
        self._server = scheduler.server_side
        self._ending = ending
        self._ring: deque[EventGroup] = deque()
        self._chars = 0
        self._base: int | None = None  # the ring holds every group above this one, up to the tail; None: not yet
        self._tail = 0
        self.turn = 0  # goes up whenever there is something new
        self._news = asyncio.Event()
        self._committed = asyncio.Event()
        self._readers = 0
        self._task: asyncio.Task[None] | None = None
        self._server.on_commit(self._committed.set)

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """There is a reader."""
        self._readers += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look(), name="wakeful-feed")
        try:
            yield
        finally:
            self._readers -= 1
            if self._readers == 0 and self._task is not None:
                self._task.cancel()
                self._task = None
                self._ring.clear()
                self._base, self._chars = None, 0

    async def range(self) -> tuple[int, int]:
        """The oldest and the newest group on record."""
        return await self._server.event_ids()

    async def after(self, group: int, streams: Collection[str] | None) -> tuple[list[EventGroup], int]:
        """Groups of these streams above that one, some of them; and up to where there are no others if none came."""
        if self._base is not None and group >= self._base:
            fresh = (one for one in self._ring if one.id > group and (streams is None or one.stream in streams))
            return list(itertools.islice(fresh, BATCH)), self._tail
        tail = self._tail  # before the read: what it does not find, is not there up to here
        names = sorted(streams) if streams is not None else None
        return await self._server.read_events(group, names, BATCH), tail

    async def changed(self, seen: int, seconds: float) -> bool:
        """Wait until there is something new since turn `seen`, or the server ends; False when that took too long."""
        try:
            async with asyncio.timeout(seconds):
                while self.turn == seen and not self._ending.is_set():
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    # -- the one look -------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        ending = loop.create_task(self._ending.wait())
        ending.add_done_callback(lambda _: self._wake())
        troubled = False
        try:
            while True:
                try:
                    await self._take()
                    troubled = False
                except SchedulerError as error:
                    if not troubled:  # said once, not every second
                        log.warning("database unavailable, event streams wait: %s", error)
                    troubled = True
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._committed.wait()
                await clocks.sleep(PAUSE_S)
        finally:
            ending.cancel()

    async def _take(self) -> None:
        self._committed.clear()
        if self._base is None:
            _, newest = await self._server.event_ids()
            self._base = self._tail = newest
            self._wake()
        while groups := await self._server.read_events(self._tail, None, BATCH):
            self._ring.extend(groups)
            self._chars += sum(len(one.body) for one in groups)
            self._tail = groups[-1].id
            while self._chars > RING_CHARS and len(self._ring) > 1:
                gone = self._ring.popleft()
                self._chars -= len(gone.body)
                self._base = gone.id
            self._wake()

    def _wake(self) -> None:
        self.turn += 1
        self._news.set()
        self._news = asyncio.Event()
