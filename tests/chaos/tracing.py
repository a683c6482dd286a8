"""Writes and syncs of a program and all its threads, as the system sees them: a tracer of system calls, for Linux.

`python -m tests.chaos.tracing FILE PROGRAM...` runs the program to its end and leaves in FILE a line for each write,
when it begins, and two for each sync, when it begins and when it has returned. A thread stands still while its line
is written, so the order of the lines is an order in which things happened. It needs nothing but the kernel.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from pathlib import Path

TRACEME, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
SYSGOOD, FORK, VFORK, CLONE, EXEC, EXITKILL = 0x1, 0x2, 0x4, 0x8, 0x10, 0x100000
WALL = 0x40000000
ENTRY, EXIT = 1, 2
SHOWN = 160

WRITES = {
    "x86_64": {1: "write", 18: "pwrite64", 20: "writev", 296: "pwritev", 328: "pwritev2"},
    "aarch64": {64: "write", 66: "writev", 68: "pwrite64", 70: "pwritev", 287: "pwritev2"},
}
SYNCS = {"x86_64": {74: "fsync", 75: "fdatasync"}, "aarch64": {82: "fsync", 83: "fdatasync"}}
REFUSED = "This system does not let a process trace its own children (ptrace): {}. Allow it, and run again."

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long


def ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> int:
    done = int(_LIBC.ptrace(request, pid, address, data))
    if done < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return done


class Tracer:
    """Follows one program and everything it starts."""

    def __init__(self, out: Path) -> None:
        self._out = out.open("w", encoding="utf-8")
        self._writes, self._syncs = WRITES[platform.machine()], SYNCS[platform.machine()]
        self._syncing: dict[int, str] = {}
        self._known: set[int] = set()
        self._info = ctypes.create_string_buffer(128)

    def run(self, argv: list[str]) -> int:
        """The program's exit code, once all of it has ended."""
        pid = os.fork()
        if pid == 0:
            _become(argv)
        _, status = os.waitpid(pid, WALL)
        if not os.WIFSTOPPED(status):
            raise SystemExit(REFUSED.format("it could not begin"))
        ptrace(SETOPTIONS, pid, data=SYSGOOD | FORK | VFORK | CLONE | EXEC | EXITKILL)
        self._known.add(pid)
        ptrace(SYSCALL, pid)
        code = 1
        while True:
            try:
                thread, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                self._out.close()
                return code
            if os.WIFSTOPPED(status):
                self._go_on(thread, self._stopped(thread, status))
            elif thread == pid:
                code = os.waitstatus_to_exitcode(status)

    def _go_on(self, thread: int, number: int) -> None:
        try:
            ptrace(SYSCALL, thread, data=number)
        except ProcessLookupError:  # killed where it stood, as threads are when their program ends
            self._known.discard(thread)

    def _stopped(self, thread: int, status: int) -> int:
        """What a stop means; the signal to hand on, if it was one."""
        number, event = os.WSTOPSIG(status), status >> 16
        if number == signal.SIGTRAP | 0x80:
            self._called(thread)
            return 0
        is_new = thread not in self._known
        self._known.add(thread)
        return 0 if event or number == signal.SIGTRAP or (is_new and number == signal.SIGSTOP) else number

    def _called(self, thread: int) -> None:
        size = ptrace(GET_SYSCALL_INFO, thread, len(self._info), ctypes.addressof(self._info))
        if self._info.raw[0] == EXIT and thread in self._syncing:
            (result,) = struct.unpack_from("q", self._info.raw, 24)
            self._out.write(f"{thread} <... {self._syncing.pop(thread)} resumed>) = {result}\n")
        elif self._info.raw[0] == ENTRY and size >= 80:
            call, fd, buffer, length = struct.unpack_from("4Q", self._info.raw, 24)
            if (name := self._writes.get(call)) is not None:
                text = _text(thread, buffer, length) if name == "write" else ""
                self._out.write(f"{thread} {name}({_file(thread, fd)}, {text!r}\n")
            elif (name := self._syncs.get(call)) is not None:
                self._syncing[thread] = name
                self._out.write(f"{thread} {name}({_file(thread, fd)} <unfinished ...>\n")


def _become(argv: list[str]) -> None:
    try:
        ptrace(TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(argv[0], argv)  # noqa: S606 - the program to be traced
    except OSError as error:
        sys.stderr.write(REFUSED.format(error.strerror) + "\n")
    finally:
        os._exit(1)


def _file(thread: int, fd: int) -> str:
    try:
        return f"{fd}<{Path(f'/proc/{thread}/fd/{fd}').readlink()}>"
    except OSError:  # there is no such file; the call will fail, too
        return f"{fd}<>"


def _text(thread: int, address: int, length: int) -> str:
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(min(length, SHOWN)).decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(Tracer(Path(sys.argv[1])).run(sys.argv[2:]))
