"""`/ping/KEY` over real connections: open to callers with the key, and to nothing else."""

from __future__ import annotations

import socket

import pytest

from tests.api.conftest import Server, client, client_for, server, token_for
from tests.waiting import eventually
from wakeful.domains.monitors.routes import BURST

__all__ = ["Server", "client", "client_for", "server", "token_for"]

pytestmark = pytest.mark.promise("X16")


def make(client, name, **fields):
    answer = client.post("/api/jobs", json={"name": name, "ping": True, "every": "24h", "grace": "1h", **fields})
    assert answer.status_code == 201, answer.text
    url = answer.json()["monitor"]["ping_url"]
    assert client.get(answer.headers["Location"]).json()["monitor"]["ping_url"] == url
    return url


def runs(client, name):
    return client.get("/api/runs", params={"job": name}).json()["items"]


def test_a_monitor_is_made_and_pinged_over_http(client, server):
    url = make(client, "a")
    with server.client() as anyone:
        assert anyone.post(f"{url}/start").text == "OK"
        assert client.get("/api/jobs/a").json()["status"] == "running"
        assert anyone.get(url).text == "OK"
        assert anyone.head(url).status_code == 200
    first = runs(client, "a")[1]
    assert (first["outcome"], first["reason"]) == ("success", "ping")
    job = client.get("/api/jobs/a").json()
    assert (job["kind"], job["trigger"]["type"], job["monitor"]["state"]) == ("monitor", "ping", "up")
    listed = {item["name"]: item["monitor"] for item in client.get("/api/jobs").json()["items"]}
    assert (listed["a"]["state"], listed["a"]["ping_url"]) == ("up", None)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/json", "x/y", None])
def test_any_body_is_taken_and_its_first_ten_kilobytes_kept(client, server, kind):
    url = make(client, f"body-{(kind or 'none').replace('/', '-')}")
    name = url and f"body-{(kind or 'none').replace('/', '-')}"
    headers = {"Origin": "https://elsewhere.example"} | ({"Content-Type": kind} if kind else {})
    with server.client() as anyone:
        assert anyone.post(f"{url}/fail", content=b"{[\xff\x00" + b"x" * 20_000, headers=headers).text == "OK"
    (run,) = runs(client, name)
    assert len(run["output"]["text"]) == 10_000
    assert run["output"]["text"].startswith("{[\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}xxx")


@pytest.mark.parametrize("is_chunked", [True, False])
def test_a_ping_counts_however_much_it_brings(client, server, is_chunked):
    name = f"large-{is_chunked}".lower()
    url = make(client, name)
    body = b"begin" + b"x" * 3_000_000
    with server.client() as anyone:
        answer = anyone.post(f"{url}/fail", content=iter([body[:9], body[9:]]) if is_chunked else body)
        assert (answer.status_code, answer.text) == (200, "OK")
        assert anyone.get(url).text == "OK"
    latest, first = runs(client, name)
    assert (latest["outcome"], first["outcome"]) == ("success", "error")
    assert first["output"]["text"] == "begin" + "x" * 9_995


def test_a_ping_whose_body_is_cut_off_counts(client, server):
    url = make(client, "cut-off")
    host, port = url.split("/")[2].split(":")
    with socket.create_connection((host, int(port))) as connection:
        path = "/" + url.split("/", 3)[3]
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 5000000\r\n\r\n"
        connection.sendall(head.encode() + b"only this")
    (run,) = eventually(lambda: runs(client, "cut-off"), bool)
    assert (run["outcome"], run["output"]["text"]) == ("success", "only this")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/256", 400, "bad_exit_code"),
        ("/stop", 404, "not_found"),
        ("/-1", 404, "not_found"),
        ("?rid=a%20b", 400, "bad_rid"),
        (f"?rid={'a' * 65}", 400, "bad_rid"),
        ("/start/now", 404, "not_found"),
    ],
)
def test_what_means_nothing_is_refused_and_changes_nothing(client, path, status, code):
    client.delete("/api/jobs/odd")
    url = make(client, "odd")
    answer = client.post(f"{url}{path}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert runs(client, "odd") == []


def test_the_other_rules_of_the_guard_hold(client, server):
    url = make(client, "guarded")
    with server.client() as anyone:
        assert anyone.get(url, headers={"Host": "evil.example"}).status_code == 403
        assert anyone.put(url).status_code == 405
        assert anyone.get(f"{server.url}/ping/{'0' * 32}").json()["code"] == "not_found"
        assert anyone.post(f"{server.url}/ping/").status_code == 404
        assert anyone.post("/api/jobs", json={"name": "b", "every": "1h"}).status_code == 401
    assert runs(client, "guarded") == []


def test_the_key_is_shown_to_who_may_change_the_job_and_never_logged(client, client_for, server):
    url = make(client, "secret")
    key = url.rpartition("/")[2]
    viewer, operator = client_for("viewer"), client_for("operator")
    assert client.post(url).text == "OK"
    for path in ("/api/jobs/secret", "/api/jobs", "/api/jobs/secret/explain", "/api/runs"):
        assert key not in viewer.get(path).text
    assert viewer.post("/api/jobs/secret/rotate-key").status_code == 403
    assert operator.get("/api/jobs/secret").json()["monitor"]["ping_url"] == url
    rotated = operator.post("/api/jobs/secret/rotate-key").json()["monitor"]["ping_url"]
    assert rotated != url
    latest = client.get("/api/actions").json()["items"][0]
    assert (latest["what"], latest["via"], latest["undoable"]) == ("edit", "api", False), "who did it is on record"
    assert client.post(url).status_code == 404
    assert client.post(rotated).text == "OK"
    assert client.post("/api/jobs", json={"name": "plain", "manual": True}).status_code == 201
    assert client.post("/api/jobs/plain/rotate-key").json()["error"] == "plain is not a monitor: it has no key."
    assert client.get("/api/jobs/plain").json()["monitor"] is None
    client.post(f"{server.url}/ping/{'1' * 32}")
    log = server.process.until("POST /ping/*** 404")
    assert key not in log
    assert "1" * 32 not in log


def test_a_key_that_is_used_too_often_is_asked_to_wait(client, server):
    url = make(client, "busy")
    with server.client() as anyone:
        answers = [anyone.get(f"{url}/log") for _ in range(BURST + 10)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert int(refused[0].headers["Retry-After"]) >= 1
        assert anyone.get(make(client, "calm")).text == "OK"


def test_a_monitor_may_be_expected_more_often_than_jobs_may_run(client):
    assert make(client, "often", every="1m")
    answer = client.post("/api/jobs", json={"name": "c", "ping": True})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_trigger")
    answer = client.post("/api/jobs", json={"name": "c", "ping": True, "at": "2030-01-01T09:00:00Z"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_trigger")
    assert client.patch("/api/jobs/often", json={"ping": True, "cron": "0 3 * * *", "grace": "2h"}).status_code == 200
    assert client.patch("/api/jobs/often", json={"every": "2h"}).json()["code"] == "invalid_job"


def test_a_monitor_that_is_made_again_with_the_same_key_is_answered_the_same(client):
    body = {"name": "twice", "ping": True, "every": "24h"}
    first, again = (client.post("/api/jobs", json=body, headers={"Idempotency-Key": "m1"}) for _ in range(2))
    assert (first.status_code, again.status_code, again.headers["Idempotent-Replayed"]) == (201, 201, "true")
    assert first.json()["monitor"]["ping_url"] == again.json()["monitor"]["ping_url"] is not None
    client.delete("/api/jobs/twice")
    gone = client.post("/api/jobs", json=body, headers={"Idempotency-Key": "m1"})
    assert (gone.status_code, gone.json()["monitor"]["ping_url"]) == (201, None)
