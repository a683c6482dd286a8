"""The identity of a process, in a form that another process can check: is it still running?"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path


def myself() -> dict[str, object]:
    """What identifies this process among all others, as far as the system allows."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "pids": _pid_space()}


def surely_gone(who: Mapping[str, object]) -> bool:
    """Whether that process has ended, for all we can see: it was one of this machine, and its number is free or ours.

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
    return pid == os.getpid()


def _pid_space() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux: there is one for the whole machine
        return ""
