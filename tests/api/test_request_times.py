"""How long a connection may take over what it does, step by step, with a transport that sends nowhere."""

from __future__ import annotations

import asyncio

import pytest
from uvicorn import Config

from wakeful.clock import ManualClock
from wakeful.routing.settings import ConnectionLimits
from wakeful.surfaces.api.connections import LEAST_READ, BoundedProtocol, Connections

pytestmark = pytest.mark.promise("X18")
WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Wire(asyncio.Transport):
    """Keeps what is written; `left` is what the client has not read of it."""

    def __init__(self):
        super().__init__({"peername": ("203.0.113.7", 1), "sockname": ("127.0.0.1", 2)})
        self.sent, self.left, self.ended = b"", 0, None

    def write(self, data):
        self.sent += data

    def get_write_buffer_size(self):
        return self.left

    def is_closing(self):
        return self.ended is not None

    def close(self):
        self.ended = self.ended or "closed"

    def abort(self):
        self.ended = "aborted"

    def pause_reading(self):
        """Nothing comes by itself."""

    def resume_reading(self):
        """As above."""


class Client:
    """One connection in virtual time."""

    def __init__(self):
        self.clock = ManualClock()
        self.all = Connections(ConnectionLimits(head_s=10, idle_s=20, drain_s=30), self.clock)
        config = Config(answer, log_config=None, lifespan="off")
        config.load()
        self.protocol = BoundedProtocol(config, self.all, {})
        self.wire = Wire()
        self.protocol.connection_made(self.wire)

    def after(self, seconds, data=None):
        """What has become of the connection so much later, and after something more came."""
        self.clock.elapse(seconds)
        if data is not None:
            self.protocol.data_received(data)
        self.all.sweep()
        return self.wire.ended, self.wire.sent[9:12]

    async def asked(self):
        """A whole request, and its answer."""
        self.protocol.data_received(WHOLE)
        while not self.protocol.is_waiting:  # noqa: ASYNC110 - it is answered by a task of the server's
            await asyncio.sleep(0)
        assert self.wire.sent.startswith(b"HTTP/1.1 200")
        self.wire.sent = b""


async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def connected(test):
    """Run a test with a client of its own."""

    def run():
        async def main():
            await test(Client())

        asyncio.run(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


OPEN, CLOSED, TOO_SLOW = (None, b""), ("closed", b""), ("closed", b"408")


@connected
async def test_the_first_head_has_its_time_from_the_start_however_late_it_begins(client):
    assert client.after(9.9, b"GET / HT") == OPEN
    assert client.after(0.1) == TOO_SLOW


@connected
async def test_a_connection_that_says_nothing_is_closed_without_an_answer(client):
    assert client.after(9.999) == OPEN
    assert client.after(0.001) == CLOSED


@connected
async def test_an_idle_connection_has_its_own_time_and_a_further_head_its_own_from_its_first_byte(client):
    await client.asked()
    assert client.after(19.9, b"GET / HT") == OPEN
    assert client.after(9.9, b"TP/1.1\r\n") == OPEN
    assert client.after(0.1) == TOO_SLOW


@connected
async def test_an_idle_connection_ends_in_silence(client):
    await client.asked()
    assert client.after(19.999) == OPEN
    assert client.after(0.001) == CLOSED


@connected
async def test_no_other_timer_ends_an_idle_connection(client):
    await client.asked()
    assert client.protocol.timeout_keep_alive_task is None


@connected
async def test_a_request_that_turns_out_to_be_broken_is_refused_and_its_late_answer_goes_nowhere(client):
    reached, left, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def late(scope, receive, send):
        reached.set()
        await left.wait()
        await answer(scope, receive, send)
        over.set()

    client.protocol.app = late
    client.protocol.data_received(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    await reached.wait()
    assert client.after(0, b"no number\r\n") == ("closed", b"400")
    left.set()
    await asyncio.wait_for(over.wait(), 60)
    assert client.wire.sent.count(b"HTTP/1.1 ") == 1


@connected
async def test_a_body_that_turns_out_to_be_broken_after_its_answer_ends_the_connection_in_silence(client):
    client.protocol.data_received(WHOLE.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"))
    while not client.protocol.is_waiting:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    client.wire.sent = b""
    assert client.after(0, b"no number\r\n") == CLOSED


@connected
async def test_who_has_not_read_its_answer_does_not_give_way(client):
    await client.asked()
    assert client.protocol.may_give_way
    client.wire.left = 1
    assert not client.protocol.may_give_way


@pytest.mark.parametrize(("read", "ended"), [(LEAST_READ, None), (LEAST_READ - 1, "aborted")])
def test_who_reads_too_little_of_an_answer_in_time_is_hung_up_on(read, ended):
    async def main():
        client = Client()
        await client.asked()
        client.wire.left = 10 * LEAST_READ
        client.wire.close()  # the last answer: it is closed once it is read
        client.after(0)
        client.wire.left -= read
        client.after(29.9)
        client.after(0.1)
        return client.wire.ended if client.wire.ended == "aborted" else None

    assert asyncio.run(main()) == ended


@connected
async def test_a_client_that_has_caught_up_has_the_whole_time_again(client):
    await client.asked()
    client.protocol.pause_writing()
    client.wire.left = 1000
    assert client.after(29.9) == OPEN
    client.protocol.resume_writing()
    client.protocol.pause_writing()
    assert client.after(29.9) == OPEN
    assert client.after(29.9) == OPEN
    assert client.after(0.1)[0] == "aborted"
