"""Threads in virtual time: their work takes as long as it says, and goes on when nobody waits for it any more.

On a real loop what a handler gives to executors is counted as its work; here it is counted in the same way.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from wakeful.domains.workflows import threads
from wakeful.testing import VirtualLoop


class Work:
    """What a thread does: nothing for so many seconds, and then its deed."""

    def __init__(self, seconds: float, deed: Callable[[], Any], over: Callable[[], None]) -> None:
        self.seconds = seconds
        self._deed = deed
        self.over = over  # called when the thread ends, in whatever way

    def __call__(self) -> Any:
        return self._deed()


class ThreadedLoop(VirtualLoop):
    """An event loop on a virtual clock whose executors are simulated: `asyncio.to_thread(Work(...))` just works."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self._ends: dict[asyncio.TimerHandle, Callable[[], None]] = {}  # what each thread is to say when it ends

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        work, owner = _work_in(func, args), threads.current()
        future: asyncio.Future[Any] = self.create_future()
        counted = owner is not None and owner.begin()

        def end() -> None:
            if work is not None:
                work.over()
            if owner is not None and counted:
                owner.end()

        def finish() -> None:
            del self._ends[handle]
            ending = _attempt(functools.partial(func, *args))
            end()
            _tell(future, *ending)

        handle = self.call_later(work.seconds if work is not None else 0, finish)
        self._ends[handle] = end
        return future

    def end_threads(self) -> None:
        """The process is gone, and its threads with it."""
        ends, self._ends = self._ends, {}
        for handle, end in ends.items():
            handle.cancel()
            end()


def _attempt(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001 - handed to whoever still waits
        return None, error


def _tell(future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


def _work_in(func: Any, args: tuple[Any, ...]) -> Work | None:
    """The work that a call given to an executor comes to, through what wraps it."""
    for found in (func, *args):
        if isinstance(found, Work):
            return found
        if isinstance(found, functools.partial):
            inner = _work_in(found.func, found.args)
            if inner is not None:
                return inner
    return None
