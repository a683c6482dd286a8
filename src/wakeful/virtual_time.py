"""An event loop in virtual time: when every task waits, time jumps to the next moment that a task waits for."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

from wakeful import clock as clocks
from wakeful.errors import SchedulerError
from wakeful.triggers.durations import interval_ms

T = TypeVar("T")


class VirtualClock(clocks.ManualClock):
    """A clock for tests; with `run`, time passes by itself whenever everybody waits."""

    async def sleep(self, interval: str | float | timedelta) -> None:
        """Let that much time pass, and everything that is due in it happen: `await clock.sleep("3d")`."""
        await clocks.sleep(interval_ms(interval) / 1000)
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            await loop.settle()


class _JumpingSelector(selectors.BaseSelector):
    """Waiting for nothing takes no time: the clock jumps to the moment the loop wants to wake up."""

    def __init__(self, clock: clocks.ManualClock) -> None:
        self._clock = clock
        self._map: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self._map[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._map.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._map

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            message = "Every task waits for something that can never happen in virtual time."
            raise SchedulerError(message)
        if timeout > 0:
            self._clock.elapse(timeout + 1e-6)  # past the timer's rounding, so that it is due
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a virtual clock."""

    runs_inline = True  # what is for threads

    def __init__(self, clock: clocks.ManualClock) -> None:
        self._virtual = clock
        self._settling = 0
        super().__init__(_JumpingSelector(clock))

    def time(self) -> float:
        return self._virtual.monotonic()

    async def settle(self) -> None:
        """Let everything happen that can still happen at this very moment."""
        self._settling += 1
        try:
            while self._has_more_now():
                await clocks.sleep(0)
        finally:
            self._settling -= 1

    def _has_more_now(self) -> bool:
        # Others who settle are ready too, each with one callback: waiting for each other they would wait forever.
        due = self._scheduled and self._scheduled[0].when() <= self.time()  # type: ignore[attr-defined]
        return len(self._ready) >= self._settling or bool(due)  # type: ignore[attr-defined]

    def _make_self_pipe(self) -> None:
        """No socket: it would only wake a loop that waits, and this one never does."""
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        pass

    def call_soon_threadsafe(self, *_: Any, **__: Any) -> NoReturn:  # type: ignore[override]
        self._refuse("another thread")

    def run_in_executor(self, _: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Run it at once, on this thread: as seen by virtual time it takes none."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits the call
            done.set_exception(error)
        return done

    async def create_connection(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("a socket")

    async def create_server(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("a socket")

    async def subprocess_exec(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("a subprocess")

    async def subprocess_shell(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("a subprocess")

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        message = f"Virtual time cannot wait for {what}: use a real event loop for that."
        raise SchedulerError(message)


def run(main: Coroutine[Any, Any, T], clock: clocks.ManualClock | None = None) -> T:
    """Run a coroutine to its end in virtual time."""
    chosen = clock if clock is not None else VirtualClock()
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(chosen)) as runner:
        return runner.run(main)
