"""`wakeful` under WAKEFUL_TOKEN: what it asks the server, and that it opens no store."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.cli.terminal import Terminal


class Server:
    """Answers as it is asked to, and keeps what came."""

    def __init__(self):
        server = self
        self.requests, self.status, self.answer, self.location = [], 200, {"items": []}, None

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                server.requests.append((self.command, self.path, self.headers["Authorization"], body))
                self.send_response(server.status)
                if server.location:
                    self.send_header("Location", server.location)
                self.end_headers()
                self.wfile.write(json.dumps(server.answer).encode())

            do_POST = do_GET  # noqa: N815 - the standard library's name

            def log_message(self, *_):
                """The requests are kept instead."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def terminal(tmp_path, server):
    made = Terminal(tmp_path)
    made.env |= {"WAKEFUL_TOKEN": "wk_secret", "WAKEFUL_URL": f"{server.url}/"}
    return made


def test_commands_for_agents_ask_the_server_with_the_token(terminal, server):
    assert terminal.ask("agent", "list", "--json").json == []
    server.answer = {"id": "evt_1", "waiting": 1}
    assert terminal.ask("agent", "event", "b", "Hello.", "--key", "k").out == "evt_1: 1 event waits for b.\n"
    server.answer = {"subject": "b.wake", "sentences": ["It runs by hand."], "facts": {}}
    assert terminal.ask("explain", "b/../x").out == "It runs by hand.\n"
    terminal.ask("explain", "run_1", "--json")
    body = {"text": "Hello.", "source": None, "context_key": "k", "wake": False}
    assert server.requests == [
        ("GET", "/api/agents", "Bearer wk_secret", None),
        ("POST", "/api/agents/b/events", "Bearer wk_secret", body),
        ("GET", "/api/jobs/b%2F..%2Fx/explain", "Bearer wk_secret", None),
        ("GET", "/api/runs/run_1/explain", "Bearer wk_secret", None),
    ]


AGENT = {
    "name": "a", "status": "idle", "running": 0, "max_concurrent": 1, "schedules": 1, "next_run_at": None,
    "last_outcome": None, "last_error": None, "events_waiting": 0, "paused": False, "cut_off": 0, "over_budget": None,
    "rate_limited": None,
}  # fmt: skip


def test_the_agents_that_the_token_may_see_are_listed_as_a_table(terminal, server):
    server.answer = {"items": [AGENT]}
    found = terminal.ask("agent", "list")
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[1].split()[:3] == ["a", "idle", "0/1"]
    assert [path for _, path, _, _ in server.requests] == ["/api/agents"]


def test_a_run_that_would_wait_for_a_woken_agent_is_refused_before_it_wakes_it(terminal, server):
    found = terminal.ask("agent", "wake", "b", "--wait")
    assert (found.code, found.out, server.requests) == (4, "", [])
    assert (
        found.err == "Error: --wait needs the store, and under WAKEFUL_TOKEN wakeful asks the server: leave it out.\n"
    )


@pytest.mark.parametrize(("status", "code"), [(400, 2), (401, 4), (403, 4), (404, 3), (409, 4), (422, 2), (500, 1)])
def test_a_refusal_is_the_servers_own_sentence_with_its_exit_code(terminal, server, status, code):
    server.status, server.answer = status, {"error": "Because."}
    found = terminal.ask("agent", "wake", "b")
    assert (found.code, found.err) == (code, "Error: Because.\n")


@pytest.mark.parametrize(
    "argv",
    [
        ("add", "x", "--every", "5m", "--", "ls"), ("remove", "x"), ("agent", "pause", "a"),
        ("agent", "reset-session", "a"), ("work", "list"), ("serve",), ("token", "list"), ("apply",),
        ("status",), ("doctor",), ("_complete", "bash", "wakeful", "show", ""), ("nonsense",),
        ("--db", "t.db", "agent", "list"), ("agent", "list", "--db=t.db"), ("next", "0 9 * * *"), ("demo",),
        ("copy", "a", "b"),
    ],
)  # fmt: skip
def test_every_other_command_is_refused_in_one_sentence_and_no_store_is_made(terminal, server, argv):
    before = sorted(terminal.folder.rglob("*"))
    found = terminal.ask(*argv)
    assert (found.code, found.out, len(found.err.splitlines())) == (4, "", 1)
    assert "under WAKEFUL_TOKEN wakeful asks the server at WAKEFUL_URL" in found.err
    assert (sorted(terminal.folder.rglob("*")), server.requests) == (before, [])


JOB = {
    "name": "a.tick", "kind": "agent", "schedule": "every hour", "status": "idle", "next_run_at": None, "owner": "a",
    "last_run_at": None, "last_outcome": "success", "last_error": None,
}  # fmt: skip
RUN = {
    "id": "run_1", "job": "a.tick", "reason": "schedule", "status": "done", "outcome": "error", "error": "no\nway",
    "due_at": "2026-01-01T00:00:00Z", "started_at": "2026-01-01T00:00:00Z", "finished_at": None, "output": None,
}  # fmt: skip


def test_jobs_and_runs_that_the_token_may_see_are_listed_and_shown(terminal, server):
    server.answer = {"items": [JOB], "next": None}
    assert terminal.ask("list", "--status", "idle").out.splitlines()[1].split() == [
        "a.tick", "every", "hour", "idle", "-", "success",
    ]  # fmt: skip
    assert terminal.ask("list", "--json").json == [JOB]
    server.answer = {"items": [RUN], "next": None}
    assert "no way" in terminal.ask("runs", "a.tick", "-n", "3").out
    server.answer = JOB
    assert "every hour" in terminal.ask("show", "a.tick").out
    server.answer = RUN
    assert terminal.ask("show", "run_1", "--json").json == RUN
    server.answer = {"items": [], "next": None}
    assert terminal.ask("runs").out == f"No runs that this token may see at {server.url}.\n"
    assert [path for _, path, _, _ in server.requests] == [
        "/api/jobs?status=idle&limit=50", "/api/jobs?limit=200", "/api/jobs/a.tick/runs?limit=3", "/api/jobs/a.tick",
        "/api/runs/run_1", "/api/runs?limit=20",
    ]  # fmt: skip


def test_help_and_the_version_need_no_server(terminal, server):
    assert terminal.ask("--version").code == terminal.ask("agent", "wake", "--help").code == 0
    assert terminal.ask("add", "--help").code == 0
    assert server.requests == []


def test_without_a_usable_address_it_says_so(terminal, server):
    for url, said in (
        ("", "that is not set"),
        ("file:///etc/passwd", "is 'file:///etc/passwd', which is no web address"),
    ):
        terminal.env["WAKEFUL_URL"] = url
        found = terminal.ask("agent", "list")
        assert (found.code, said in found.err) == (2, True)
    terminal.env["WAKEFUL_URL"] = "http://127.0.0.1:1"
    found = terminal.ask("agent", "list")
    assert (found.code, "gives no answer" in found.err) == (4, True)
    assert server.requests == []


def test_the_token_goes_to_the_server_it_is_for_and_no_further(terminal, server):
    elsewhere = Server()
    try:
        server.status, server.location = 302, f"{elsewhere.url}/api/agents"
        assert terminal.ask("agent", "list").code == 1
        assert elsewhere.requests == []
    finally:
        elsewhere.close()
