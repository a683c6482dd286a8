"""Connections held open by clients that send nothing, send slowly, or do not read."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import resource
import socket

import pytest

from tests.api.conftest import Server
from tests.cli.terminal import PATIENCE, Terminal
from wakeful import Every, NewJob, Scheduler
from wakeful.clock import VirtualClock
from wakeful.routing.settings import LOCAL, ConnectionLimits, ServerSettings
from wakeful.surfaces.api.connections import ConnectionOwner, origin_of
from wakeful.surfaces.api.server import HttpServer, bind
from wakeful.surfaces.cli.serve import _loaded, server_settings

HALF = b"GET /livez HTTP/1.1\r\nHost: lo"
WHOLE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
LONG = b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
NEVER_S = 1000.0
"""A limit that no test reaches."""


class Place:
    """A server on this very loop, and ways to reach it."""

    def __init__(self, server: HttpServer, scheduler: Scheduler, port: int) -> None:
        self.server, self.scheduler, self.port = server, scheduler, port

    async def connect(self, text: bytes = b"", source: str = "127.0.0.1", **options):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0), **options)
        writer.write(text)
        return reader, writer

    async def ask(self, text: bytes = LAST, source: str = "127.0.0.1") -> bytes:
        """All that comes back until the server hangs up."""
        reader, writer = await self.connect(text, source)
        return await rest(reader, writer)

    async def held(self, number: int, *, busy: bool = False) -> None:
        """Until the server has so many connections, or so many with a request in progress."""

        def count() -> int:
            return sum(not (busy and one.is_waiting) for one in self.server.server_state.connections)

        await until(lambda: count() == number)

    async def post(self, body: bytes) -> bytes:
        """The head of a request with a valid token, and the beginning of its body."""
        token = await self.scheduler.create_token("admin-of-test", "admin")
        head = (
            f"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 5000\r\n"
        )
        return head.encode() + b"Content-Type: application/json\r\n\r\n" + body


async def until(condition) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event; the test has a time limit
        await asyncio.sleep(0)


async def rest(reader, writer) -> bytes:
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            answer += piece
    writer.close()
    return answer


def serving(send_buffer: int | None = None, **limits):
    """Run the test with a server that has these limits, and none of the others within reach."""
    far = dict.fromkeys(("head_s", "body_s", "idle_s", "drain_s"), NEVER_S)

    def decorate(test):
        @functools.wraps(test)
        def run(tmp_path):
            async def main():
                bound = bind("127.0.0.1", 0)
                if send_buffer is not None:
                    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
                port = bound.getsockname()[1]
                settings = ServerSettings(port=port, connections=ConnectionLimits(**{**far, **limits}))
                async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler, asyncio.timeout(PATIENCE):
                    await scheduler.start()
                    server = HttpServer(scheduler, settings, bound)
                    await server.begin()
                    await test(Place(server, scheduler, port))
                    await server.end()

            with room_for_files():
                asyncio.run(main())

        del run.__wrapped__  # what the test takes is no fixture
        return run

    return decorate


@contextlib.contextmanager
def room_for_files():
    """File descriptors for 500 connections' both ends, and the server's limit of a quarter of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


# -- how many ---------------------------------------------------------------------------------------------------------


@serving()
async def test_half_sent_requests_keep_no_client_out(place):
    half = [await place.connect(HALF) for _ in range(500)]
    for source in ("127.0.0.2", "127.0.0.1"):  # of one's own address, the oldest give way
        assert status(await place.ask(source=source)) == 200
        answers = await asyncio.gather(*(place.ask(source=source) for _ in range(200)))
        assert {status(answer) for answer in answers} == {200}
    assert len(place.server.server_state.connections) >= 200
    for _, writer in half:
        writer.close()


@serving(head_s=1.0)
async def test_half_sent_requests_are_ended(place):
    half = [await place.connect(HALF) for _ in range(500)]
    answers = await asyncio.gather(*(rest(*link) for link in half))
    assert {status(answer) for answer in answers if answer} == {408}  # to some there is no answer: they gave way
    await place.held(0)


@serving(most=20, proxies=("127.0.0.3",))
async def test_one_address_holds_no_more_than_its_share_of_requests_in_progress(place):
    body = await place.post(b"{")
    for source, share in (("127.0.0.1", 10), ("127.0.0.3", 18)):
        busy = [await place.connect(body, source) for _ in range(share)]
        await place.held(share, busy=True)
        assert await place.ask(source=source) == b""
        assert status(await place.ask(source="127.0.0.2")) == 200
        for _, writer in busy:
            writer.close()
        await place.held(0)


@serving(most=20)
async def test_who_waits_longest_gives_way_and_who_is_being_answered_does_not(place):
    body = await place.post(b"{")
    busy = [await place.connect(body) for _ in range(18)]  # the share of a proxy: all but a tenth
    await place.held(18, busy=True)
    assert await place.ask() == b""  # all others of this address are at work: none is closed
    silent = [await place.connect(source="127.0.0.2") for _ in range(2)]
    await place.held(20)  # every place is taken, by two addresses
    assert status(await place.ask(source="127.0.0.3")) == 200
    assert await rest(*silent[0]) == b""
    silent[1][1].write(LAST)
    assert status(await rest(*silent[1])) == 200
    await place.held(18)
    for _, writer in busy:
        writer.close()


def test_one_address_has_half_of_the_places_and_a_proxy_all_but_a_tenth():
    limits = ConnectionLimits(most=40)
    assert (limits.share(is_proxy=False), limits.share(is_proxy=True)) == (20, 36)
    assert (ConnectionLimits(most=1).share(is_proxy=False), ConnectionLimits(most=1).share(is_proxy=True)) == (1, 1)


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("192.0.2.7", ConnectionOwner("192.0.2.7", is_proxy=False)),
        ("::ffff:192.0.2.7", ConnectionOwner("192.0.2.7", is_proxy=False)),
        ("2001:db8::1:2:3:4", ConnectionOwner("2001:db8::/64", is_proxy=False)),
        ("2001:db8::ffff:2:3:4", ConnectionOwner("2001:db8::/64", is_proxy=False)),
        ("127.0.0.9", ConnectionOwner("127.0.0.9", is_proxy=True)),
        ("::1", ConnectionOwner("::1", is_proxy=True)),
        ("10.0.0.5", ConnectionOwner("10.0.0.5", is_proxy=True)),
        ("10.0.1.200", ConnectionOwner("10.0.1.200", is_proxy=True)),
        ("", ConnectionOwner("", is_proxy=False)),
    ],
)
def test_an_address_is_known_by_what_one_machine_has_of_it(host, origin):
    assert origin_of(host, (*LOCAL, "10.0.0.5", "10.0.1.0/24")) == origin


def test_proxies_of_the_configuration_count_beside_loopback(tmp_path):
    file = tmp_path / "wakeful.yaml"
    file.write_text("server: {proxies: [10.0.0.5]}\n")
    settings, _ = server_settings(file, _loaded(file))
    assert settings.connections.proxies == (*LOCAL, "10.0.0.5")


def test_connections_leave_most_file_descriptors_to_jobs():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    try:
        assert ConnectionLimits().places == 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_jobs_go_on_while_every_connection_is_held(tmp_path):
    terminal = Terminal(tmp_path)
    with contextlib.ExitStack() as held:
        held.callback(terminal.close)
        server = Server(terminal)
        address = ("127.0.0.1", server.port)
        for _ in range(ConnectionLimits().places):
            held.enter_context(socket.create_connection(address, PATIENCE))
        pipe = terminal.pipe("pipe")
        terminal.ask("add", "job", "--at", "now", "--", "sh", "-c", f"echo ran > {pipe.path}")
        assert pipe.line() == "ran"
        with server.client() as client:
            assert client.get("/livez").status_code == 200


# -- how long ---------------------------------------------------------------------------------------------------------


@serving(head_s=0.2)
async def test_a_connection_that_says_nothing_is_closed(place):
    assert await place.ask(b"") == b""


@serving(head_s=0.2)
async def test_a_head_that_trickles_is_answered_408_and_closed(place):
    reader, writer = await place.connect(HALF)
    trickle = asyncio.create_task(drip(writer))
    answer = await rest(reader, writer)
    trickle.cancel()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"connection: close" in head.lower()
    assert b"x-content-type-options: nosniff" in head.lower()
    assert b"date: " in head.lower()
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (408, "too_slow")
    assert problem["error"] == "The request's head did not arrive within 0.2 s."


@serving(head_s=0.2)
async def test_the_head_of_a_second_request_has_the_same_time(place):
    assert status_of_last(await place.ask(WHOLE + HALF)) == 408
    reader, writer = await place.connect(WHOLE)
    await answered(reader)
    writer.write(HALF)
    assert status(await rest(reader, writer)) == 408


@serving(body_s=0.2)
async def test_a_body_that_trickles_is_answered_408_and_closed(place):
    reader, writer = await place.connect(await place.post(b"{"))
    trickle = asyncio.create_task(drip(writer, b" "))
    answer = await rest(reader, writer)
    trickle.cancel()
    assert status(answer) == 408
    assert b"The body did not arrive within 0.2 s." in answer
    await place.held(0)


@serving(idle_s=0.2)
async def test_an_idle_connection_is_closed_after_its_answer(place):
    answer = await place.ask(WHOLE)
    assert answer.count(b"HTTP/1.1") == 1
    assert status(answer) == 200
    await place.held(0)


@serving(idle_s=0.2)
async def test_a_body_that_is_not_read_does_not_keep_a_connection_open(place):
    text = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    reader, writer = await place.connect(text)
    trickle = asyncio.create_task(drip(writer))
    assert status(await rest(reader, writer)) == 200
    trickle.cancel()
    await place.held(0)


@serving(head_s=0.1, body_s=0.1, idle_s=0.1, drain_s=0.1)
async def test_a_stream_of_events_outlives_every_limit(place):
    token = await place.scheduler.create_token("viewer", "viewer")
    head = f"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    reader, writer = await place.connect(head.encode())
    assert b" 200 " in await reader.readline()
    for _ in range(3):  # each of these lives as long as the limits let it
        assert await place.ask(b"") == b""
    assert len(place.server.server_state.connections) == 1
    await place.scheduler.create_token("another", "viewer")
    await place.server.end()
    assert b"event: closing" in await rest(reader, writer)


# -- answers that are not read ---------------------------------------------------------------------------------------


@serving(send_buffer=4096, drain_s=0.2)
async def test_who_does_not_read_an_answer_is_hung_up_on_whatever_else_is_to_come(place):
    with deaf(place.port) as link:
        link.sendall(LONG * 20)
        await place.held(1, busy=True)
        await place.held(0)
    assert status(await place.ask()) == 200


@serving(send_buffer=4096, drain_s=0.2)
async def test_who_does_not_read_the_last_answer_is_hung_up_on(place):
    last = LONG.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with deaf(place.port) as link:
        link.sendall(last)
        await place.held(1)
        await place.held(0)
        heard = 0
        with contextlib.suppress(ConnectionError):
            while piece := link.recv(65536):
                heard += len(piece)
    assert heard < len(await place.ask(last)) / 2, "the rest was not sent"


@serving(send_buffer=4096, drain_s=30.0)
async def test_who_reads_64_kib_of_an_answer_in_time_reads_on(place):
    token = await place.scheduler.create_token("viewer", "viewer")
    await place.scheduler.add_jobs([NewJob("large", Every("2h"), payload={"argv": ["true", "x" * 500_000]})])
    state = place.server.server_state
    state.clock = clock = VirtualClock()
    head = (
        f"GET /api/jobs/large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    with deaf(place.port) as link:
        link.sendall(head.encode())
        link.settimeout(0)
        await until(lambda: any(one.flow.write_paused for one in state.connections))
        [one] = state.connections
        state.sweep()
        for _ in range(3):
            heard = 0
            while heard < 64 * 1024:
                heard += len(await asyncio.get_running_loop().sock_recv(link, 4096))
            await until(lambda: one.flow.write_paused)
            clock.elapse(20)
            state.sweep()
            clock.elapse(9)
            state.sweep()
            assert one.transport.get_write_buffer_size() > 0
        clock.elapse(21)
        state.sweep()
        await place.held(0)


def deaf(port: int) -> socket.socket:
    """A client that takes as little as it can, and reads none of it."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.settimeout(PATIENCE)
    link.connect(("127.0.0.1", port))
    return link


# -- what is no request -----------------------------------------------------------------------------------------------


@serving()
async def test_what_is_no_http_is_refused_in_the_one_shape(place):
    answer = await place.ask(b"GET\r\n\r\n")
    assert status(answer) == 400
    assert b"application/problem+json" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "bad_request"


async def drip(writer, byte: bytes = b"x") -> None:
    while True:
        writer.write(byte)
        await asyncio.sleep(0.02)


async def answered(reader) -> None:
    """Read one answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    await reader.readexactly(length)


def status_of_last(answers: bytes) -> int:
    return status(answers[answers.rindex(b"HTTP/1.1 ") :])
