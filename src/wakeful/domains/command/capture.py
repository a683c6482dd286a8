"""What a command prints: a bounded copy for the run's row, and the whole of it in a log file while it comes.

The output of a command, however much and however broken, costs bounded memory and bounded disk, never blocks the
event loop and never fails the command. File work is done by one writer thread: on a journaling disk even creating an
empty file can wait for the fsync of another file.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

from wakeful.counting import counted
from wakeful.domains.command.log_file import LogFile, MarkedLines
from wakeful.threads import LimitedThreadPool

P = ParamSpec("P")
T = TypeVar("T")

CHUNK = 64 * 1024
SHORTEST_SECRET = 6
LONGEST_PIECE = 4096
REDACTED = b"[redacted]"

# One thread, so that work is done in order: a close after the write it follows, even if the caller of the write was
# cancelled meanwhile.
_WRITER = LimitedThreadPool("log writer", 1)


async def off_loop(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking file work in the writer thread; once handed over it is done, even if the caller is cancelled."""
    work = _WRITER.submit(call, *args, **kwargs)
    return await asyncio.shield(asyncio.wrap_future(work))


async def readable(fd: int) -> None:
    """Wait until `fd` can be read, always giving other tasks a turn. One waiter per descriptor at a time."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)


class Excerpt:
    """The first and the last bytes of a stream, `limit` in all, and how many there were."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head_size = limit // 2
        self._tail_size = limit - self._head_size
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def truncated(self) -> bool:
        return self.total > self._limit

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Cutting only when it has doubled keeps a stream of short lines from moving the whole tail for each of them.
        if len(self._tail) > 2 * self._tail_size + CHUNK:
            del self._tail[: len(self._tail) - self._tail_size]

    def text(self) -> str:
        """The stream as text any database takes: undecodable bytes and NUL become U+FFFD.

        What was left out is replaced by one line that says how many bytes; a character that the cut would split is
        left out whole. Where bytes are undecodable the text takes up to three bytes for each one kept.
        """
        if not self.truncated:
            return _clean(bytes(self._head + self._tail))
        head = _without_split_end(bytes(self._head))
        tail = _without_split_start(bytes(self._tail[len(self._tail) - self._tail_size :]))
        left_out = self.total - len(head) - len(tail)
        return f"{_clean(head)}\n[… {counted(left_out, 'byte')} left out …]\n{_clean(tail)}"


def _clean(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _without_split_end(data: bytes) -> bytes:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    unfinished, _ = decoder.getstate()
    return data[: len(data) - len(unfinished)]


def _without_split_start(data: bytes) -> bytes:
    for start, byte in enumerate(data[:4]):
        if byte & 0xC0 != 0x80:
            return data[start:]
    return data


class Redactor:
    """Replaces known secret values in a stream, also where one is split between two chunks.

    Only an end that could be the start of a secret is held back, so a follower sees lines as they arrive. Each line of
    a value counts for itself, since programs print them one by one. Lines shorter than SHORTEST_SECRET are left alone:
    replacing them would shred ordinary text. A very long line is found piece by piece, so that little is held back.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        pieces = {piece for secret in secrets for piece in _pieces(secret)}
        self._secrets = sorted(pieces, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets)))
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        if not self._secrets:
            return chunk
        data = self._held + chunk
        cut = len(data) - self._possible_start(data)
        found = self._finds(data)
        if found:
            cut = max([cut, *(match.end() for match in self._pattern.finditer(data) if match.start() < cut)])
        self._held = data[cut:]
        return self._pattern.sub(REDACTED, data[:cut]) if found else data[:cut]

    def flush(self) -> bytes:
        held, self._held = self._held, b""
        return self._pattern.sub(REDACTED, held) if self._secrets else held

    def _finds(self, data: bytes) -> bool:
        """Whether there is anything to replace. Far quicker to say than the pattern is, and nearly always no."""
        return any(secret in data for secret in self._secrets)

    def _possible_start(self, data: bytes) -> int:
        """Length of the longest end of `data` that a secret begins with."""
        return max(_overlap(data, secret) for secret in self._secrets)


def _pieces(secret: str) -> Iterator[bytes]:
    for line in secret.splitlines():
        value = line.strip().encode("utf-8", "surrogateescape")
        pieces = (value[begin : begin + LONGEST_PIECE] for begin in range(0, len(value), LONGEST_PIECE))
        yield from (piece for piece in pieces if len(piece) >= SHORTEST_SECRET)


def _overlap(data: bytes, secret: bytes) -> int:
    """Length of the longest end of `data` that `secret` begins with."""
    start = max(0, len(data) - len(secret) + 1)
    while (start := data.find(secret[:1], start)) >= 0:
        if secret.startswith(data[start:]):
            return len(data) - start
        start += 1
    return 0


class Capture:
    """Reads one pipe to its end into an excerpt and a log file. Owns the pipe's reading end from the start."""

    def __init__(
        self,
        pipe: int,
        log: LogFile,
        redactor: Redactor,
        *,
        keep: int,
        on_output: Callable[[bytes], None] | None = None,
        is_stderr: bool = False,
        keeps_log: bool = False,
    ) -> None:
        """`on_output` gets every chunk as it arrives. Of two that share a log, that of standard error marks its lines.
        A log that is not kept anyway stays if it has more than the excerpt.
        """
        self._pipe = pipe
        self._redactor = redactor
        self._on_output = on_output
        self._marked = MarkedLines() if is_stderr else None
        self._keeps_log = keeps_log
        self.excerpt = Excerpt(keep)
        self.log = log

    def start(self) -> asyncio.Task[None]:
        """Begin to read; cancelling the task ends the reading. The pipe is closed with it, also after an error."""
        task = asyncio.create_task(self._pump())
        # Not a `finally` in the coroutine: a task cancelled before its first step never enters it.
        task.add_done_callback(lambda _: self._close())
        return task

    async def finish(self) -> Path | None:
        """Settle what is left once reading has ended; the log's path if it stays."""
        return await off_loop(self.log.close, keep=self._keeps_log or self.excerpt.truncated)

    async def _pump(self) -> None:
        while True:
            await readable(self._pipe)
            chunk = os.read(self._pipe, CHUNK)
            if not chunk:
                return
            await self._take(self._redactor.feed(chunk))

    async def _take(self, chunk: bytes) -> None:
        self._add(chunk)
        # Waiting for the write is the backpressure: a fast printer waits for the disk, not in our memory.
        if chunk and self.log.accepts:
            await off_loop(self._write, chunk)

    def _close(self) -> None:
        os.close(self._pipe)
        if rest := self._redactor.flush():
            self._add(rest)
            _WRITER.submit(self._write, rest)
        if self._marked is not None:
            _WRITER.submit(lambda marked: self.log.write_lines(marked.flush()), self._marked)

    def _write(self, chunk: bytes) -> None:
        if self._marked is None:
            self.log.write(chunk)
        else:
            self.log.write_lines(self._marked.feed(chunk))

    def _add(self, chunk: bytes) -> None:
        self.excerpt.add(chunk)
        if self._on_output is not None and chunk:
            self._on_output(chunk)
