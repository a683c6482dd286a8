"""The log of a run: everything its program printed, in a file of bounded size."""

from __future__ import annotations

import os
from pathlib import Path

from wakeful.counting import counted
from wakeful.private_files import make_private_folder, open_private

BLOCK = 1024 * 1024
STDERR_MARK = b"[stderr] "
LONGEST_LINE = 8 * 1024  # of standard error, before a part of it is a line of its own


class LogFile:
    """The full output of one run in a file of its own, readable by its owner alone and created with the first byte.

    Every chunk is in the file when `write` returns, for readers that follow it. At its limit the middle makes room: the
    first and the last quarter stay, and a line says how much is left out. A full disk or a missing directory ends the
    log, not the command: `problem` says what happened. Methods block; they run in the writer thread.
    """

    def __init__(self, path: Path, limit: int, *, adds: bool = False) -> None:
        """`adds`: what is in the file stays, as where one run calls its program again."""
        self._path = path
        self._limit = limit
        self._adds = adds
        self._size = 0
        self._left_out = 0
        self._notice = 0  # bytes of the line that says so
        self._at_line_start = True
        self._fd: int | None = None
        self._created = False
        self.problem: str | None = None
        self.accepts = True

    def write(self, chunk: bytes) -> None:
        if not self.accepts or not chunk:
            return
        try:
            while chunk:
                if self._size >= self._limit:
                    self._make_room()
                room = self._limit - self._size
                self._append(chunk[:room])
                chunk = chunk[room:]
        except OSError as error:
            self.accepts = False
            written = counted(self._size, "byte")
            self.problem = f"The log could not be written after {written}: {error.strerror or error}."

    def write_lines(self, lines: bytes) -> None:
        """Write whole lines of another stream, never into the middle of a line."""
        self.write(lines if self._at_line_start or not lines else b"\n" + lines)

    def close(self, *, keep: bool) -> Path | None:
        """End the log; its path if the file stays. What was kept may still be closed again without."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        self.accepts = False
        if keep and self._size:
            return self._path
        if self._created:
            self._remove()
        return None

    def _append(self, data: bytes) -> None:
        if self._fd is None:
            self._fd = self._open()
        view = memoryview(data)
        while view:
            count = os.write(self._fd, view)
            self._size += count
            view = view[count:]
        self._at_line_start = data.endswith(b"\n")

    def _make_room(self) -> None:
        """Leave out the middle: a quarter of the limit stays at either end."""
        if self._fd is None:
            self._fd = self._open()
        kept = self._limit // 4
        self._left_out += self._size - 2 * kept - self._notice
        notice = f"\n[… {counted(self._left_out, 'byte')} left out: a log has at most {self._limit} …]\n".encode()
        place, source = kept + os.pwrite(self._fd, notice, kept), self._size - kept
        while block := os.pread(self._fd, BLOCK, source):
            place += os.pwrite(self._fd, block, place)
            source += len(block)
        os.ftruncate(self._fd, place)
        os.lseek(self._fd, place, os.SEEK_SET)
        self._size, self._notice = place, len(notice)
        self.problem = f"The log was cut: {counted(self._left_out, 'byte')} of its middle are left out."

    def _open(self) -> int:
        make_private_folder(self._path.parent)
        is_new = not (self._adds and self._path.exists())
        fd = open_private(self._path, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if is_new else 0))
        self._created = self._created or is_new
        self._size = os.lseek(fd, 0, os.SEEK_END)
        return fd

    def _remove(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            self.problem = self.problem or f"The log could not be removed: {error.strerror or error}."


class MarkedLines:
    """Standard error as a log has it besides the output: whole lines, each with a mark."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        data = self._held + chunk
        cut = len(data) if len(data) - data.rfind(b"\n") > LONGEST_LINE else data.rfind(b"\n") + 1
        self._held = data[cut:]
        return _marked(data[:cut])

    def flush(self) -> bytes:
        held, self._held = self._held, b""
        return _marked(held)


def _marked(data: bytes) -> bytes:
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    return b"".join(STDERR_MARK + line + b"\n" for line in lines)
