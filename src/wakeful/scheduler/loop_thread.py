"""An event loop in a thread of its own, for callers that do not `await`."""

from __future__ import annotations

import _thread
import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from wakeful.errors import SchedulerError, SchedulerForked, SchedulerNotOpen
from wakeful.store.process_identity import Home

T = TypeVar("T")
Work = Coroutine[Any, Any, T]

NOT_OPEN = "The scheduler has no open store: use `with scheduler:` (or `scheduler.open()`) around this call."
OWN_LOOP = (
    "This call would wait for the event loop that it runs on: make the handler a plain function, "
    "or use wakeful.Scheduler with await."
)


class _LoopCall(Generic[T]):
    """A coroutine that runs on the loop of another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Work[T]) -> None:
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._ended: concurrent.futures.Future[T] = concurrent.futures.Future()
        loop.call_soon_threadsafe(self._begin, work)

    def _begin(self, work: Work[T]) -> None:
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._settle)

    def _settle(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._ended.cancel()
            self._ended.set_running_or_notify_cancel()  # this wakes waiting threads, the line above does not
        elif (error := task.exception()) is not None:
            self._ended.set_exception(error)
        else:
            self._ended.set_result(task.result())

    def wait(self) -> None:
        concurrent.futures.wait([self._ended])

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(lambda: self._task is not None and self._task.cancel())

    def cancelled(self) -> bool:
        return self._ended.cancelled()

    def result(self) -> T:
        return self._ended.result()


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()  # nothing is begun on a loop that ends
        self._ended = False
        self._home = Home()
        self._thread = threading.Thread(target=self._serve, name="wakeful-sync", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._ended:
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit):  # raised by a handler: it is for the program, not for this thread
                _thread.interrupt_main()

    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    @property
    def left(self) -> bool:
        """Whether this is a forked child, in which the thread does not exist."""
        return self._home.left

    def begin(self, work: Work[T]) -> _LoopCall[T]:
        if self._home.left:  # nobody would ever call it
            work.close()
            raise SchedulerForked
        refused = SchedulerError(OWN_LOOP) if self.is_current() else None
        with self._lock:
            refused = SchedulerNotOpen(NOT_OPEN) if self._ended else refused
            if refused is None:
                return _LoopCall(self._loop, work)
        work.close()
        raise refused

    def call(self, work: Work[T]) -> T:
        """What a coroutine returns or raises. When the caller is interrupted, the coroutine is cancelled first."""
        call = self.begin(work)
        try:
            call.wait()
        except BaseException:
            call.cancel()
            call.wait()
            raise
        return call.result()

    def end(self) -> None:
        """Cancel what is left on the loop, and end the thread; a forked child has no such thread."""
        if self._home.left:
            return
        with self._lock:
            self._ended = True
            last = _LoopCall(self._loop, _cancel_others())
        last.wait()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()
