"""The process group a command runs in: noticing its end, signalling it, and collecting its leader."""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
import threading
from typing import Protocol

from wakeful.child_processes import Process
from wakeful.domains.command.capture import readable

KILL_WAIT = 2.0  # seconds for what was killed to be gone


class Exit(Protocol):
    """Readable once its process has ended."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


class ProcessGroup:
    """A started program and its process group, until `reap`."""

    def __init__(self, leader: Process) -> None:
        self.pid = leader.pid
        self._leader = leader
        self._reaped = False
        try:
            try:
                self._exit = exit_of(leader.pid)
            except OSError:
                self._exit = exit_by_thread(leader.pid)
        except OSError:
            os.killpg(leader.pid, signal.SIGKILL)
            leader.wait()
            raise

    async def exited(self) -> None:
        await readable(self._exit.fileno())

    def signal(self, number: signal.Signals) -> None:
        if self._reaped or _is_collected(self.pid):
            return
        # No process is left to signal, or (macOS) only the ended leader.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def reap(self) -> int | None:
        """Kill what is left of the group, then collect the leader's exit code. Never blocks; again changes nothing."""
        if not self._reaped:
            self.signal(signal.SIGKILL)
            self._reaped = True
            self._exit.close()
            self._exit_code = self._collect()
            self._leader.returncode = self._exit_code if self._exit_code is not None else 0
        return self._exit_code

    def _collect(self) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid:
            return os.waitstatus_to_exitcode(status)
        # Killed this instant, or stuck in the kernel: a thread sees it off, so that no zombie stays.
        threading.Thread(target=_collect_later, args=(self.pid,), name=f"reap-{self.pid}", daemon=True).start()
        return -signal.SIGKILL


def _collect_later(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _is_collected(pid: int) -> bool:
    """Whether other code collected our child (SIGCHLD ignored, a foreign wait): then its number may be reused."""
    if sys.platform != "darwin":  # where Python has no waitid
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
    return False


def exit_of(pid: int) -> Exit:
    """Something that becomes readable when the process ends, and does not collect it."""
    if sys.platform == "linux":
        return io.FileIO(os.pidfd_open(pid))
    else:  # noqa: RET505 - mypy takes what follows a platform's return for unreachable
        with contextlib.ExitStack() as on_failure:
            queue = select.kqueue()
            on_failure.callback(queue.close)
            change = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
            queue.control([change], 0)
            on_failure.pop_all()
        return queue


def exit_by_thread(pid: int) -> Exit:
    """The same for our own child where the kernel has no such thing, or the process has already ended."""
    pipe, write_end = os.pipe()

    def wait() -> None:
        if sys.platform != "darwin":
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.close(write_end)

    threading.Thread(target=wait, name=f"wait-{pid}", daemon=True).start()
    return io.FileIO(pipe)
