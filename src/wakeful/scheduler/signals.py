"""Ending a program that only runs jobs: Ctrl-C and SIGTERM stop its scheduler in good order."""

from __future__ import annotations

import asyncio
import functools
import signal
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self


class StopOnSignals:
    """While it is entered, the first signal calls `stop(wait_for_jobs=True)`, every further one `False`.

    Only on the main thread, and only where the program has no handlers of its own.
    """

    def __init__(self, stop: Callable[[bool], Coroutine[Any, Any, None]]) -> None:
        self._stop = stop
        self._before: dict[signal.Signals, Any] = {}
        self._stopping: list[asyncio.Task[None]] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if _is_default(before):
                    loop.add_signal_handler(number, self._hear)
                    self._before[number] = before
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        loop = asyncio.get_running_loop()
        for number, before in self._before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, before)

    def _hear(self) -> None:
        self._stopping.append(asyncio.get_running_loop().create_task(self._stop(not self._stopping)))

    async def finish(self) -> None:
        """Wait for the stop that a signal began; raises what it raised."""
        for task in self._stopping:
            await task


def _is_default(handler: Any) -> bool:
    """Whether a program left the signal as Python and `asyncio.run` set it."""
    runner = getattr(handler.func, "__self__", None) if isinstance(handler, functools.partial) else None
    return handler in (signal.SIG_DFL, signal.default_int_handler) or isinstance(runner, asyncio.Runner)
