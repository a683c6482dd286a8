"""The writer's thread: works are handed in on an event loop, committed together, and answered there.

Works that arrive while a commit is under way form the next group. How a group is committed is the dialect's affair;
here is only who waits for whom, and what a store of either dialect has besides.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from wakeful import clock as clocks
from wakeful.errors import SchedulerNotOpen
from wakeful.store.process_identity import Home

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Transaction
    from wakeful.store.records import EventGroup

T = TypeVar("T")

READERS = 2
GROUP = 64  # works committed together at most
LONGEST_MOMENT_S = 0.01


class Item:
    """A work on its way through the writer: it leaves with a result or an error."""

    __slots__ = ("error", "future", "groups", "not_before", "result", "work")

    def __init__(self, work: Callable[[Transaction], Any], not_before: int | None = None) -> None:
        self.work = work
        self.not_before = not_before
        self.future: asyncio.Future[Any] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.groups: list[EventGroup] = []

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


class WriterThread:
    """Takes items one group at a time and gives each to `commit`, then answers on the loop they came from."""

    def __init__(
        self,
        clock: Clock,
        commit: Callable[[list[Item]], None],
        notify: Callable[[list[EventGroup]], None],
        rest: Callable[[bool], None] | None = None,
    ) -> None:
        """`rest` is called between two groups, on this thread, with whether more works wait."""
        self._clock = clock
        self._commit = commit
        self._notify = notify
        self._rest = rest
        self._inbox: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="wakeful-write", daemon=True)
        self._thread.start()

    async def write(self, item: Item) -> Any:
        """Hand in a work and wait for its commit; the commit continues even if the caller is cancelled."""
        item.future = asyncio.get_running_loop().create_future()
        self._inbox.put(item)
        return await item.future

    def finish(self) -> None:
        """Commit what was handed in, and end; blocks."""
        self._inbox.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while True:
            last = self._inbox.get()
            items = [last] if last is not None else []
            while last is not None and len(items) < GROUP and not self._inbox.empty():
                last = self._inbox.get()
                if last is not None:
                    items.append(last)
            self._await_moment(items)
            self._commit(items)
            for item in items:
                self._reply(item)
            if last is None:
                return
            if self._rest is not None:
                self._rest(not self._inbox.empty())

    def _await_moment(self, items: list[Item]) -> None:
        moments = [item.not_before for item in items if item.not_before is not None]
        delay = self._clock.until(min(moments)) if moments else 0.0
        if 0 < delay < LONGEST_MOMENT_S:
            clocks.block(delay)

    def _reply(self, item: Item) -> None:
        if item.future is not None:
            loop = item.future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._resolve, item)

    def _resolve(self, item: Item) -> None:
        if item.error is None:
            self._notify(item.groups)
        if item.future is None or item.future.done():
            return
        if item.error is not None:
            item.future.set_exception(item.error)
        else:
            item.future.set_result(item.result)


class WrittenStore:
    """What both stores have: one writer, a few threads that read, and who is told of changes."""

    def __init__(self, clock: Clock, *, inline: bool) -> None:
        """Without a thread (`inline`), transactions run where they are handed in: in virtual time, nothing overlaps."""
        self.clock = self._clock = clock
        self._inline = inline
        self._open = False
        self._home = Home()
        self._thread: WriterThread | None = None
        self._readers = self._new_readers()
        self._on_change: Callable[[], None] = lambda: None
        self._listeners: list[Callable[[list[EventGroup]], None]] = []

    @staticmethod
    def _new_readers() -> ThreadPoolExecutor:
        return ThreadPoolExecutor(READERS, thread_name_prefix="wakeful-read")

    async def _aside(self, work: Callable[[], T]) -> T:
        """Run what blocks on a thread, if there are threads."""
        if self._inline:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def _end_threads(self) -> None:
        """Finish what was handed in; what follows would never be looked at."""
        if self._thread is not None:
            await self._aside(self._thread.finish)
            self._thread = None
        self._readers.shutdown()
        self._readers = self._new_readers()

    # -- transactions -------------------------------------------------------------------------------------------------

    async def write(self, work: Callable[[Transaction], T], *, not_before: int | None = None) -> T:
        self._refuse_closed()
        item = Item(work, not_before)
        if self._thread is not None:
            return await self._thread.write(item)  # type: ignore[no-any-return]
        self._commit([item])
        result = item.outcome()
        self._notify(item.groups)
        return result  # type: ignore[no-any-return]

    async def read(self, work: Callable[[Transaction], T]) -> T:
        self._refuse_closed()
        return await self._aside(lambda: self._read(work))

    def _refuse_closed(self) -> None:
        self._home.refuse_child()
        if not self._open:
            raise SchedulerNotOpen

    def _commit(self, items: list[Item]) -> None:
        """Each item ends with a result that is stored, or with an error and nothing stored."""
        raise NotImplementedError

    def _read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on a snapshot, on the thread that this is called on."""
        raise NotImplementedError

    # -- changes ------------------------------------------------------------------------------------------------------

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the loop as soon as another process makes known that it wrote."""
        self._on_change = listener

    def on_events(self, listener: Callable[[list[EventGroup]], None]) -> None:
        self._listeners.append(listener)

    def _notify(self, groups: list[EventGroup]) -> None:
        if groups:
            for listener in self._listeners:
                listener(groups)
