"""Names the handler whose code blocks the event loop: while it does, nothing else in this process runs.

Each step of a handler, from one `await` to the next, is timed. A thread of its own logs a step that takes too long
while it still does, with the line it stands at; how long it took is a note on the run.
"""

from __future__ import annotations

import logging
import sys
import sysconfig
import threading
import traceback
from collections.abc import Awaitable, Generator
from pathlib import Path
from typing import Any, NamedTuple

from wakeful import clock

log = logging.getLogger("wakeful.workflows")

LIMIT_MS = 1_000
LOOK_S = 0.25
OURS = Path(__file__).resolve().parents[2]
#: Where Python and what is installed for it lie.
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
#: Blocking takes real time, also where the scheduler's own is virtual.
_CLOCK = clock.SystemClock()


class _BlockedStep(NamedTuple):
    what: str
    thread: int
    began: int  # by boot time


class LoopWatch:
    """Watches the steps of one call of a handler."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.longest_ms = 0

    @property
    def note(self) -> str | None:
        """What the author should know, where a step was too long."""
        if self.longest_ms < LIMIT_MS:
            return None
        return f"{self._what} blocked the event loop for {self.longest_ms / 1000:.1f} s"

    def watch(self, call: Awaitable[Any]) -> _Watched:
        """The same call, its steps timed."""
        return _Watched(self, call)

    def begin_step(self) -> _BlockedStep:
        step = _BlockedStep(self._what, threading.get_ident(), _CLOCK.boot())
        _WATCHMAN.watch(step)
        return step

    def end_step(self, step: _BlockedStep) -> None:
        _WATCHMAN.leave(step)
        self.longest_ms = max(self.longest_ms, _CLOCK.boot() - step.began)


class _Watched:
    def __init__(self, watch: LoopWatch, call: Awaitable[Any]) -> None:
        self._watch = watch
        self._call = call

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._call.__await__()
        given: Any = None
        thrown: BaseException | None = None
        while True:
            step = self._watch.begin_step()
            try:
                wanted = _advance(steps, given, thrown)
            except StopIteration as end:
                return end.value
            finally:
                self._watch.end_step(step)
            given, thrown = None, None
            try:
                given = yield wanted
            except GeneratorExit:
                _close(steps)
                raise
            except BaseException as error:  # noqa: BLE001 - it is the handler's: a cancel, or what it awaited raised
                thrown = error


def _advance(steps: Any, given: Any, thrown: BaseException | None) -> Any:
    if thrown is not None:
        return steps.throw(thrown)
    return next(steps) if given is None else steps.send(given)


def _close(steps: Any) -> None:
    close = getattr(steps, "close", None)
    if close is not None:
        close()


class _Watchman:
    """One thread for all loops of this process; it sleeps while no handler has begun a step for a while."""

    def __init__(self) -> None:
        self._steps: dict[int, _BlockedStep] = {}  # by thread: a loop runs one step at a time
        self._awake = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def watch(self, step: _BlockedStep) -> None:
        self._steps[step.thread] = step
        if not self._awake.is_set():
            self._awake.set()
        if self._thread is None:
            self._start()

    def leave(self, step: _BlockedStep) -> None:
        self._steps.pop(step.thread, None)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._go_round, name="wakeful-loop-watch", daemon=True)
                self._thread.start()

    def _go_round(self) -> None:
        named: _BlockedStep | None = None
        while True:
            self._awake.wait()
            self._awake.clear()
            clock.block(LOOK_S)
            for step in list(self._steps.values()):
                self._awake.set()  # whose end may still be long
                if step is not named and _CLOCK.boot() - step.began >= LIMIT_MS:
                    named = step
                    log.warning(
                        "%s blocks the event loop%s. Nothing else runs meanwhile: await what waits, or use "
                        "asyncio.to_thread.",
                        step.what,
                        _place(step.thread),
                    )


def _place(thread: int) -> str:
    """The line of the author's code that a thread stands at."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the only way to see where another thread is
    if frame is None:
        return ""
    frames = traceback.extract_stack(frame)
    begun = max((number for number, one in enumerate(frames) if one.filename == __file__), default=-1)
    outside = [one for one in frames[begun + 1 :] if not Path(one.filename).is_relative_to(OURS)]
    own = [one for one in outside if not _is_library(one.filename)]
    if not own:  # a handler that is installed as a library: a line next to it says more than one deep inside another
        own = [one for one in outside if Path(one.filename).parent == Path(outside[0].filename).parent]
    return f" at {own[-1].filename}:{own[-1].lineno}" if own else ""


def _is_library(file: str) -> bool:
    return file.startswith("<") or any(Path(file).is_relative_to(folder) for folder in LIBRARIES)


_WATCHMAN = _Watchman()
