"""The wake socket of a SQLite store: a process that writes to the file wakes its engine at once.

It is a datagram socket next to the file, for its owner alone. A datagram says nothing but "look"; what changed is in
the store. Nothing relies on it: without a socket, or where a datagram is lost, the engine also looks twice a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from wakeful import clock as clocks
from wakeful.private_files import FILE_MODE
from wakeful.store.process_identity import on_fork

log = logging.getLogger("wakeful.store")

PAUSE_S = 0.01  # after a look; what arrives meanwhile is one more look
LONGEST = 103  # bytes in the path of a socket, on the system that allows the fewest
AT_ONCE = 1024  # datagrams taken from the socket between two looks at anything else
_O_PATH = getattr(os, "O_PATH", None)  # Linux alone has it
_DESCRIPTORS = "/proc/self/fd"


def socket_path(path: str) -> Path:
    """Next to the file itself, also when a link led to it: one store, one socket."""
    return Path(os.path.realpath(path) + ".bell")


def notify(path: str) -> None:
    """Ask the engine of the store in this file to look, if there is one. Never waits and never fails."""
    try:
        with (
            _open_socket(socket_path(path), path) as place,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
        ):
            sender.settimeout(0)
            sender.sendto(b"\n", place)
    except OSError as error:  # no engine runs, its queue is full, or it is not for us
        log.debug("cannot notify the engine of %s: %s", path, error)


@contextlib.contextmanager
def _open_socket(found: Path, store: str) -> Iterator[str]:
    """An address of the socket that lies there, which is no link and belongs to us or to the store's owner."""
    if _O_PATH is None or not Path(_DESCRIPTORS).exists():
        _refuse_foreign(found.lstat(), store)
        yield str(found)
        return
    fd = os.open(found, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _refuse_foreign(os.fstat(fd), store)
        yield f"{_DESCRIPTORS}/{fd}"
    finally:
        os.close(fd)


def _refuse_foreign(found: os.stat_result, store: str) -> None:
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid not in (os.geteuid(), Path(store).stat().st_uid):
        raise PermissionError(errno.EPERM, "it belongs to another user")


class WakeSocket:
    """The engine's end. It belongs to the loop that listens, and to the process that holds the engine's lock."""

    def __init__(self, path: str) -> None:
        self._path = socket_path(path)
        self._socket: socket.socket | None = None
        self._file: tuple[int, int] | None = None  # which file we made
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._heard: Callable[[], Awaitable[None]] | None = None
        on_fork(self, WakeSocket._drop)

    def listen(self, heard: Callable[[], Awaitable[None]]) -> None:
        """From now on `heard` is awaited after a notification, one at a time; those close together are one."""
        self.take_down()
        try:
            self._bind()
        except OSError as error:
            log.warning(
                "cannot create %s (%s): changes by other processes are noticed within half a second",
                self._path, error.strerror or error,
            )  # fmt: skip
            return
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._listen()

    def take_down(self) -> None:
        """Stop listening, and remove the socket."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._socket is None:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
        self._socket.close()
        self._socket = self._loop = None
        with contextlib.suppress(OSError):  # it is gone, or its folder is closed: the next engine sees to it
            if self._file == _which(self._path.lstat()):
                self._path.unlink()

    def _drop(self) -> None:
        """In a forked child: close our copy of the socket, whose file and place in the loop belong to the parent."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._loop = self._task = None

    def _bind(self) -> None:
        self._clear_way()
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            receiver.settimeout(0)
            with contextlib.suppress(OSError):  # where a socket has no mode before it has a name
                os.fchmod(receiver.fileno(), FILE_MODE)
            with _short(self._path) as place:
                receiver.bind(place)
            found = self._path.lstat()
            self._file = _which(found)
            if stat.S_IMODE(found.st_mode) & ~FILE_MODE:
                self._path.chmod(FILE_MODE, follow_symlinks=os.chmod not in os.supports_follow_symlinks)
        except BaseException:
            receiver.close()
            raise
        self._socket = receiver

    def _clear_way(self) -> None:
        """Remove what an engine that was killed left behind; only the process that holds the lock may."""
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise FileExistsError(errno.EEXIST, "something else is in its place: remove it")
        self._path.unlink()

    def _listen(self) -> None:
        if self._loop is not None and self._socket is not None:
            self._loop.add_reader(self._socket, self._notified)

    def _notified(self) -> None:
        """Endless notifying costs only one look per pause."""
        assert self._loop is not None  # noqa: S101 - it called us
        assert self._socket is not None  # noqa: S101 - or it would not have
        self._loop.remove_reader(self._socket)
        with contextlib.suppress(OSError):  # empty
            for _ in range(AT_ONCE):
                self._socket.recv(1)
        self._task = self._loop.create_task(self._look(), name="wakeful-wake-socket")

    async def _look(self) -> None:
        assert self._heard is not None  # noqa: S101 - given before we listened
        try:
            await self._heard()
            await clocks.sleep(PAUSE_S)
        finally:
            if self._task is asyncio.current_task():  # not taken down meanwhile
                self._task = None
                self._listen()


def _which(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """The same place in few enough bytes, where the system has a way to say it; else as it is."""
    if len(os.fsencode(path)) <= LONGEST or _O_PATH is None:
        yield str(path)
        return
    fd = os.open(path.parent, _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_DESCRIPTORS}/{fd}/{path.name}"
    finally:
        os.close(fd)
