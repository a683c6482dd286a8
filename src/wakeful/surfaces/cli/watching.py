"""A long calculation on a terminal: how far it is, how long it still takes, and Ctrl-C ends it with what there is."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wakeful.clock import SystemClock
from wakeful.console.failures import say_note
from wakeful.console.humanize import span
from wakeful.console.tables import console

if TYPE_CHECKING:
    from rich.progress import Progress

QUIET_MS = 2_000  # what takes no longer says nothing
NOTED_MS = 10_000  # elsewhere than in a terminal, one line says how long it takes


@contextmanager
def watching() -> Iterator[Callable[[float], bool]]:
    """What is called with the part that is done, and says whether to go on: until Ctrl-C, whose second ends it all."""
    shown = _Shown()
    stopped = threading.Event()

    def stop(*_: Any) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, before)

    def watch(part: float) -> bool:
        shown.show(part)
        return not stopped.is_set()

    if threading.current_thread() is not threading.main_thread():  # which alone hears signals
        yield watch
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield watch
    finally:
        signal.signal(signal.SIGINT, before)
        shown.end()


class _Shown:
    """A bar in a terminal, one line elsewhere; nothing for what is soon done."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._began = self._clock.boot()
        self._in_terminal = sys.stderr.isatty()
        self._noted = False
        self._bar: Progress | None = None

    def show(self, part: float) -> None:
        took = self._clock.boot() - self._began
        if part <= 0 or part >= 1 or took < QUIET_MS:
            return
        left = f"about {span(max(1_000, round(took / part - took)))} left"
        if self._in_terminal:
            self._draw(part, left)
        elif took >= NOTED_MS and not self._noted:
            self._noted = True
            say_note(f"{part:.0%} simulated, {left}: Ctrl-C ends it and shows what there is")

    def _draw(self, part: float, left: str) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        if self._bar is None:
            columns = (BarColumn(), TextColumn("{task.percentage:>3.0f}%  {task.description}"))
            self._bar = Progress(*columns, console=console(stderr=True), transient=True)
            self._bar.add_task("", total=1)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=part, description=f"{left}; Ctrl-C shows what there is")

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
