"""`wakeful serve` from the first request to the last: what is ready when, and how it ends."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import sqlite3
import stat

import httpx
import pytest

from tests.api.conftest import Server
from tests.cli.terminal import PATIENCE, Terminal

SHELL = ("--", "sh", "-c")


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def said(server):
    """Everything the server has said by its end."""
    server.process.signal(signal.SIGTERM)
    answer = server.process.ended()
    assert answer.code == 0
    return answer.err


def gone(port):
    """Wait until no connection is accepted any more: one from the moment of the end gets no answer, or is closed."""
    for _ in range(PATIENCE):
        with socket.socket() as link, contextlib.suppress(ConnectionResetError, TimeoutError):
            link.settimeout(1)
            if link.connect_ex(("127.0.0.1", port)) != 0:
                return True
            link.recv(1)
    return False


# -- being there ------------------------------------------------------------------------------------------------------


def test_health_is_reported_without_a_token(server):
    with server.client() as client:
        assert client.get("/livez").json() == {"status": "ok"}
        for path in ("/healthz", "/readyz"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["status"], answer.json()["reasons"]) == (200, "ok", [])


def test_the_api_describes_itself_without_a_token_and_without_anything_from_elsewhere(server):
    with server.client() as client:
        schema = client.get("/api/openapi.json").json()
        page = client.get("/api/docs")
    assert schema["openapi"].startswith("3.1")
    assert {"/healthz", "/api/me"} <= set(schema["paths"])
    assert list(schema["paths"]["/api/me"]["get"]["responses"]["401"]["content"]) == ["application/problem+json"]
    assert "HTTPValidationError" not in json.dumps(schema)
    assert page.headers["content-type"].startswith("text/html")
    assert "/api/me" in page.text
    assert "<script" not in page.text
    assert "src=" not in page.text


def test_every_refusal_is_described_as_a_problem_whatever_else_an_address_answers(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    described = {
        (path, method, status): list(answer["content"])
        for path, operations in paths.items()
        for method, operation in operations.items()
        for status, answer in operation["responses"].items()
        if path.startswith("/api/") and status >= "400"
    }
    assert {key: kinds for key, kinds in described.items() if kinds != ["application/problem+json"]} == {}
    assert len({re.sub(r"{.*?}", "{}", path) for path in paths}) == len(paths)


def test_every_operation_has_a_name_of_its_own(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    names = [operation["operationId"] for path in paths.values() for operation in path.values()]
    assert len(names) == len(set(names))


def test_the_first_start_makes_a_token_that_its_owner_alone_can_read(terminal):
    server = Server(terminal)
    assert stat.S_IMODE(server.token_file.stat().st_mode) == 0o600
    with server.client(server.token) as client:
        assert client.get("/api/me").json() == {"name": "admin", "role": "admin"}
    assert f"the admin token is in {server.token_file}" in said(server)
    again = Server(terminal)
    assert again.token == server.token
    assert [token["name"] for token in terminal.ask("token", "list", "--json").json] == ["admin"]


def test_a_lost_token_file_is_reported_and_the_command_line_makes_another_token(terminal):
    first = Server(terminal)
    said(first)
    first.token_file.unlink()
    server = Server(terminal)
    assert not server.token_file.exists()
    token = terminal.ask("token", "create", "again", "--role", "admin").out.strip()
    with server.client(token) as client:
        assert client.get("/api/me").status_code == 200
    assert "no valid token is stored with it: create one with wakeful token create NAME --role admin" in said(server)


def test_a_revoked_token_is_not_pointed_at(terminal):
    first = Server(terminal)
    said(first)
    assert terminal.ask("token", "revoke", "admin").code == 0
    assert "no valid token is stored with it" in said(Server(terminal))


def test_an_app_of_ones_own_answers_too(terminal):
    (terminal.folder / "jobs.py").write_text(
        "from wakeful import Scheduler\nscheduler = Scheduler('sqlite:///app.db')\n"
    )
    server = Server(terminal, "--app", "jobs:scheduler")
    token = (terminal.folder / "app.db.token").read_text().strip()
    with server.client(token) as client:
        assert client.get("/api/me").json()["role"] == "admin"


def test_a_server_that_others_can_reach_says_what_protects_it(terminal):
    server = Server(terminal, "--host", "0.0.0.0")  # noqa: S104 - what is tested
    assert server.url == f"http://127.0.0.1:{server.port}"
    assert "is reachable from other machines; only tokens protect it" in said(server)


def test_labels_are_what_jobs_can_ask_for(terminal):
    Server(terminal, "--labels", "gpu, big", "--labels", "eu")
    connection = sqlite3.connect(terminal.folder / ".wakeful" / "wakeful.db")
    (details,) = connection.execute("SELECT details FROM nodes ORDER BY id DESC LIMIT 1").fetchone()
    connection.close()
    assert sorted(json.loads(details)["labels"]) == ["big", "eu", "gpu"]


# -- not being there --------------------------------------------------------------------------------------------------


def refused(answer, code, sentence):
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("Error: ")
    assert answer.err.count("\n") == 1
    assert sentence in answer.err


def test_a_port_in_use_is_reported_before_anything_is_started(terminal):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = terminal("serve", "--port", str(port), "--db", "new/jobs.db")
    refused(answer, 4, f"Port {port} on 127.0.0.1 is in use by another program: choose another with --port.")
    assert not (terminal.folder / "new").exists()


def test_a_second_server_on_the_same_file_is_refused_with_the_holder_and_leaves_the_first_alone(terminal):
    server = Server(terminal)
    refused(
        terminal("serve", "--port", "0"), 4, f"Another server already runs this store (process {server.process.pid} on "
    )
    with server.client(server.token) as client:
        assert client.get("/api/me").status_code == 200


def test_a_newer_store_is_left_as_it_is(terminal):
    said(Server(terminal))
    path = terminal.folder / ".wakeful" / "wakeful.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.execute("UPDATE meta SET value = '99' WHERE key = 'oldest_schema'")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    refused(terminal("serve", "--port", "0"), 1, "newer Wakeful")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["--host", "203.0.113.7"], 2, "203.0.113.7 is not an address of this machine"),
        (["--host", "no such host"], 2, "is not an address of this machine"),
        (["--port", "70000"], 2, "--port"),
        (["--db", "/proc/none/jobs.db"], 1, "cannot be made"),
        (["--config", "none.yaml"], 1, "none.yaml: The file cannot be read"),
        (["--shutdown-wait", "soon"], 2, "Expected format"),
    ],
)
def test_what_cannot_be_served_is_reported_in_one_sentence(terminal, argv, code, sentence):
    port = [] if "--port" in argv else ["--port", "0"]
    refused(terminal("serve", *port, *argv), code, sentence)
    assert list((terminal.folder / ".wakeful").iterdir()) == []


# -- the configuration file -------------------------------------------------------------------------------------------


def test_the_file_says_where_and_the_command_line_says_it_louder(terminal):
    with socket.create_server(("127.0.0.1", 0)) as link:
        free = link.getsockname()[1]
    (terminal.folder / "wakeful.yaml").write_text(
        f"store: sqlite:///data/jobs.db\nserver: {{port: {free}, allowed_hosts: [jobs.example], "
        "public_url: 'https://public.example'}\n"
    )
    process = terminal.start("serve")
    assert f"http://127.0.0.1:{free}" in process.until("listening on")
    with httpx.Client(base_url=f"http://127.0.0.1:{free}", trust_env=False) as client:
        known = {host: client.get("/healthz", headers={"Host": host}).status_code for host in HOSTS}
        own = client.post("/nothing", headers={"Host": "public.example", "Origin": "https://public.example"})
        foreign = client.post("/nothing", headers={"Host": "public.example", "Origin": "https://jobs.example"})
    assert known == HOSTS
    assert (own.status_code, foreign.status_code) == (401, 403)
    assert (terminal.folder / "data" / "jobs.db").exists()
    process.kill()
    louder = terminal.start("serve", "--port", "0", "--db", "other.db")
    assert str(free) not in louder.until("listening on")
    assert (terminal.folder / "other.db").exists()


HOSTS = {"jobs.example": 200, "jobs.example:99": 200, "public.example": 200, "evil.example": 403}


def test_a_file_with_a_mistake_starts_nothing(terminal):
    (terminal.folder / "wakeful.yaml").write_text("server:\n  prot: 1\n")
    answer = terminal("serve", "--port", "0")
    refused(answer, 1, "wakeful.yaml, line 2: There is no key 'prot' in server. Did you mean 'port'?")
    assert list((terminal.folder / ".wakeful").iterdir()) == []


def test_limits_and_defaults_hold_for_what_is_made_through_the_server(terminal):
    (terminal.folder / "wakeful.yaml").write_text(
        "limits: {min_interval: 10m}\ndefaults: {timezone: Asia/Tokyo, catch_up: {within: 2h}}\n"
    )
    server = Server(terminal)
    job = {"name": "job", "kind": "command", "payload": {"argv": ["true"]}}
    with server.client(server.token) as client:
        made = client.post("/api/jobs", json={**job, "trigger": {"cron": "0 9 * * *"}})
        own = client.post("/api/jobs", json={**job, "name": "own", "trigger": {"every": "10m"}, "catch_up": "skip"})
        often = client.post("/api/jobs", json={**job, "name": "often", "trigger": {"every": "9m"}})
        timing = {"type": "cron", "expression": "0 9 * * *"}
        client.put("/api/schedule/standup", json={"prompt": "hello", "schedule": timing})
        standup = client.get("/api/jobs/standup").json()
    assert (made.status_code, made.json()["zone"]) == (201, "Asia/Tokyo")
    assert made.json()["options"]["catch_up"] == {"within": "2h"}
    assert (own.status_code, own.json()["options"]["catch_up"]) == (201, "skip")
    assert (often.status_code, often.json()["code"]) == (400, "min_interval")
    assert often.json()["error"].startswith("Minimum interval is 10 minutes")
    assert (standup["zone"], standup["options"]["catch_up"]) == ("Asia/Tokyo", {"within": "2h"})


@pytest.mark.promise("C3")
def test_with_a_limit_of_one_due_jobs_run_one_at_a_time(terminal):
    (terminal.folder / "my.yaml").write_text("limits: {max_running: 1}\n")
    started, go_on = terminal.pipe("started"), terminal.pipe("go_on")
    for name in ("a", "b"):
        terminal.ask("add", name, "--at", "now", *SHELL, f"echo {name} > {started.path}; read x < {go_on.path}")
    Server(terminal, "--config", "my.yaml")
    first = started.line()
    assert [run["job"] for run in terminal.ask("runs", "--json").json if run["status"] == "active"] == [first]
    go_on.write("go")
    assert {first, started.line()} == {"a", "b"}
    runs = terminal.ask("runs", "--json").json
    assert [(run["job"], run["status"]) for run in runs if run["job"] == first] == [(first, "done")]
    go_on.write("go")


# -- ending -----------------------------------------------------------------------------------------------------------


def test_a_stopping_server_answers_no_requests_while_it_waits_for_what_runs(terminal):
    server = Server(terminal)
    started, go_on = terminal.pipe("started"), terminal.pipe("go_on")
    terminal.ask("add", "job", "--at", "now", *SHELL, f"echo > {started.path}; read x < {go_on.path}")
    started.line()
    server.process.signal(signal.SIGTERM)
    server.process.until("stopping, 1 run may take")
    assert gone(server.port)
    go_on.write("go")
    assert server.process.ended().code == 0
    assert terminal.ask("runs", "--json").json[0]["outcome"] == "success"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_that_never_ends_does_not_hold_up_the_end(terminal, number):
    server = Server(terminal)
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as link:
        link.sendall(b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        server.process.signal(number)
        server.process.until("stopping")
        server.process.signal(number)
        server.process.until("stopping without waiting for runs")
        answer = server.process.ended()
    assert answer.code == 0
    assert answer.err.splitlines()[-1].endswith("stopped")
    assert "Traceback" not in answer.err


def test_a_connection_that_is_kept_open_does_not_hold_up_the_end(terminal):
    server = Server(terminal)
    with server.client(server.token) as client:
        assert client.get("/api/me").status_code == 200
        assert said(server).splitlines()[-1].endswith("stopped")


def test_a_stream_announces_that_the_server_ends(terminal):
    server = Server(terminal)
    with server.client(server.token) as client, client.stream("GET", "/api/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith(":")
        assert said(server).splitlines()[-1].endswith("stopped")
        assert "event: closing" in list(lines)


def test_the_next_server_can_have_the_port_at_once(terminal):
    server = Server(terminal)
    with server.client() as client:
        assert client.get("/livez").status_code == 200
        said(server)
    again = terminal.start("serve", "--port", str(server.port))
    assert f":{server.port}" in again.until("listening on")


def test_a_client_that_does_not_read_does_not_hold_up_the_end(terminal):
    server = Server(terminal)
    request = b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        link.settimeout(PATIENCE)
        link.connect(("127.0.0.1", server.port))
        link.sendall(request * 1000)
        assert link.recv(100).startswith(b"HTTP/1.1 200")
        assert said(server).splitlines()[-1].endswith("stopped")
