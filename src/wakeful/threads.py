"""Threads for what blocks. Each room has its own, so that what hangs in one keeps nothing else from its work.

A thread cannot be stopped: a call that its caller gave up works on, and keeps its thread until it returns. Such calls
are counted per room and can be watched; a room whose threads are all taken by them refuses more. The threads are
daemons: nothing waits for one when the process ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from wakeful.counting import counted
from wakeful.errors import ThreadsBusy

P = ParamSpec("P")
T = TypeVar("T")
LIMIT = 16

_LOCK = threading.Lock()
_LEFT: Counter[str] = Counter()  # by room: calls that were given up and have not returned
_WATCHERS: list[Callable[[], None]] = []
_ROOMS: dict[str, LimitedThreadPool] = {}


def left_behind() -> dict[str, int]:
    """How many calls of each room were given up and have not returned."""
    with _LOCK:
        return {name: count for name, count in _LEFT.items() if count}


def watch(watcher: Callable[[], None]) -> Callable[[], None]:
    """Call `watcher`, in any thread, whenever what `left_behind` says has changed; call the answer to end that."""
    with _LOCK:
        _WATCHERS.append(watcher)

    def unwatch() -> None:
        with _LOCK:
            _WATCHERS.remove(watcher)

    return unwatch


def room(name: str, limit: int = LIMIT) -> LimitedThreadPool:
    """The room of that name, the same every time."""
    with _LOCK:
        if name not in _ROOMS:
            _ROOMS[name] = LimitedThreadPool(name, limit)
        return _ROOMS[name]


class LimitedThreadPool(ThreadPoolExecutor):
    """At most `limit` threads for one purpose. Of this class because asyncio takes no other as a loop's default."""

    def __init__(self, name: str, limit: int = LIMIT) -> None:
        super().__init__(limit, name)
        self.name = name
        self._limit = limit
        self._left = 0
        self._pool = Pool(f"wakeful-{name.replace(' ', '-')}")
        weakref.finalize(self, self._pool.end)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function returns or raises in a thread of this room. ThreadsBusy where none will be free."""
        if getattr(asyncio.get_running_loop(), "runs_inline", False):  # in virtual time
            return function(*args, **kwargs)
        future = self.submit(contextvars.copy_context().run, function, *args, **kwargs)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._leave(future)
            raise

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The same for executors: a future, which can be cancelled until a thread has begun it."""
        if self._left >= self._limit:
            raise ThreadsBusy(f"{counted(self._left, 'call')} of {self.name} did not return, and no thread is left.")
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                value = function(*args, **kwargs)
            except StopIteration as error:  # a future of asyncio does not take it
                future.set_exception(RuntimeError(f"the function raised {error!r}"))
            except Exception as error:  # noqa: BLE001 - it belongs to who awaits the call
                future.set_exception(error)
            except BaseException as error:  # noqa: BLE001 - in the loop it would end the server, or cancel who awaits it
                future.set_exception(RuntimeError(f"the function raised {error!r}"))
            else:
                future.set_result(value)

        self._pool.put(work, self._limit)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as given
        """Let the threads go, each when it has nothing left to do. None is waited for, whatever `wait` says."""
        del wait, cancel_futures
        self._pool.end()

    def _leave(self, future: Future[Any]) -> None:
        if future.done():  # cancelled before a thread began it, or over just now
            return
        self._count(1)
        future.add_done_callback(lambda _: self._count(-1))

    def _count(self, change: int) -> None:
        with _LOCK:
            self._left += change
            _LEFT[self.name] += change
            watchers = list(_WATCHERS)
        for watcher in watchers:
            watcher()


class Pool:
    """Daemon threads that serve one queue until it ends; up to the limit, each piece of work has its own."""

    def __init__(self, name: str = "wakeful-run") -> None:
        self._name = name
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = 0
        self._unfinished = 0  # counted here: an idle thread takes a moment to take what it is given
        self._lock = threading.Lock()

    def put(self, work: Callable[[], None], limit: int) -> None:
        with self._lock:
            if self._threads < min(self._unfinished + 1, limit):
                threading.Thread(target=self._serve, name=f"{self._name}-{self._threads + 1}", daemon=True).start()
                self._threads += 1  # counted once it is there: the system may refuse one
            self._unfinished += 1
        self._work.put(work)

    def end(self) -> None:
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return
            try:
                work()
            finally:
                with self._lock:
                    self._unfinished -= 1
            del work  # or it, and all it holds, is kept until the next one comes
