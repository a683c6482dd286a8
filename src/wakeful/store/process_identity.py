"""Who runs a store, in a form that another process can check: is it still running?

A process is known by its number, which the system gives out again, and which several schedulers in one process share.
So a node is more than its process: each start of a scheduler is an incarnation of its own, and this process knows which
of them it still runs.

A forked child begins with copies of what its parent has open, and must neither keep nor use them. A copy of a lock
keeps it after the parent died, and a copy of a connection would mix into what the parent says. So in a child the
copies are closed at once, unnoticed by the server at the other end; and what was opened in the parent says in the child
that it cannot be used there. `multiprocessing` and `ProcessPoolExecutor` fork on Linux.
"""

from __future__ import annotations

import contextlib
import os
import socket
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wakeful.errors import SchedulerForked

_here: set[int] = set()  # the incarnations of nodes that this process runs


def unique_name() -> str:
    """A name for a node that was given none, and that no other has: not one of this process or of this machine."""
    return f"{socket.gethostname()}-{os.urandom(4).hex()}"


def enter(node_id: int) -> None:
    """This process runs that incarnation of a node from now on."""
    _here.add(node_id)


def leave(node_id: int) -> None:
    """It does not run it any more."""
    _here.discard(node_id)


def myself() -> dict[str, object]:
    """What identifies this process among all others, as far as the system allows."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "pids": _pid_space()}


def is_dead(node_id: int, who: Mapping[str, object]) -> bool:
    """Whether that incarnation of a node has ended, for all we can see.

    It was one of this machine, and the number of its process is free; or it is our number, and we do not run that node.
    False where we cannot know: another machine, or a container whose process numbers are not ours.
    """
    if not is_seen_from_here(who):
        return False
    pid = int(str(who.get("pid", 0)))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return pid == os.getpid() and node_id not in _here


def is_seen_from_here(who: Mapping[str, object]) -> bool:
    """Whether it is a process of this machine whose number is one of ours."""
    return who.get("host") == socket.gethostname() and who.get("pids", "") == _pid_space()


def _pid_space() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux: there is one for the whole machine
        return ""


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
