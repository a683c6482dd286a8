"""What clients cost a server in memory: those that do not read what they ask for, and those that send too much."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from http.client import HTTPResponse

import pytest

from tests.api.callers import Callers
from tests.api.test_connections import serving, status, until
from tests.cli.terminal import PATIENCE
from tests.kernel.scene import sqlite_scene
from tests.waiting import eventually
from wakeful import Manual
from wakeful.clock import VirtualClock
from wakeful.routing.problems import ApiError
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api import bodies, sending
from wakeful.testing import run

__all__ = ["sqlite_scene"]

LENGTH = 16 * 1024 * 1024
MEBIBYTE = b"x" * 1024 * 1024
SMALL = 4 * 1024  # what a client's system takes for it
MOST_KIB = 60 * 1024


@contextlib.contextmanager
def held(server, number, request):
    """So many connections on which a request was sent, as far as the server took it."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(number):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
            one.settimeout(PATIENCE)
            one.connect(("127.0.0.1", server.port))
            with contextlib.suppress(ConnectionError):
                one.sendall(request)
            found.append(one)
        yield found


def memory(server):
    """KiB that the server occupies."""
    said = subprocess.run(["ps", "-o", "rss=", "-p", str(server.process.pid)], capture_output=True, check=True)
    return int(said.stdout)


@pytest.fixture
def long_log(server, client, name):
    """The address of a log of 16 MiB."""
    client.post("/api/jobs", json={"name": name, "kind": "command", "payload": {"argv": ["true"]}, "manual": True})
    run = client.post(f"/api/jobs/{name}/run").json()["id"]
    path = next(server.folder.glob(".wakeful/*.logs"), server.folder / ".wakeful" / "wakeful.db.logs")
    path.mkdir(exist_ok=True)
    (path / f"{run}.log").write_bytes(b"0123456789abcde\n" * (LENGTH // 16))
    return f"/api/runs/{run}/log?bytes={LENGTH}"


@pytest.mark.promise("X24")
def test_forty_logs_that_nobody_reads_cost_little_memory(server, long_log, token_for):
    token = token_for("viewer")
    head = f"GET {long_log} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with server.client(token) as viewer:
        assert viewer.get(long_log).text == "0123456789abcde\n" * (LENGTH // 16)
        before = memory(server)
        with held(server, 40, head) as readers:
            assert {reader.recv(12) for reader in readers} == {b"HTTP/1.1 200"}
            assert viewer.get("/api/me").status_code == 200
            assert memory(server) - before < MOST_KIB


@pytest.mark.promise("X24")
@pytest.mark.parametrize("path", ["/hooks/no/such", "/ping/nobody", "/ping/nobody/fail"])
def test_two_hundred_mebibytes_for_addresses_that_lead_nowhere_cost_little_memory(server, path):
    length = len(MEBIBYTE)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()
    before = memory(server)
    with held(server, 200, head + MEBIBYTE[:-1]) as senders:
        assert memory(server) - before < MOST_KIB
        answers = {status(sender.recv(2048)) for sender in senders}
    assert answers <= {404, 429}


def test_an_address_that_leads_nowhere_is_answered_before_its_body_was_sent_and_the_connection_stays(server):
    head = b"POST /hooks/no/such HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n"
    with held(server, 1, head) as (sender,):
        for _ in range(3):
            answer = HTTPResponse(sender)
            answer.begin()
            assert (answer.status, answer.read()[:1]) == (404, b"{")
            sender.sendall(MEBIBYTE + head)


def with_log(content):
    """Run the test with a server of few places, a run with that log, and the request for it."""

    def decorate(test):
        @serving(send_buffer=16 * 1024, streams=3)
        async def run(place):
            scheduler = place.scheduler
            await scheduler.add_job("long", Manual())
            number = await scheduler.run_job("long")
            scheduler.log_path(number).parent.mkdir()
            scheduler.log_path(number).write_bytes(content)
            token = await scheduler.create_token("looks", "viewer")
            headers = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
            await test(place, lambda most: f"GET /api/runs/{number}/log?bytes={most} HTTP/1.1\r\n{headers}".encode())

        run.__name__ = test.__name__
        return run

    return decorate


def body_of(answer):
    """The body of a chunked answer."""
    head, _, left = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.lower()
    found = b""
    while size := int((line := left.partition(b"\r\n"))[0], 16):
        found += line[2][:size]
        left = line[2][size + 2 :]
    return found.decode()


ODD = ("é" * 40_000 + "\n").encode() + b"\xff\xfe" + "日本".encode() * 30_000 + b"\xe6"


@with_log(ODD)
async def test_a_log_arrives_whole_whatever_is_in_it_and_wherever_it_is_cut(place, request):
    answer = await place.ask(request(LENGTH))
    assert status(answer) == 200
    assert b"content-type: text/plain; charset=utf-8" in answer.lower()
    assert body_of(answer) == ODD.decode("utf-8", "replace")
    assert body_of(await place.ask(request(5))) == ODD[-5:].decode("utf-8", "replace")


@with_log(b"x" * LENGTH)
async def test_only_so_many_logs_are_sent_at_once(place, request):
    stuck = [await place.connect(request(LENGTH), limit=1024) for _ in range(3)]
    connections = place.server.server_state.connections
    await until(lambda: sum(one.transport.get_write_buffer_size() > 0 for one in connections) == 3)
    refused = await place.ask(request(5))
    assert (status(refused), b"retry-after: 5" in refused.lower()) == (503, True)
    for _, writer in stuck:
        writer.transport.abort()
    await until(lambda: place.server._app.state.downloads._open == 0)
    assert body_of(await place.ask(request(5))) == "xxxxx"


def test_bodies_of_callers_without_a_token_share_a_small_part_of_the_memory():
    held_bytes = bodies.Bodies(ServerSettings(), VirtualClock())
    for _ in range(bodies.MOST_UNKNOWN // len(MEBIBYTE)):
        held_bytes.take(len(MEBIBYTE), is_known=False)
    with pytest.raises(ApiError, match="too many bodies") as caught:
        held_bytes.take(1, is_known=False)
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "5")
    for _ in range((bodies.MOST_TOGETHER - bodies.MOST_UNKNOWN) // len(MEBIBYTE)):
        held_bytes.take(len(MEBIBYTE), is_known=True)
    with pytest.raises(ApiError):
        held_bytes.take(1, is_known=True)
    held_bytes.give_back(bodies.MOST_UNKNOWN, is_known=False)
    held_bytes.take(1, is_known=True)


def test_what_a_request_brought_is_given_back_when_it_is_over(client):
    body = b'"' + b"x" * (len(MEBIBYTE) - 2) + b'"'
    most = bodies.MOST_TOGETHER // len(MEBIBYTE)
    found = {
        client.post("/api/jobs", content=body, headers={"Content-Type": "application/json"}).status_code
        for _ in range(most + 5)
    }
    assert found == {422}


@pytest.mark.promise("X24")
def test_pages_that_nobody_reads_cost_little_memory_and_others_get_short_answers(server, client, name, token_for):
    for number in range(8):
        body = {"name": f"{name}-{number}", "kind": "note", "manual": True, "payload": "x" * 500_000}
        assert client.post("/api/jobs", json=body).status_code == 201
    token = token_for("viewer")
    head = f"GET /api/jobs?limit=500 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with server.client(token) as viewer:
        assert len(viewer.get("/api/jobs?limit=500").content) > 3_000_000
        before = memory(server)
        with held(server, 100, head) as readers:
            found = {reader.recv(12) for reader in readers}
            assert found == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
            assert memory(server) - before < 2 * sending.MOST_TOGETHER // 1024
            assert viewer.get("/api/me").status_code == 200
            busy = viewer.get("/api/jobs?limit=500")
            assert (busy.status_code, busy.json()["code"], busy.headers["Retry-After"]) == (503, "busy", "5")
            made = client.put(f"/api/jobs/{name}", json={"kind": "note", "manual": True, "payload": "x" * 500_000})
            assert made.status_code == 201, "what is done is answered"
        eventually(lambda: viewer.get("/api/jobs?limit=500").status_code, lambda status: status == 200)


@pytest.mark.promise("X24")
def test_a_long_answer_arrives_whole_and_leaves_the_connection_usable(server, client):
    first, second = (client.get("/api/openapi.json") for _ in range(2))
    assert len(first.content) == int(first.headers["content-length"]) > 2 * sending.PIECE
    assert (first.content, first.json()["info"]["title"]) == (second.content, "Wakeful")
    assert client.head("/api/openapi.json").content == b""


@pytest.mark.promise("X24")
def test_long_answers_to_callers_without_a_token_leave_room_for_others():
    room = sending.SendBudget()
    room.take(sending.MOST_UNKNOWN, is_known=False)
    with pytest.raises(ApiError, match="Too many long answers"):
        room.take(sending.PIECE, is_known=False)
    room.take(sending.MOST_TOGETHER - sending.MOST_UNKNOWN, is_known=True)
    with pytest.raises(ApiError, match="Too many long answers"):
        room.take(1, is_known=True)
    room.give_back(sending.MOST_UNKNOWN, is_known=False)
    room.take(sending.MOST_UNKNOWN, is_known=True)


@pytest.mark.promise("X24")
def test_the_description_is_written_once_however_often_it_is_asked_for(sqlite_scene):
    async def main():
        async with sqlite_scene.scheduler() as scheduler, Callers(scheduler) as callers:
            for path, begin in (("/api/openapi.json", b'{"openapi"'), ("/api/docs", b"<!doctype html>")):
                first, second = [(await callers.ask(None, f"GET {path}")).content for _ in range(2)]
                assert first == second
                assert first.startswith(begin)
            texts = callers.app.state.description
            assert (await callers.ask(None, "GET /api/openapi.json")).content == texts.for_programs
            assert callers.app.state.description is texts

    run(main(), sqlite_scene.clock)
