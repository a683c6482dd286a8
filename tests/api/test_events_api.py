"""`GET /api/events`: nothing is lost, nothing comes twice, and no reader slows down others."""

from __future__ import annotations

import asyncio
import itertools
import signal
import socket
from contextlib import closing

import pytest

from tests.api.conftest import Server
from tests.api.sse import reading, take
from tests.cli.terminal import Terminal
from tests.waiting import ended
from wakeful import Scheduler

_numbers = itertools.count(1)


def make(client, **fields):
    name = f"job-{next(_numbers)}"
    assert client.post("/api/jobs", json={"name": name, "every": "6h", **fields}).status_code == 201
    return name


def elsewhere(server, work):
    """Something done to the store by another process; here by this one."""

    async def visit():
        async with Scheduler(f"sqlite:///{server.folder}/.wakeful/wakeful.db") as scheduler:
            return await scheduler.transact(work)

    return asyncio.run(visit())


def test_events_come_as_they_happen_with_ids_that_only_go_up(client):
    with reading(client) as events:
        name = make(client, command=["true"])
        started = client.post(f"/api/jobs/{name}/run").json()["id"]
        seen = take(events, 3)
    assert [(one.event, one.data["type"]) for one in seen] == [
        ("job", "added"),
        ("run", "started"),
        ("run", "finished"),
    ]
    about = {"run": started, "job_id": seen[1].data["data"]["job_id"], "job": seen[1].data["data"]["job"]}
    assert seen[2].data["data"] == {**about, "outcome": "success"}
    places = [tuple(map(int, one.id.split("-"))) for one in seen]
    assert places == sorted(set(places))


def test_a_reader_gets_only_the_streams_it_asks_for(client):
    with reading(client, stream="job") as events:
        name = make(client, command=["true"])
        ended(client, client.post(f"/api/jobs/{name}/run").json()["id"])
        client.post(f"/api/jobs/{name}/pause")
        assert [one.data["type"] for one in take(events, 2)] == ["added", "paused"]


def test_a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice(client):
    with reading(client) as events:
        names = [make(client) for _ in range(6)]
        client.post("/api/jobs:pause", json={"ids": names})  # six events of one group
        client.post("/api/jobs:resume", json={"ids": names})
        whole = take(events, 18)
    for number, one in enumerate(whole[:-1]):
        following = whole[number + 1 :]
        for how in ("last", "last_event_id"):
            with reading(client, **{how: one.id}) as events:
                assert take(events, len(following)) == following


def test_what_another_process_does_comes_too(client, server):
    with reading(client, stream="job") as events:
        assert server.terminal.ask("add", "by-hand", "--every", "1h", "--", "true").code == 0
        (added,) = take(events, 1)
    assert (added.data["type"], added.data["data"]["job"]) == ("added", "by-hand")


def test_a_reader_gets_a_notice_when_what_it_missed_is_no_longer_on_record(client, server):
    with reading(client) as events:
        make(client)
        (first,) = take(events, 1)
    make(client)  # missed, and pruned
    make(client)  # the newest is never pruned
    elsewhere(server, lambda tx, _: tx.events.prune(tx.now + 1, 100_000))
    make(client)
    for last in (first.id, "0"):
        with reading(client, last=last) as events:
            gap, kept, added = take(events, 3)
            assert (gap.event, gap.data["reason"], kept.event, added.data["type"]) == ("gap", "pruned", "job", "added")
    with reading(client, last="999999999-0") as events:
        assert take(events, 1)[0].data["reason"] == "ahead"
        make(client)
        assert take(events, 1)[0].data["type"] == "added"


@pytest.mark.parametrize(
    "query", [{"stream": "gossip"}, {"last_event_id": "x"}, {"last_event_id": "-1"}, {"last_event_id": "9" * 30}]
)
def test_what_cannot_be_meant_is_refused(client, query):
    assert client.get("/api/events", params=query).status_code == 400


def test_a_server_that_ends_says_so_and_is_not_kept(tmp_path):
    terminal = Terminal(tmp_path)
    try:
        server = Server(terminal)
        with server.client(server.token) as client, reading(client) as events:
            server.process.signal(signal.SIGTERM)
            assert take(events, 1)[0].event == "closing"
        assert server.process.ended().code == 0
    finally:
        terminal.close()


@pytest.mark.promise("H15")
def test_a_stream_that_nobody_reads_does_not_delay_the_end_of_the_server(tmp_path):
    terminal = Terminal(tmp_path)
    try:
        server = Server(terminal)
        with closing(socket.socket()) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", server.port))
            host, right = f"127.0.0.1:{server.port}", f"Authorization: Bearer {server.token}"
            deaf.sendall(f"GET /api/events HTTP/1.1\r\nHost: {host}\r\n{right}\r\n\r\n".encode())
            assert deaf.recv(4096).startswith(b"HTTP/1.1 200")
            told = {"type": "paused", "job": "x" * 100_000}
            for _ in range(8):
                elsewhere(server, lambda tx, _: tx.events.emit("job", *[told] * 5))
            with server.client(server.token) as client, reading(client, last="0") as events:
                take(events, 40)  # so it was sent to the other one, too
            server.process.signal(signal.SIGTERM)
            assert server.process.ended().code == 0
            assert "graceful shutdown exceeded" not in server.process.log  # which is said where a request is waited for
    finally:
        terminal.close()
