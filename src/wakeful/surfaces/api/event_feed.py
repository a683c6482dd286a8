"""One look at the stored events for all who read them.

The newest groups are read once for all readers: at once when this process committed something, and once a second
for what others did. They are kept in a small ring for readers that are up to date, as they are sent, so that each
further reader costs its own sending and little else; one that is further behind reads the store itself, at its own
pace. Without readers nothing is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import islice

from wakeful import clock as clocks
from wakeful.kernel.views.events import events_of
from wakeful.scheduler import Scheduler
from wakeful.services import Service
from wakeful.store.records import EventGroup

log = logging.getLogger("wakeful.api")

LOOK_S = 1.0
PAUSE_S = 0.02  # commits within it are read together
BATCH = 200
#: What the ring keeps: seconds of a busy server. Whoever is further behind reads the store.
RING_GROUPS = 2_000
RING_CHARS = 500_000


def frame(event: str, data: object, event_id: str | None = None) -> str:
    """One event as it travels."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


class RenderedGroup:
    """A group of events as all readers get it, written out when the first one does."""

    __slots__ = ("_frames", "_group", "chars", "id", "stream")

    def __init__(self, group: EventGroup) -> None:
        self.id, self.stream, self.chars = group.id, group.stream, len(group.body)
        self._group: EventGroup | None = group
        self._frames: list[str] = []

    def frames(self) -> list[str]:
        """Its events, in order."""
        if self._group is not None:
            events = enumerate(events_of(self._group))
            self._frames = [frame(event.stream, event.to_dict(), f"{event.id}-{number}") for number, event in events]
            self._group = None
        return self._frames


class Feed(Service):
    """Belongs to one event loop; runs while there are readers."""

    def __init__(self, scheduler: Scheduler, ending: asyncio.Event) -> None:
        super().__init__("reading events", LOOK_S)
        self._server = scheduler.server_side
        self._ending = ending
        self._ring: list[RenderedGroup] = []  # by id
        self._chars = 0
        self._base: int | None = None  # the ring holds every group above this one, up to the tail; None: not yet
        self._tail = 0
        self.turn = 0  # goes up whenever there is something new
        self._news = asyncio.Event()
        self._at_end: asyncio.Task[bool] | None = None
        self._readers = 0
        self._server.on_commit(self.wake)

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """There is a reader."""
        self._readers += 1
        if not self.is_running:
            self.begin()
        try:
            yield
        finally:
            self._readers -= 1
            if self._readers == 0:
                self.cancel()
                self._ring.clear()
                self._base, self._chars = None, 0

    async def range(self) -> tuple[int, int]:
        """The oldest and the newest group on record."""
        return await self._server.event_ids()

    async def after(self, group: int, streams: Collection[str] | None) -> tuple[list[RenderedGroup], int]:
        """Groups of these streams above that one, some of them; and up to where there are no others if none came."""
        if self._base is not None and group >= self._base:
            newer = range(bisect_right(self._ring, group, key=_id_of), len(self._ring))
            found = (self._ring[at] for at in newer)
            fresh = (one for one in found if streams is None or one.stream in streams)
            return list(islice(fresh, BATCH)), self._tail
        tail = self._tail  # before the read: what it does not find, is not there up to here
        names = sorted(streams) if streams is not None else None
        return [RenderedGroup(one) for one in await self._server.read_events(group, names, BATCH)], tail

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

    def begin(self) -> None:
        super().begin()
        self._at_end = asyncio.get_running_loop().create_task(self._ending.wait())
        self._at_end.add_done_callback(lambda _: self._wake_readers())

    def cancel(self) -> asyncio.Task[None] | None:
        if self._at_end is not None:
            self._at_end.cancel()
        return super().cancel()

    async def run_once(self) -> None:
        """Read what is new since the last time."""
        if self._base is not None:
            await clocks.sleep(PAUSE_S)
            self._woken.clear()  # what was committed until here is read now
        else:
            _, newest = await self._server.event_ids()
            self._base = self._tail = newest
            self._wake_readers()
        while groups := await self._server.read_events(self._tail, None, BATCH):
            self._ring.extend(map(RenderedGroup, groups))
            self._chars += sum(len(one.body) for one in groups)
            self._tail = groups[-1].id
            self._forget()
            self._wake_readers()

    def _forget(self) -> None:
        """Let the oldest leave the ring where it is too large; the newest stays, whatever its size."""
        leaving = max(0, len(self._ring) - RING_GROUPS)
        self._chars -= sum(one.chars for one in self._ring[:leaving])
        while self._chars > RING_CHARS and leaving < len(self._ring) - 1:
            self._chars -= self._ring[leaving].chars
            leaving += 1
        if leaving:
            self._base = self._ring[leaving - 1].id
            del self._ring[:leaving]

    def _wake_readers(self) -> None:
        self.turn += 1
        self._news.set()
        self._news = asyncio.Event()


def _id_of(group: RenderedGroup) -> int:
    return group.id
