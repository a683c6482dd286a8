"""What a session server's answer means, as a table."""

from __future__ import annotations

import pytest

from wakeful.domains.agents.answers import (
    Busy,
    Done,
    GoesOn,
    NoSession,
    RequestRejected,
    ServerResponse,
    Unwell,
    read_answer,
    read_status,
    same_origin,
    session_id,
)

BASE = "http://sessions.example:8080/v1"


@pytest.mark.promise("C6", "C10")
@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (ServerResponse(200, {"reply": "hi"}), Done({"reply": "hi"})),
        (ServerResponse(200, "plain text"), Done("plain text")),
        (ServerResponse(200, None), Done(None)),
        (ServerResponse(204, None), Done(None)),
        (ServerResponse(200, {"status": "completed", "output": 1}), Done({"status": "completed", "output": 1})),
        (ServerResponse(200, {"status": "ok"}), Done({"status": "ok"})),
        (ServerResponse(200, ["a", "list"]), Done(["a", "list"])),
        (
            ServerResponse(200, {"status": "completed", "statusUrl": "/s/1"}),
            Done({"status": "completed", "statusUrl": "/s/1"}),
        ),
        (ServerResponse(202, None), GoesOn(None, "the session server says accepted")),
        (ServerResponse(202, None, "/s/1"), GoesOn("/s/1", "the session server says accepted")),
        (ServerResponse(202, {"status": "queued"}), GoesOn(None, "the session server says queued")),
        (ServerResponse(200, {"status": "Accepted"}), GoesOn(None, "the session server says accepted")),
        (
            ServerResponse(200, {"status": "running", "statusUrl": "/s/2"}),
            GoesOn("/s/2", "the session server says running"),
        ),
        (ServerResponse(200, {"status": "pending"}, "/s/3"), GoesOn("/s/3", "the session server says pending")),
        (ServerResponse(200, {"statusUrl": "/s/4"}), GoesOn("/s/4", "the session server says accepted")),
        (ServerResponse(200, {"status": "failed", "error": "too long"}), RequestRejected("too long")),
        (ServerResponse(200, {"status": "error", "error": {"message": "no model"}}), RequestRejected("no model")),
        (ServerResponse(202, {"status": "cancelled"}), RequestRejected("the session says cancelled")),
        (ServerResponse(404, {"error": "gone"}), NoSession("the session server answered 404: gone")),
        (ServerResponse(409, {"error": "busy"}), Busy("the session server answered 409: busy")),
        (ServerResponse(500, {"detail": "resume failed"}), Unwell("the session server answered 500: resume failed")),
        (ServerResponse(502, "<html>"), Unwell("the session server answered 502: <html>")),
        (ServerResponse(503, None), Unwell("the session server answered 503")),
        (ServerResponse(429, None), Unwell("the session server answered 429")),
        (ServerResponse(408, None), Unwell("the session server answered 408")),
        (ServerResponse(problem="connection refused"), Unwell("connection refused")),
        (ServerResponse(problem="too long", lasting=True), RequestRejected("too long")),
        (ServerResponse(400, {"message": "bad"}), RequestRejected("the session server answered 400: bad")),
        (ServerResponse(401, None), RequestRejected("the session server answered 401")),
        (ServerResponse(403, None), RequestRejected("the session server answered 403")),
        (ServerResponse(410, None), RequestRejected("the session server answered 410")),
        (ServerResponse(422, {"error": ""}), RequestRejected("the session server answered 422")),
        (
            ServerResponse(302, None, "http://evil.example/"),
            RequestRejected(
                "the session server sends us elsewhere to http://evil.example/, which is refused: "
                "set server.sessions.url to it"
            ),
        ),
        (
            ServerResponse(304, None),
            RequestRejected("the session server sends us elsewhere, which is refused: set server.sessions.url to it"),
        ),
    ],
)
def test_what_the_answer_to_a_message_means(answer, decision):
    assert read_answer(answer) == decision


@pytest.mark.promise("C10")
@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (ServerResponse(200, {"status": "completed", "output": {"n": 1}}), Done({"n": 1})),
        (ServerResponse(200, {"status": "DONE", "result": "text"}), Done("text")),
        (ServerResponse(200, {"status": "success"}), Done({"status": "success"})),
        (ServerResponse(200, {"status": "failed", "error": "tool failed"}), RequestRejected("tool failed")),
        (ServerResponse(200, {"status": "cancelled"}), RequestRejected("the session says cancelled")),
        (ServerResponse(200, {"status": "running"}), None),
        (ServerResponse(200, {"status": "a word we do not know"}), None),
        (ServerResponse(200, {}), None),
        (ServerResponse(200, "done"), None),
        (ServerResponse(202, {"status": "completed"}), None),
        (ServerResponse(404, None), None),
        (ServerResponse(500, {"status": "failed"}), None),
        (ServerResponse(302, None, "/elsewhere"), None),
        (ServerResponse(problem="no answer"), None),
    ],
)
def test_only_what_says_that_it_is_over_is_over(answer, found):
    assert read_status(answer) == found


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"id": "abc"}, "abc"),
        ({"sessionId": "abc"}, "abc"),
        ({"session_id": "abc"}, "abc"),
        ({"id": 17}, "17"),
        ({"id": "a/../b"}, "a/../b"),
        ({"id": ".."}, None),
        ({"id": ""}, None),
        ({"id": "x" * 201}, None),
        ({"id": "a\nb"}, None),
        ({"id": True}, None),
        ({"id": {}}, None),
        ({}, None),
        ("abc", None),
        (None, None),
    ],
)
def test_what_a_new_session_is_called(body, name):
    assert session_id(ServerResponse(201, body)) == name


@pytest.mark.promise("C10")
@pytest.mark.parametrize(
    ("url", "full"),
    [
        ("/v1/status/1", "http://sessions.example:8080/v1/status/1"),
        ("status", "http://sessions.example:8080/v1/sessions/s/status"),
        ("http://sessions.example:8080/other", "http://sessions.example:8080/other"),
        ("HTTP://SESSIONS.example:8080/other", "http://SESSIONS.example:8080/other"),
        ("http://sessions.example/other", None),
        ("https://sessions.example:8080/other", None),
        ("http://169.254.169.254/latest/meta-data", None),
        ("//evil.example/x", None),
        ("http://sessions.example:8080@evil.example/x", None),
        ("file:///etc/passwd", None),
        ("http://sessions.example:notaport/", None),
        ("http://[half", None),
        ("/v1/\0", None),
        ("/v1/\ud800", None),
        ("/v1/" + "x" * 2000, None),
    ],
)
def test_a_status_address_lies_where_sessions_live(url, full):
    assert same_origin(url, BASE, f"{BASE}/sessions/s/messages") == full


@pytest.mark.promise("C10")
@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (ServerResponse(200, {"reply": "hello"}), GoesOn(None, "the session server says accepted")),
        (ServerResponse(200, None), GoesOn(None, "the session server says accepted")),
        (ServerResponse(201, "queued"), GoesOn(None, "the session server says accepted")),
        (ServerResponse(200, {"status": "whatever"}), GoesOn(None, "the session server says whatever")),
        (ServerResponse(200, {"status": "completed", "output": 1}), Done({"status": "completed", "output": 1})),
        (ServerResponse(200, {"status": "failed", "error": "no"}), RequestRejected("no")),
        (ServerResponse(200, {"statusUrl": "/s/1"}), GoesOn("/s/1", "the session server says accepted")),
    ],
)
def test_to_a_server_that_reports_an_answer_without_a_final_status_is_an_acceptance(answer, decision):
    assert read_answer(answer, reports=True) == decision
