"""Connectors that stay on this machine: a file, the log, a Python function, a program."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wakeful.callables import beside, load_function
from wakeful.clock import VirtualClock
from wakeful.delivery.connector import Message, Temporary
from wakeful.delivery.texts import last_lines
from wakeful.errors import InvalidJob, InvalidSetting

log = logging.getLogger("wakeful.messages")

SAID_MOST = 16_384  # bytes kept of what a program says


class FileConnector:
    """One JSON line per message, at the end of a file."""

    type = "file"

    def __init__(self, path: Path) -> None:
        self._path = path

    async def send(self, message: Message) -> None:
        line = json.dumps(message.line(), ensure_ascii=False) + "\n"
        try:
            await asyncio.to_thread(self._append, line.encode())  # a slow disk must not hold up the loop
        except OSError as error:
            raise Temporary(f"{self._path} cannot be written ({error.strerror})") from None

    def _append(self, line: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(number).st_size
            if size and os.pread(number, 1, size - 1) != b"\n":
                line = b"\n" + line  # a line that a full disk cut off stays one of its own
            done = os.write(number, line)  # at once: two writers do not mix their lines
            while done < len(line):
                done += os.write(number, line[done:])
            os.fsync(number)
        finally:
            os.close(number)


class LogConnector:
    """A line in the server's log."""

    type = "log"

    async def send(self, message: Message) -> None:
        head = f"{message.title}: " if message.title else ""
        log.info("message %s: %s%s", message.id, head, " | ".join(message.text.splitlines()))


class CallConnector:
    """A Python function; one that is not a coroutine function is called in a thread."""

    type = "python"

    def __init__(self, send: Callable[[Message], Any], *, inline: bool = False) -> None:
        call = getattr(send, "__call__", None)  # noqa: B004 - objects with an async __call__ send too
        if call is None:
            message = f"A connector is a function that takes a message, not {send!r:.80}."
            raise InvalidSetting(message)
        self._send = send
        self._awaits = inspect.iscoroutinefunction(send) or inspect.iscoroutinefunction(call)
        self._inline = inline

    async def send(self, message: Message) -> None:
        if self._awaits or self._inline:
            found = self._send(message)
        else:
            found = await asyncio.to_thread(self._send, message)
        if inspect.isawaitable(found):
            await found


def is_virtual(clock: object) -> bool:
    """Whether time is virtual, where threads have no place."""
    return isinstance(clock, VirtualClock)


class LazyCall:
    """A Python function by its `module:name`, imported with the first message; also found beside a file."""

    type = "python"

    def __init__(self, reference: str, folder: Path) -> None:
        self._reference = reference
        self._folder = folder
        self._found: CallConnector | None = None

    async def send(self, message: Message) -> None:
        if self._found is None:
            self._found = CallConnector(self._load())
        await self._found.send(message)

    def _load(self) -> Callable[[Message], Any]:
        try:
            return load_function(beside(self._reference, self._folder))  # type: ignore[no-any-return]
        except InvalidJob as error:
            raise Temporary(f"{self._reference} cannot be loaded: {error}") from None


class CommandConnector:
    """A program that gets the message as JSON on its standard input; exit code 0 is success."""

    type = "command"

    def __init__(self, argv: Sequence[str], folder: Path) -> None:
        self._argv = list(argv)
        self._folder = folder

    async def send(self, message: Message) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            raise Temporary(f"{self._argv[0]} cannot be started ({error.strerror})") from None
        line = json.dumps(message.line(), ensure_ascii=False).encode() + b"\n"
        try:
            _, said = await asyncio.gather(_feed(process, line), _end_of(process))
            await process.wait()
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode:
            text = last_lines(said.decode("utf-8", "replace"), 3, 300)
            raise Temporary(
                f"{self._argv[0]} ended with exit code {process.returncode}" + (f": {text}" if text else "")
            )


async def _feed(process: asyncio.subprocess.Process, line: bytes) -> None:
    """Give a program its input; one that does not read it may still succeed."""
    stream = process.stdin
    assert stream is not None  # noqa: S101 - asked for
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(line)
        await stream.drain()
    stream.close()


async def _end_of(process: asyncio.subprocess.Process) -> bytes:
    """The end of what a program says about itself, however much that is."""
    stream = process.stderr
    assert stream is not None  # noqa: S101 - asked for
    kept = b""
    while chunk := await stream.read(SAID_MOST):
        kept = (kept + chunk)[-SAID_MOST:]
    return kept
