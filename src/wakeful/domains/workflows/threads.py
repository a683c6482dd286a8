"""What handlers do in threads. A thread cannot be stopped: one that was cut off works on, and that is known here.

While it does, nothing of its workflow starts: a mutation that still works has not ended, whatever `reconcile` would
find. The threads are ours, or those of an executor that the handler gave work to through the event loop
(`asyncio.to_thread`, `loop.run_in_executor`). They are daemons: one that never comes back does not keep the process
from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TypeVar

from wakeful.threads import Pool

T = TypeVar("T")
log = logging.getLogger("wakeful.workflows")
MAX_THREADS = 64
#: Looking up a name changes nothing outside, and may take long: nothing waits for it.
HARMLESS = ("getaddrinfo", "getnameinfo", "_getaddrinfo_debug")

_LOCK = threading.Lock()
_POOL = Pool("wakeful-handler")
_LEFT: Counter[int] = Counter()  # runs of this process that are over and whose threads still work: how many calls


def is_left(run_id: int | None) -> bool:
    """Whether a run of this process is over while a thread of it, or a call that it shielded, still works."""
    with _LOCK:
        return run_id is not None and _LEFT[run_id] > 0


class Work:
    """What one call of a handler does in threads."""

    def __init__(self, run_id: int, *, inline: bool = False) -> None:
        self.inline = inline  # in virtual time
        self._run_id = run_id
        self._running = 0
        self._programs = 0
        self._over = self._is_cut = False
        self._on_end: Callable[[], None] | None = None

    def begin(self) -> bool:
        """A thread is about to work; False once the call is over: then it must not."""
        with _LOCK:
            self._running += not self._over
            return not self._over

    def end(self) -> None:
        """A thread has done its work."""
        with _LOCK:
            self._running -= 1
            is_last = self._over and not self._running
            if is_last:
                _LEFT[self._run_id] -= 1
                if not _LEFT[self._run_id]:
                    del _LEFT[self._run_id]
        if is_last and self._on_end is not None:
            self._on_end()

    def begin_program(self) -> Callable[[], None] | None:
        """A program is about to be started; what to call when it has ended. None once the call is over."""
        with _LOCK:
            if self._over:
                return None
            self._programs += 1
        ends = [self._end_program]  # it may be said twice that it has ended
        return lambda: ends.pop()() if ends else None

    def _end_program(self) -> None:
        with _LOCK:
            self._programs -= 1
            is_waited_for = self._over and self._is_cut
        if is_waited_for:
            self.end()

    def leave(self, at_end: Callable[[], Callable[[], None]], *, cut: bool = True) -> bool:
        """The call is over: nothing begins any more. Whether a thread still works, or a program where a change was
        `cut` off; what `at_end` gives is called when none does.
        """
        with _LOCK:
            self._over, self._is_cut = True, cut
            self._running += self._programs if cut else 0
            if self._running:
                self._on_end = at_end()
                _LEFT[self._run_id] += 1
            return bool(self._running)

    def start(self, function: Callable[..., T], *given: Any) -> asyncio.Future[T]:
        """A future of what the function returns or raises in a thread of ours. Cancelling it does not stop it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> tuple[T | None, BaseException | None]:
            try:
                return function(*given), None
            except BaseException as error:  # noqa: BLE001 - it belongs to who awaits the call
                return None, error

        def report(ending: tuple[T | None, BaseException | None]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_finish, future, *ending)

        if self.inline:
            _finish(future, *run())
        else:
            self.put(run, report)
        return future

    def put(self, function: Callable[[], T], report: Callable[[T], None]) -> None:
        """Call a function that raises nothing in a thread of ours, and then, in that thread, tell what it returned."""

        def work() -> None:
            if not self.begin():
                return
            try:
                value = function()
            finally:
                self.end()  # first: who is report may look at once
            report(value)

        _POOL.put(work, MAX_THREADS)

    def submit(self, executor: Executor, function: Callable[..., T], *given: Any) -> asyncio.Future[T]:
        """The same with another executor, whose workers may be processes: it counts until that says that it is over."""
        if not self.begin():
            over: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            over.cancel()
            return over
        try:
            future = executor.submit(function, *given)
        except BaseException:
            self.end()
            raise
        future.add_done_callback(lambda _: self.end())  # before who waits for it is told
        return asyncio.wrap_future(future)


def _finish(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # a future does not take it
        future.set_exception(RuntimeError(f"the function raised {error!r}"))
    else:
        future.set_exception(error)


_CURRENT: contextvars.ContextVar[Work | None] = contextvars.ContextVar("wakeful_work", default=None)


def current() -> Work | None:
    """The work of the handler's call that this code runs in."""
    return _CURRENT.get()


class seen_by:  # noqa: N801 - used like a function, and quicker than one with contextmanager
    """What this code, and the tasks that it starts, give to threads belongs to that work; None: to no handler."""

    __slots__ = ("_token", "_work")

    def __init__(self, work: Work | None) -> None:
        self._work = work

    def __enter__(self) -> None:
        if self._work is not None and not self._work.inline:
            _watch_executors(asyncio.get_running_loop())
        self._token = _CURRENT.set(self._work)

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)


@contextmanager
def counted(work: Work | None) -> Iterator[None]:
    """This code counts as work like that of a thread, until it has ended."""
    begun = work is not None and work.begin()
    try:
        yield
    finally:
        if work is not None and begun:
            work.end()


def _watch_executors(loop: asyncio.AbstractEventLoop) -> None:
    """See what handlers give to executors: the loop has no other place where that can be seen."""
    original = loop.run_in_executor
    if getattr(original, "is_watched", False):
        return

    def run_in_executor(executor: Any, function: Callable[..., T], *given: Any) -> asyncio.Future[T]:
        work = _CURRENT.get()
        if work is None or getattr(function, "__name__", None) in HARMLESS:
            return original(executor, function, *given)
        # Threads of the default executor are waited for when the process ends. Ours are not.
        if executor is None:
            return work.start(function, *given)
        return work.submit(executor, function, *given)

    run_in_executor.is_watched = True  # type: ignore[attr-defined]
    try:
        loop.run_in_executor = run_in_executor  # type: ignore[method-assign, assignment]
    except AttributeError:
        log.warning("the threads of handlers cannot be seen on a %s: use ctx.call", type(loop).__name__)
