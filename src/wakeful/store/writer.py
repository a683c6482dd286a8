"""The writer's thread: works are handed in on an event loop, committed together, and answered there.

Works that arrive while a commit is under way form the next group. How a group is committed is the dialect's affair;
here is only who waits for whom.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wakeful import clock as clocks

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Transaction
    from wakeful.store.records import EventGroup

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
        self, clock: Clock, commit: Callable[[list[Item]], None], notify: Callable[[list[EventGroup]], None]
    ) -> None:
        self._clock = clock
        self._commit = commit
        self._notify = notify
        self._inbox: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="wakeful-write", daemon=True)
        self._thread.start()

    async def write(self, item: Item) -> Any:
        """Hand in a work and wait for its commit; the commit goes on even if the caller is cancelled."""
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
