"""Services behind Apprise, as each of them counts and takes: what is `sent` has arrived, every part of it once."""

from __future__ import annotations

import json

import pytest
import requests

from tests.delivery.test_long_texts import AppriseConnector, Service, send, utf16, words

SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?blocks=yes"
CJK = "漢字かな" * 2_500
REPLY = "use List<String> and x < y & z " * 330
PLAIN = "word <b> & c " * 800


def size_of(text):
    return len(text.encode())


@pytest.mark.promise("A8")
@pytest.mark.parametrize(
    ("url", "field", "limit", "text"),
    [
        ("ntfy://localhost/topic", "message", (4_096, size_of), CJK),
        ("ntfy://localhost/topic", "message", (4_096, size_of), "\U0001f389" * 2_500),
        ("feishu://abcdef12345678", "content.text", (20_000, lambda text: len(json.dumps(text))), CJK),
        ("dingtalk://abcdef12345678", "text.content", (20_000, size_of), CJK),
        (SLACK, "attachments.0.blocks.0.text.text", (3_000, utf16), PLAIN),
        ("gchat://workspace/key/token", "text", (4_000, utf16), PLAIN),
    ],
)  # fmt: skip
def test_every_service_gets_parts_as_long_as_it_takes(monkeypatch, url, field, limit, text):
    most, size = limit
    says = b"ok" if url.startswith("slack") else b'{"errcode": 0, "code": 0}'
    service = Service(monkeypatch, field, lambda given: size(given) <= most, says)
    monkeypatch.setattr("time.sleep", lambda _: None)
    tried = send(AppriseConnector(url), text, title="")
    assert tried.ok, tried.error
    given = " ".join(service.taken).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert given.count("字") + given.count("word") + given.count("\U0001f389") == sum(
        text.count(sign) for sign in ("字", "word", "\U0001f389")
    )


@pytest.mark.promise("A8")
def test_what_looks_like_a_tag_in_a_reply_reaches_a_service_that_shows_html(monkeypatch):
    taken = []

    def post(url, data, **more):
        del url, more
        taken.append(data["message"])
        return _answer(200 if utf16(data["message"]) <= 1_024 else 400)

    monkeypatch.setattr(requests, "post", post)
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert send(AppriseConnector("pover://" + "a" * 30 + "@" + "b" * 30), REPLY, kind="reply").ok
    assert words(" ".join(taken)) == words(REPLY)


@pytest.mark.promise("A8")
def test_a_service_for_incidents_is_told_of_every_message(monkeypatch):
    taken = []

    def post(url, data, **more):
        del url, more
        taken.append(json.loads(data)["description"])
        return _answer(202)

    monkeypatch.setattr(requests, "post", post)
    assert send(AppriseConnector("opsgenie://" + "a" * 40), "the disk is full", kind="alert").ok
    assert taken == ["the disk is full"]


@pytest.mark.promise("A8")
def test_a_small_screen_that_shows_two_lines_gets_every_line(monkeypatch):
    screen = Service(monkeypatch, "params.message", lambda text: text.count("\n") < 2)
    monkeypatch.setattr("time.sleep", lambda _: None)
    text = "\n".join(f"line {number}" for number in range(30))
    assert send(AppriseConnector("kodi://localhost"), text).ok
    assert words(" ".join(screen.taken)) == words(text)


@pytest.mark.promise("A8")
def test_ten_thousand_characters_reach_a_service_that_apprise_calls_every_five_seconds(monkeypatch):
    slept = []
    service = Service(monkeypatch, "body", lambda text: len(text) <= 1_000)
    monkeypatch.setattr("time.sleep", slept.append)
    text = "word " * 2_000
    assert send(AppriseConnector("ryver://organization/ckhrjW8w672m6HG"), text).ok
    assert "".join(service.taken).count("word") == 2_000
    assert sum(slept) < 25


@pytest.mark.promise("A8")
def test_a_message_whose_second_part_fails_goes_on_with_that_part(monkeypatch):
    limit = [1]
    discord = Service(monkeypatch, "content", lambda _: len(discord.taken) < limit[0])
    connector = AppriseConnector("discord://123456789012345678/" + "abcdefghijklmnopqrstuvwxyz" * 2)
    text = " ".join(f"word{number}" for number in range(1_500))
    for known in (1, 3):
        limit[0] = known
        tried = send(connector, text)
        assert (tried.ok, tried.permanent, len(discord.taken)) == (False, True, known)
    limit[0] = 100
    assert send(connector, text).ok
    assert words(" ".join(discord.taken)) == words(f"backup: success {text}")


@pytest.mark.promise("A8")
@pytest.mark.parametrize(("more", "seconds"), [("", 20), ("?rto=7", 7)])
def test_a_service_that_answers_slowly_is_waited_for_unless_its_address_says_otherwise(monkeypatch, more, seconds):
    waited = []

    def post(url, timeout, **more):
        del url, more
        waited.append(timeout[1])
        return _answer(200)

    monkeypatch.setattr(requests, "post", post)
    monkeypatch.setattr(requests, "request", lambda _, url, timeout, **more: post(url, timeout, **more))
    assert send(AppriseConnector(f"json://localhost/x{more}"), "hello").ok
    assert waited == [seconds]


def _answer(status):
    made = requests.Response()
    made.status_code = status
    made._content = b'{"status": 1, "requestId": "r"}'
    return made
