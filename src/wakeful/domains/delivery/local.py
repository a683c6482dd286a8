"""Connectors that stay on this machine: a file, the log, a Python function, a program."""

from __future__ import annotations

import inspect
import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wakeful.callables import beside, load_function
from wakeful.child_processes import EnvironmentList, run_beside
from wakeful.domains.delivery.connector import Message, Temporary, room_of
from wakeful.domains.delivery.texts import last_lines
from wakeful.errors import InvalidJob, InvalidSetting

log = logging.getLogger("wakeful.messages")


class FileConnector:
    """One JSON line per message, at the end of a file."""

    type = "file"

    def __init__(self, path: Path, name: str = "file") -> None:
        self._path = path
        self._room = room_of(name)

    async def send(self, message: Message) -> None:
        line = json.dumps(message.line(), ensure_ascii=False) + "\n"
        try:
            await self._room.call(self._append, line.encode())  # a slow disk must not hold up the loop
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

    def __init__(self, send: Callable[[Message], Any], name: str = "python") -> None:
        call = getattr(send, "__call__", None)  # noqa: B004 - objects with an async __call__ send too
        if call is None:
            message = f"A connector is a function that takes a message, not {send!r:.80}."
            raise InvalidSetting(message)
        self._send = send
        self._awaits = inspect.iscoroutinefunction(send) or inspect.iscoroutinefunction(call)
        self._room = room_of(name)

    async def send(self, message: Message) -> None:
        found = self._send(message) if self._awaits else await self._room.call(self._send, message)
        if inspect.isawaitable(found):
            await found


class LazyCall:
    """A Python function by its `module:name`, imported with the first message; also found next to a file."""

    type = "python"

    def __init__(self, reference: str, folder: Path, name: str = "python") -> None:
        self._name = name
        self._room = room_of(name)
        self._reference = reference
        self._folder = folder
        self._found: CallConnector | None = None

    async def send(self, message: Message) -> None:
        if self._found is None:
            # What a module does while it is imported may take for ever.
            self._found = CallConnector(await self._room.call(self._load), self._name)
        await self._found.send(message)

    def _load(self) -> Callable[[Message], Any]:
        try:
            return load_function(beside(self._reference, self._folder))  # type: ignore[no-any-return]
        except InvalidJob as error:
            raise Temporary(f"{self._reference} cannot be loaded: {error}") from None


class CommandConnector:
    """A program that gets the message as JSON on its standard input; exit code 0 is success."""

    type = "command"

    def __init__(self, argv: Sequence[str], folder: Path, env: Sequence[str] = ()) -> None:
        """`env`: NAME, which is passed on, or NAME=value. It gets nothing else but ordinary variables."""
        self._argv = list(argv)
        self._folder = folder
        self._env = EnvironmentList.read(env)

    async def send(self, message: Message) -> None:
        line = json.dumps(message.line(), ensure_ascii=False).encode() + b"\n"
        try:
            ended = await run_beside(self._argv, env=self._env.environment(), cwd=self._folder, stdin=line, keep=0)
        except OSError as error:
            raise Temporary(f"{self._argv[0]} cannot be started ({error.strerror})") from None
        if ended.exit_code:
            text = last_lines(ended.errors.decode("utf-8", "replace"), 3, 300)
            raise Temporary(f"{self._argv[0]} ended with exit code {ended.exit_code}" + (f": {text}" if text else ""))
