"""The payload of an http job: what it takes, what it refuses in one sentence, and what of it is secret."""

from __future__ import annotations

import pytest

from wakeful.domains.http.secrets import redacted, redacted_url, secret_values, without
from wakeful.domains.http.spec import RequestSpec
from wakeful.errors import InvalidJob

URL = "https://example.org/"


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (None, "needs a payload"),
        ([], "needs a payload"),
        ({}, "needs a url"),
        ({"url": None}, "needs a url"),
        ({"url": "ftp://example.org/"}, "must begin with http:// or https://"),
        ({"url": URL, "metod": "GET"}, "did you mean 'method'"),
        ({"url": URL, "method": "GET /"}, "method"),
        ({"url": URL, "method": "CONNECT"}, "CONNECT"),
        ({"url": URL, "headers": []}, "map names to values"),
        ({"url": URL, "headers": {"A b": "x"}}, "not the name of a header"),
        ({"url": URL, "headers": {"A": "x\r\nHost: y"}}, "one line"),
        ({"url": URL, "headers": {"A": 7}}, "one line"),
        ({"url": URL, "headers": {"Host": "x"}}, "set by the connection"),
        ({"url": URL, "headers": {"Content-Length": "1"}}, "set by the connection"),
        ({"url": URL, "headers": {"Proxy-Authorization": "x"}}, "set by the connection"),
        ({"url": URL, "headers": {"a": "1", "A": "2"}}, "twice"),
        ({"url": URL, "headers": {f"h{n}": "x" for n in range(101)}}, "100 headers at most"),
        ({"url": URL, "body": 7}, "body"),
        ({"url": URL, "body": "\ud800"}, "surrogate"),
        ({"url": URL, "body": "x" * 600_000}, "bytes at most"),
        ({"url": URL, "expect": []}, "expect"),
        ({"url": URL, "expect": 99}, "expect"),
        ({"url": URL, "expect": True}, "expect"),
        ({"url": URL, "expect": "2x"}, "expect"),
        ({"url": URL, "expect": "6xx"}, "expect"),
        ({"url": URL, "timeout": "soon"}, "duration"),
        ({"url": URL, "timeout": -1}, "duration"),
        ({"url": URL, "follow_redirects": "no"}, "true or false"),
        ({"url": URL, "headers": {"Authorization": "***"}}, "hides a value"),
        ({"url": "https://ann:***@example.org/"}, "hides a value"),
        ({"url": "https://***@example.org/"}, "hides a value"),
        ({"url": "https://example.org/?api_key=***"}, "hides a value"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_one_sentence(payload, said):
    with pytest.raises(InvalidJob, match=said) as error:
        RequestSpec.from_payload(payload)
    assert str(error.value).count("\n") == 0


def test_what_was_not_said_is_a_get_that_expects_success():
    spec = RequestSpec.from_payload({"url": URL})
    assert (spec.method, spec.expect, spec.follow_redirects, spec.guarded) == ("GET", ("2xx",), True, False)
    assert [code for code in (100, 199, 200, 204, 299, 300, 404, 500) if spec.expects(code)] == [200, 204, 299]


def test_stars_elsewhere_are_no_hidden_value():
    spec = RequestSpec.from_payload({"url": "https://example.org/a***b?q=***", "body": "***"})
    assert (spec.url, spec.body) == ("https://example.org/a***b?q=***", "***")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org/a?q=1#x", "https://example.org/a?q=1#x"),
        ("https://ann:secret@example.org/", "https://ann:***@example.org/"),
        ("https://key-123456@example.org/", "https://***@example.org/"),
        ("https://example.org/@home", "https://example.org/@home"),
        ("https://example.org/?access_token=abc&q=1", "https://example.org/?access_token=***&q=1"),
        ("https://example.org/?a%70i_key=abc", "https://example.org/?a%70i_key=***"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url, shown):
    assert redacted_url(url) == shown


def test_header_values_are_hidden_and_names_are_not():
    shown = redacted({"url": URL, "headers": {"Authorization": "Bearer abc", "X-Team": "ops"}})
    assert shown["headers"] == {"Authorization": "***", "X-Team": "***"}
    assert redacted("anything") == "anything"


def test_secrets_that_come_back_are_replaced():
    spec = RequestSpec.from_payload(
        {
            "url": "https://ann:p%40ssword@example.org/?sig=abc%20def",
            "headers": {"Authorization": "Bearer t0ken-123", "Accept": "text/plain"},
        }
    )
    said = 'Bearer t0ken-123, t0ken-123, p@ssword, YW5uOnBAc3N3b3Jk, "abc def", abc%20def, text/plain'
    assert without(said, secret_values(spec)) == '***, ***, ***, ***, "***", ***, text/plain'
