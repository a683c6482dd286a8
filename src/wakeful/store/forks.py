"""Forked children: a child process begins with copies of what its parent has open, and must neither keep nor use them.

A copy of a lock keeps it after the parent died, and a copy of a connection would mix into what the parent says. So in
a child the copies are closed at once, unnoticed by the server at the other end; and what was opened in the parent
says in the child that it cannot be used there. `multiprocessing` and `ProcessPoolExecutor` fork on Linux.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable
from typing import Any

from wakeful.errors import SchedulerForked

_forks = 0  # between the process that loaded this module and this one
_held: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


class Home:
    """The process in which something was opened."""

    def __init__(self) -> None:
        self._forks = _forks

    @property
    def left(self) -> bool:
        """Whether this is a child of that process."""
        return self._forks != _forks

    def refuse_child(self) -> None:
        """SchedulerForked, unless this is that process."""
        if self.left:
            raise SchedulerForked


def on_fork(held: Any, drop: Callable[[Any], None]) -> None:
    """In every child that is forked from now on, `drop` is called with `held`, while that is in use."""
    _held[held] = drop


def forget(descriptor: int) -> None:
    """Close the child's copy of a descriptor for good: whoever still writes to it or closes it does no harm."""
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)


def _in_child() -> None:
    global _forks  # noqa: PLW0603 - it is about this process, of which there is one
    _forks += 1
    for held, drop in list(_held.items()):
        drop(held)


os.register_at_fork(after_in_child=_in_child)
