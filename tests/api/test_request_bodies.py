"""What the guard takes of a request before a route sees it: called directly, in virtual time."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from wakeful.errors import NotAllowed, SchedulerError
from wakeful.routing.settings import ConnectionLimits, ServerSettings
from wakeful.surfaces.api.guard import Guard
from wakeful.testing import VirtualClock, run

pytestmark = pytest.mark.promise("X18")
SETTINGS = ServerSettings(port=7878, max_body=100, connections=ConnectionLimits(body_s=30))


class Caller:
    """Sends a request to the guard, piece by piece, and keeps the answer."""

    def __init__(
        self, *pieces, method="POST", path="/api/jobs", query=b"", pause=0.0, admit=None, server="127.0.0.1",
        settings=SETTINGS, **headers,
    ):  # fmt: skip
        self.clock = VirtualClock()
        self.pieces, self.pause, self.taken = list(pieces), pause, 0
        self.bodies = []  # what the app was given
        given = {"host": "localhost:7878", "content_type": "application/json", **headers}
        named = [
            (name.replace("_", "-").encode(), value.encode()) for name, value in given.items() if value is not None
        ]
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query,
            "headers": named, "server": (server, 7878), "client": ("203.0.113.7", 1),
        }  # fmt: skip
        self.sent = []
        run(Guard(self._app, settings, self.clock, admit)(scope, self._receive, self._send), self.clock)

    async def _receive(self):
        self.taken += 1
        if self.pause:
            await self.clock.sleep(self.pause)
        if not self.pieces:
            return {"type": "http.disconnect"}
        body = self.pieces.pop(0)
        return {"type": "http.request", "body": body, "more_body": body is not None and not body.endswith(b"}")}

    async def _app(self, scope, receive, send):
        self.bodies.append((await receive()).get("body", b""))
        if scope["path"] == "/waits":
            raise asyncio.CancelledError
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/breaks":
            raise RuntimeError("in the middle")
        if scope["path"] == "/lasts":
            raise asyncio.CancelledError
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, message):
        self.sent.append(message)

    @property
    def answer(self):
        """The status, the code of a refusal, and whether the connection ends."""
        head = dict(self.sent[0]["headers"])
        body = b"".join(part.get("body", b"") for part in self.sent[1:])
        return self.sent[0]["status"], json.loads(body)["code"] if body else None, head.get(b"connection") == b"close"


def test_a_body_within_the_limit_reaches_the_app_as_a_whole():
    caller = Caller(b'{"a":', b" " * 93, b"1}")
    assert (caller.answer, caller.bodies) == ((200, None, False), [b'{"a":' + b" " * 93 + b"1}"])


def test_a_body_in_pieces_is_refused_with_the_first_piece_that_is_too_much():
    caller = Caller(b'{"a":', b" " * 96, b" ", b"1}")
    assert (caller.answer, caller.bodies, caller.taken) == ((413, "too_large", True), [], 2)


@pytest.mark.parametrize(("length", "status", "taken"), [("101", 413, 0), ("100", 200, 1), ("many", 200, 1)])
def test_a_body_that_says_that_it_is_too_long_is_not_read(length, status, taken):
    caller = Caller(b"{}", content_length=length)
    assert (caller.answer[0], caller.taken) == (status, taken)


def test_a_request_that_ends_before_its_body_reaches_nothing():
    caller = Caller(b'{"a":')
    assert (caller.answer[:2], caller.bodies) == ((400, "cut_off"), [])


@pytest.mark.parametrize(("pause", "status"), [(9.9, 200), (10.1, 408)])
def test_a_body_has_its_time_however_it_trickles(pause, status):
    caller = Caller(b'{"a":', b" ", b"1}", pause=pause)
    assert caller.answer[0] == status
    assert len(caller.bodies) == (status == 200)
    assert caller.answer[2] is (status == 408)


def test_a_request_with_two_lengths_is_refused_unread():
    caller = Caller(b"{}", content_length="2", transfer_encoding="chunked")
    assert (caller.answer, caller.taken) == ((400, "two_lengths", True), 0)


@pytest.mark.parametrize(
    ("headers", "closes"),
    [
        ({}, False),
        ({"content_length": "0"}, False),
        ({"content_length": "2"}, True),
        ({"transfer_encoding": "chunked"}, True),
    ],
)
def test_a_request_without_a_token_is_refused_unread_and_the_connection_ends_where_a_body_follows(headers, closes):
    async def refuse(_):
        raise NotAllowed("You may not.")

    caller = Caller(b"{}", admit=refuse, **headers)
    assert (caller.answer[0], caller.answer[2], caller.taken) == (403, closes, 0)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:7878", 200),
        ("http://localhost:9999", 403),
        ("http://localhost", 403),
        ("https://localhost:7878", 200),
        ("http://evil.example:7878", 403),
        ("null", 403),
    ],
)
def test_a_page_of_another_port_is_another_origin(origin, status):
    assert Caller(b"{}", origin=origin).answer[0] == status


PUBLIC = ServerSettings(port=7878, public_url="https://Jobs.example.org", allowed_hosts=("other.example:8080",))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("192.0.2.5:7878", 200),  # where the connection came in
        ("192.0.2.5", 403),
        ("192.0.2.6:7878", 403),
        ("jobs.example.org", 200),
        ("jobs.example.org:9999", 200),  # a proxy may be anywhere
        ("other.example:8080", 200),
        ("other.example", 403),
        ("evil.example:7878", 403),
    ],
)
def test_a_server_answers_to_the_address_it_was_reached_by_and_to_the_names_it_was_given(host, status):
    assert Caller(method="GET", server="192.0.2.5", settings=PUBLIC, host=host).answer[0] == status


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("https://jobs.example.org", "jobs.example.org", 200),
        ("https://jobs.example.org", "localhost:7878", 200),  # a proxy that gives the host it calls
        ("http://jobs.example.org", "localhost:7878", 403),
        ("https://jobs.example.org:444", "jobs.example.org", 403),
        ("https://other.example", "other.example:8080", 403),
    ],
)
def test_a_page_of_the_public_address_is_ours(origin, host, status):
    assert Caller(b"{}", settings=PUBLIC, origin=origin, host=host).answer[0] == status


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)]
)
def test_a_cookie_is_for_our_own_pages_also_where_nothing_is_changed(site, status):
    caller = Caller(method="GET", sec_fetch_site=site, cookie="a=b; wakeful=wks_x")
    assert caller.answer[0] == status
    assert Caller(method="GET", sec_fetch_site=site, cookie="a=b").answer[0] == 200, "a cookie of another program"
    assert Caller(method="GET", sec_fetch_site="cross-site").answer[0] == 200, (
        "without a cookie there is nothing to use"
    )


@pytest.mark.parametrize(("path", "query"), [("/api/jobs\0", b""), ("/api/jobs", b"a=%00"), ("/api/jobs", b"a=\0")])
def test_a_nul_is_refused_wherever_it_stands(path, query):
    assert Caller(b"{}", path=path, query=query).answer[:2] == (400, "bad_address")


def test_a_fault_in_the_middle_of_an_answer_is_logged_and_the_answer_stays_incomplete(caplog):
    with caplog.at_level(logging.ERROR, "wakeful.api"):
        caller = Caller(method="GET", path="/breaks")
    assert [message["type"] for message in caller.sent] == ["http.response.start"]
    [record] = caplog.records
    assert "RuntimeError: in the middle" in record.getMessage()


@pytest.mark.parametrize(("kind", "status"), [(None, 415), ("text/plain", 415), ("application/json", 200)])
def test_a_body_says_that_it_is_json_except_where_the_path_is_the_right(kind, status):
    assert Caller(b"{}", content_type=kind).answer[0] == status
    assert Caller(b"{}", content_type=kind, path="/ping/KEY").answer[0] == 200


def test_an_origin_counts_whatever_else_a_request_says_about_its_page():
    caller = Caller(b"{}", origin="http://evil.example", sec_fetch_site="same-origin")
    assert caller.answer[:2] == (403, "forbidden_origin")


def test_a_fault_while_a_caller_is_looked_up_is_reported_as_one_and_shows_nothing():
    async def fail(_):
        raise SchedulerError("PLANTED")

    caller = Caller(b"{}", admit=fail)
    assert caller.answer[:2] == (500, "fault")
    assert b"PLANTED" not in caller.sent[1]["body"]


def test_an_answer_that_a_stopping_server_waits_for_no_longer_is_ended():
    assert Caller(method="GET", path="/waits").answer == (503, "stopping", True)
    lasting = Caller(method="GET", path="/lasts")
    assert (lasting.answer[0], lasting.sent[-1]["more_body"]) == (200, False)


def test_the_log_has_neither_the_query_nor_a_path_that_is_a_secret(caplog):
    with caplog.at_level(logging.DEBUG, "wakeful.access"):
        Caller(method="GET", path="/ping/PLANTED", query=b"token=PLANTED")
        Caller(method="GET", path="/api/jobs", query=b"token=PLANTED")
        Caller(method="POST", path="/hooks/reporter/deploy", query=b"token=PLANTED")  # which one was refused
        Caller(method="POST", path="/hooks/PLANTED")
    paths = [record.getMessage().split()[1] for record in caplog.records]
    assert paths == ["/ping/***", "/api/jobs", "/hooks/reporter/deploy", "/hooks/***"]
    assert "PLANTED" not in caplog.text
