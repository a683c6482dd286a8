"""The HTTP server alongside the engine, on the same event loop: bound first, answering once the engine runs."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import socket
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import APIRouter

from wakeful import clock as clocks
from wakeful.errors import InvalidSetting, SchedulerError, StoreUnusable
from wakeful.kernel.actions.tokens import new_secret
from wakeful.private_files import make_private_folder, open_private, open_unlinked
from wakeful.routing.auth import admit
from wakeful.routing.problems import Missing
from wakeful.routing.settings import ServerSettings
from wakeful.scheduler import Scheduler
from wakeful.store.process_identity import on_fork
from wakeful.surfaces.api.app import create_app
from wakeful.surfaces.api.connections import BoundedProtocol, Connections
from wakeful.surfaces.api.guard import Guard

PATIENCE_S = 5  # what requests in progress are given when the server ends
GOODBYE_S = 1  # and to be closed after that
UNREAD_S = 0.25  # a client that takes nothing of what waits for it for so long is not waited for
LARGEST_TOKEN = 4096  # of a token file this much is read
RECEIVE_BUFFER = 64 * 1024  # also what is read at once of a body that nobody has asked for yet
SEND_BUFFER = 256 * 1024  # what the kernel keeps for a client that reads slowly; without a bound it is megabytes


class CannotListen(SchedulerError):
    """The port cannot be used; nothing was started."""

    exit_code = 4
    code = "cannot_listen"


def bind(host: str, port: int) -> socket.socket:
    """The socket to listen on, ours from here on; it accepts no connections yet. One sentence if it cannot be bound."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        message = f"--host {host!r} is not an address of this machine: write 127.0.0.1, or 0.0.0.0 for all of them."
        raise InvalidSetting(message) from error
    bound = socket.socket(family, kind, number)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        bound.bind(address)
        # SO_REUSEADDR lets two sockets be bound that do not listen: only the second to listen would fail.
        bound.listen(0)
    except OSError as error:
        bound.close()
        raise _cannot_bind(error, host, port) from error
    bound.setblocking(False)  # noqa: FBT003 - the standard library's own shape
    on_fork(bound, socket.socket.close)  # a child that outlives us must not keep the port
    return bound


def _cannot_bind(error: OSError, host: str, port: int) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return CannotListen(f"Port {port} on {host} is in use by another program: choose another with --port.")
    if error.errno == errno.EACCES:
        return CannotListen(f"Port {port} may not be used by this user: choose one above 1023 with --port.")
    if error.errno == errno.EADDRNOTAVAIL:
        return InvalidSetting(f"{host} is not an address of this machine: write 127.0.0.1, or 0.0.0.0 for all of them.")
    return CannotListen(f"Port {port} on {host} cannot be used ({error.strerror}): choose another with --port.")


class HttpServer(uvicorn.Server):
    """uvicorn on a loop and a socket of ours; signals are not its business."""

    def __init__(
        self,
        scheduler: Scheduler,
        settings: ServerSettings,
        bound: socket.socket,
        pages: Sequence[APIRouter] = (),
        missing: Missing | None = None,
        *,
        first: Sequence[APIRouter] = (),
    ) -> None:
        app = create_app(scheduler, settings, pages, missing, first=first)
        config = uvicorn.Config(
            Guard(app, settings, admit=partial(admit, gate=app.state.gate)),
            http=BoundedProtocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            ws="none",
            backlog=settings.connections.places,  # also what is accepted in one go, before any can be refused
            timeout_graceful_shutdown=PATIENCE_S,
        )
        super().__init__(config)
        self.server_state = self._all = Connections(settings.connections)
        logging.getLogger("uvicorn").setLevel(logging.ERROR)  # mistakes of clients are answered, not logged
        self._app = app
        self._bound = bound
        self._asked = asyncio.Event()
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Answer requests from here on."""
        self._task = asyncio.get_running_loop().create_task(self.serve([self._bound]), name="http")
        ready = asyncio.get_running_loop().create_task(self._ready.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done():
            self._task.result()

    async def end(self) -> None:
        """Accept nothing more; streams announce it and end; requests in progress get a moment to finish."""
        self._app.state.ending.set()
        self._all.ending = True  # also for connections that were accepted a moment ago and are not set up yet
        self.should_exit = True
        self._asked.set()
        if self._task is not None:
            unread = asyncio.get_running_loop().create_task(self._drop_unread())
            await self._task
            unread.cancel()
            await self._cut_off()
        await self._app.state.gate.finish()
        await self._app.state.measuring.end()

    async def _drop_unread(self) -> None:
        """Close the connections of clients that do not read: what is sent to them would never end."""
        before: dict[asyncio.Transport, int] = {}
        while True:
            left = {one.transport: one.transport.get_write_buffer_size() for one in list(self._all.connections)}
            for transport, size in left.items():
                if size and before.get(transport) == size:
                    transport.abort()
            before = left
            await clocks.sleep(UNREAD_S)

    async def _cut_off(self) -> None:
        """Cut off answers in progress, and close the connections of clients that do not read."""
        left = set(self.server_state.tasks)
        for task in left:
            task.cancel()
        if left:
            _, left = await asyncio.wait(left, timeout=GOODBYE_S)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        if left:
            await asyncio.wait(left, timeout=GOODBYE_S)

    def hurry(self) -> None:
        """End without waiting for requests in progress."""
        self.force_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 10) % 864_000
            self._all.sweep()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), self._all.limits.sweep_s)


async def first_token(scheduler: Scheduler) -> Path | None:
    """The file with the first admin's token, made at a store's first start and readable by its owner alone.

    None where there is no such file or what it holds is not valid any more: the command line makes another.
    """
    path, secret = scheduler.server_side.token_path(), new_secret()
    if await scheduler.list_tokens(revoked=True):
        return path if await _holds_token(path, scheduler) else None
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        make_private_folder(path.parent)
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8") as file:
            file.write(secret + "\n")
        # The store first: a file must not promise what is not so. Lost between the two, the command line makes another.
        if await scheduler.server_side.create_first_token(secret):
            draft.replace(path)
    except OSError as error:
        message = f"The first token cannot be written to {path} ({error.strerror}): check its directory's permissions."
        raise StoreUnusable(message) from error
    finally:
        draft.unlink(missing_ok=True)
    return path if await _holds_token(path, scheduler) else None


async def _holds_token(path: Path, scheduler: Scheduler) -> bool:
    content = _content(path)
    return content is not None and await scheduler.server_side.find_token(content.strip()) is not None


def _content(path: Path) -> str | None:
    try:
        with open_unlinked(path) as file:
            return file.read(LARGEST_TOKEN).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
