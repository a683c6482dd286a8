"""Requests that refer to secrets: looked up for every run, sent, and kept nowhere."""

from __future__ import annotations

import pytest

from tests.http.test_requests import ask
from wakeful.config.entries import Setting, forms, read_entry
from wakeful.domains.http.spec import RequestSpec
from wakeful.errors import InvalidJob

TOKEN = "a-long-secret-value"  # noqa: S105 - of no one


def written(folder, **data):
    """The job as a file writes it, and what is wrong with it."""
    found, problems = read_entry("probe", {"every": "1h", **data}, Setting(folder, "UTC", forms()))
    return (found.new.payload if found is not None else None), [(one.where, one.message) for one in problems]


def test_a_request_in_a_file_is_what_add_would_store(tmp_path):
    payload, problems = written(
        tmp_path, url="https://example.org/a", method="post", headers={"X-Team": "ops"}, body={"a": "$${b}"},
        expect=[200, "3xx"], redirects="refuse",
    )  # fmt: skip
    assert problems == []
    assert payload == {
        "url": "https://example.org/a", "method": "post", "headers": {"X-Team": "ops"}, "body": {"a": "${b}"},
        "expect": [200, "3xx"], "follow_redirects": False,
    }  # fmt: skip


def test_references_stay_references_and_files_become_whole_paths(tmp_path):
    headers = {"Authorization": "Bearer ${TOKEN}", "X-Key": "${file:key.txt}"}
    payload, problems = written(tmp_path, url="${BASE}/health", headers=headers, body="a$${b}")
    assert problems == []
    assert payload == {
        "url": "${BASE}/health", "body": "a$${b}", "references": True,
        "headers": {"Authorization": "Bearer ${TOKEN}", "X-Key": f"${{file:{tmp_path}/key.txt}}"},
    }  # fmt: skip
    RequestSpec.from_payload(payload)


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        ({"url": "ftp://example.org"}, ("url",), "must begin with http:// or https://"),
        ({"url": "https://${HOST}:port/"}, ("url",), "The url of an http job"),
        ({"url": "https://a.org", "method": "G T"}, ("method",), "a word such as GET or POST"),
        ({"url": "https://a.org", "method": "${M}"}, ("method",), "a job may have in body or headers or url alone"),
        ({"url": "https://a.org", "headers": {"X": 1}}, ("headers", "X"), "put it in quotes"),
        ({"url": "https://a.org", "headers": {"X": "${A}\n"}}, ("headers",), "one line of printable ASCII"),
        ({"url": "https://a.org", "body": 3}, ("body",), "must be a text, or a map or list"),
        ({"url": "https://a.org", "expect": 999}, ("expect",), "status codes such as 200 or 2xx"),
        ({"url": "https://a.org", "redirects": "maybe"}, ("redirects",), "follow or refuse"),
        ({"url": "https://a.org", "header": {}}, ("header",), "Did you mean 'headers'?"),
        ({"url": "https://a.org", "command": ["ls"]}, ("url",), "is a second thing to do besides command"),
        ({"method": "POST"}, (), "does not say what to do: give command, url or ping"),
    ],
)
def test_a_mistake_in_a_request_is_reported_with_its_place(tmp_path, data, where, message):
    payload, problems = written(tmp_path, **data)
    assert payload is None
    assert problems[0][0] == where
    assert message in problems[0][1]


def test_what_is_looked_up_is_sent_and_neither_stored_nor_kept(site, tmp_path, monkeypatch):
    monkeypatch.setenv("PROBE_TOKEN", TOKEN)
    monkeypatch.setenv("PROBE_BODY", "told-in-the-body-alone")
    (tmp_path / "key.txt").write_text("another-secret\n")
    payload, _ = written(
        tmp_path, url=f"{site.url}/echo/${{PROBE_TOKEN}}", method="POST",
        headers={"Authorization": "Bearer ${PROBE_TOKEN}", "X-Key": "${file:key.txt}"},
        body={"text": "$${x} ${PROBE_BODY}"},
    )  # fmt: skip
    run = ask(payload)
    assert run.outcome == "success", run.error
    (seen,) = site.seen
    assert seen["path"] == f"/echo/{TOKEN}"
    assert (seen["headers"]["Authorization"], seen["headers"]["X-Key"]) == (f"Bearer {TOKEN}", "another-secret")
    assert seen["body"] == '{"text": "${x} told-in-the-body-alone"}'
    assert "told-in-the-body-alone" not in str(run.output)
    assert TOKEN not in str(run.output)
    assert "another-secret" not in str(run.output)
    assert TOKEN not in str(payload)


def test_a_reference_that_leads_nowhere_fails_the_run_and_names_it(site):
    run = ask({"url": f"{site.url}/${{NOT_SET_ANYWHERE}}", "references": True})
    assert run.outcome == "error"
    assert "needs ${NOT_SET_ANYWHERE}, which is not set" in run.error
    assert site.seen == []


def test_without_the_mark_the_signs_are_sent_as_they_are(site, monkeypatch):
    monkeypatch.setenv("PROBE_TOKEN", TOKEN)
    ask({"url": f"{site.url}/echo", "method": "POST", "body": "${PROBE_TOKEN}"})
    assert site.seen[0]["body"] == "${PROBE_TOKEN}"


def test_what_came_over_the_network_may_not_refer_to_anything():
    payload = {"url": "https://example.org/${HOME}", "references": True, "guarded": True}
    with pytest.raises(InvalidJob, match="over the network, write the values"):
        RequestSpec.from_payload(payload)
