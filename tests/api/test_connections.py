"""Connections held open by somebody who has nothing to say."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from tests.api.conftest import Server
from tests.cli.terminal import PATIENCE, Terminal
from wakeful import Scheduler
from wakeful.api import connections
from wakeful.api.connections import most_connections
from wakeful.api.server import HttpServer, bind
from wakeful.api.settings import ServerSettings


def test_more_connections_than_allowed_are_hung_up_on_and_jobs_go_on(tmp_path):
    terminal = Terminal(tmp_path)
    with contextlib.ExitStack() as held:
        held.callback(terminal.close)
        server = Server(terminal)
        address = ("127.0.0.1", server.port)
        links = [held.enter_context(socket.create_connection(address, PATIENCE)) for _ in range(most_connections())]
        with socket.create_connection(address, PATIENCE) as one_more:
            assert hung_up_on(one_more)
        pipe = terminal.pipe("pipe")
        terminal.ask("add", "job", "--at", "now", "--", "sh", "-c", f"echo ran > {pipe.path}")
        assert pipe.line() == "ran"
        links[0].sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert links[0].recv(100).startswith(b"HTTP/1.1 200")
        assert hung_up_on(links[0])  # its answer is over, and its place is free
        with server.client() as client:
            assert client.get("/livez").status_code == 200


def hung_up_on(link):
    try:
        while link.recv(4096):
            pass
    except ConnectionError:
        return True
    return True


def test_who_does_not_get_to_the_point_is_hung_up_on(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "SILENCE_S", 0.05)

    async def main():
        bound = bind("127.0.0.1", 0)
        settings = ServerSettings(port=bound.getsockname()[1])
        async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler, asyncio.timeout(PATIENCE):
            server = HttpServer(scheduler, settings, bound)
            await server.begin()
            silent = await asyncio.open_connection("127.0.0.1", settings.port)
            half = await asyncio.open_connection("127.0.0.1", settings.port)
            half[1].write(b"GET /livez HTTP/1.1\r\nHost: lo")
            for reader, writer in (silent, half):
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b" 200 " in (await reader.read()).split(b"\r\n")[0]
            writer.close()
            await server.end()

    asyncio.run(main())


def test_a_request_in_progress_is_not_hung_up_on(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "SILENCE_S", 0.01)
    looks = asyncio.Semaphore(0)
    look = connections.BoundedProtocol._look
    monkeypatch.setattr(connections.BoundedProtocol, "_look", lambda self: (look(self), looks.release()))

    async def main():
        bound = bind("127.0.0.1", 0)
        settings = ServerSettings(port=bound.getsockname()[1])
        async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler, asyncio.timeout(PATIENCE):
            await scheduler.start()
            server = HttpServer(scheduler, settings, bound)
            await server.begin()
            token = await scheduler.create_token("viewer", "viewer")
            reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
            head = f"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
            writer.write(head.encode())
            assert b" 200 " in await reader.readline()
            for _ in range(10):
                await looks.acquire()
            assert len(server.server_state.connections) == 1
            await server.end()
            assert b"event: closing" in await reader.read()
            writer.close()

    asyncio.run(main())
