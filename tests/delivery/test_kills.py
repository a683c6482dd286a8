"""kill -9 between storing, sending and acknowledging, on real processes: nothing is lost, and a double says so."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tests.cli.terminal import PATIENCE, Terminal
from wakeful.clock import SystemClock

pytestmark = [pytest.mark.long, pytest.mark.promise("A8")]


class Chat:
    """A target that kills whoever sends to it, at one moment of one request."""

    def __init__(self):
        chat = self
        self.received = []  # ids of whole messages, in the order in which they came
        self.moment = None
        self.pid = None

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                chat.at("connected")
                body = self.rfile.read(int(self.headers["Content-Length"]))
                chat.received.append(json.loads(body)["data"]["id"])
                chat.at("received")
                try:
                    self.send_response(204)
                    self.end_headers()
                    self.wfile.flush()
                except OSError:
                    return
                chat.at("answered")

            def log_message(self, *_):
                """A test reads `received` instead."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def at(self, moment):
        if moment == self.moment:
            self.moment = None
            os.kill(self.pid, signal.SIGKILL)

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def chat():
    made = Chat()
    yield made
    made.close()


def serve(terminal):
    process = terminal.start("serve", "--port", "0", "--config", "wakeful.yaml")
    return process, re.search(r"http://\S+:\d+", process.until("listening on"))[0]


def finished(terminal):
    """All deliveries, once none is on its way."""
    deadline = SystemClock().boot() + PATIENCE * 1000
    while SystemClock().boot() < deadline:
        found = terminal.ask("delivery", "list", "--json").json
        if found and all(item["status"] == "sent" for item in found):
            return found
    raise AssertionError(found)


@pytest.mark.parametrize("moment", ["requested", "connected", "received", "answered"])
def test_a_message_survives_a_kill_at_every_step(tmp_path, chat, moment, capsys):
    terminal = Terminal(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(
        f'store: sqlite:///t.db\nconnectors: {{chat: {{type: webhook, url: "{chat.url}/"}}}}\n'
        'jobs: {greet: {manual: true, command: ["echo", "hello"], deliver: chat}}\n'
    )
    process, url = serve(terminal)
    token = terminal.ask("token", "create", "ops", "--role", "operator").out.strip()
    chat.pid, chat.moment = process.pid, moment
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        client.post("/api/jobs/greet/run")
        chat.at("requested")  # the run is stored; whether it began, ended or was sent is open
    process.ended()
    process, _ = serve(terminal)
    found = finished(terminal)
    runs = [run for run in terminal.ask("runs", "greet", "--json").json if run["outcome"] == "success"]
    process.kill()
    terminal.close()
    # Every result was sent, under one id; twice only where an attempt is on record as unknown.
    assert {item["run"] for item in found} == {run["id"] for run in runs}
    assert len(runs) == 1
    for item in found:
        times, unknown = chat.received.count(item["id"]), sum(entry["ok"] is None for entry in item["log"])
        with capsys.disabled():
            print(
                f"\n  killed when {moment:<10} received {times}, attempts {item['attempts']}, unknown {unknown}", end=""
            )
        assert 1 <= times <= 1 + unknown
    assert set(chat.received) == {item["id"] for item in found}
    if moment in ("connected", "received"):
        assert [entry["ok"] for entry in found[0]["log"]] == [None, True]
        assert "may have arrived" in found[0]["log"][0]["error"]
