"""Waiting for what real processes do: until something is so, bounded, and no longer than that takes."""

from __future__ import annotations

import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
LOOK_S = 0.05  # from one look to the next, where nothing says that something changed


def until(look: Callable[[], T], is_so: Callable[[T], bool], end: float) -> T:
    """What `look` found when it was so, or last before `end` by the monotonic clock."""
    pause = threading.Event()
    while not is_so(found := look()) and time.monotonic() < end:
        pause.wait(LOOK_S)
    return found


def any_ends(processes: Iterable[subprocess.Popen[bytes]], end: float) -> bool:
    """Wait until one of these processes ends, or until `end`; whether one did.

    Each has a pipe for its input: when it ends, writing to that pipe becomes an error, which is waited for.
    """
    poll = select.poll()
    for process in processes:
        if process.stdin is not None:
            poll.register(process.stdin, select.POLLERR)
    return bool(poll.poll(max(0.0, end - time.monotonic()) * 1000))
