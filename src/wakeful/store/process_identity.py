"""Who runs a store, in a form that another process can check: is it still running?

A process is known by its number, which the system gives out again, and which several schedulers in one process share.
So a node is more than its process: each start of a scheduler is an incarnation of its own, and this process knows which
of them it still runs.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

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
    if who.get("host") != socket.gethostname() or who.get("pids", "") != _pid_space():
        return False
    pid = int(str(who.get("pid", 0)))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return pid == os.getpid() and node_id not in _here


def _pid_space() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux: there is one for the whole machine
        return ""
