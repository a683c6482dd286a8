"""kill -9 at each step from the request of a run to the record that its message was taken, on real processes.

Nothing is lost; what arrives twice has one id, and an attempt that is on record as unknown.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.cli.terminal import PATIENCE, Process, Terminal
from wakeful.clock import SystemClock

#: The server is killed when...
STEPS = {
    "requested": "the run was asked for",
    "refused": "an attempt failed, and the next is to come",
    "connected": "the target has the connection",
    "received": "the target has the message",
    "answered": "the target has answered",
    "recorded": "the message is on record as sent",
}
RECORDED = {"refused": "pending", "recorded": "sent"}  # what is waited for before the kill
UNKNOWN = ("connected", "received")  # here an attempt is on record, and its end cannot be


class Row(NamedTuple):
    """What came of one step."""

    step: str
    received: int
    attempts: int
    unknown: int
    ids: int

    def __str__(self) -> str:
        return f"{STEPS[self.step]:<44}{self.received:>8}{self.attempts:>10}{self.unknown:>9}{self.ids:>5}"


HEAD = f"{'killed when':<44}{'received':>8}{'attempts':>10}{'unknown':>9}{'ids':>5}"


class Chat:
    """A target that kills the sender, at one moment of one request."""

    def __init__(self) -> None:
        chat = self
        self.received: list[str] = []  # ids of whole messages, in the order in which they came
        self.moment: str | None = None
        self.pid = 0
        self.refusing = False

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                chat.at("connected")
                size = int(self.headers["Content-Length"])
                body = self.rfile.read(size)
                if len(body) < size:
                    return  # the sender was killed before it had said all
                if not chat.refusing:
                    chat.received.append(json.loads(body)["data"]["id"])
                chat.at("received")
                try:
                    self.send_response(503 if chat.refusing else 204)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    self.wfile.flush()
                except OSError:
                    return
                chat.at("answered")

            def log_message(self, *_: object) -> None:
                """`received` is read instead."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def at(self, moment: str) -> None:
        if moment == self.moment:
            self.moment = None
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def kill_at(step: str, folder: Path) -> tuple[Row, list[str]]:
    """Kill the server at one step, serve again until nothing waits; what came of it, and what was wrong."""
    terminal, chat = Terminal(folder), Chat()
    (folder / "wakeful.yaml").write_text(
        f'store: sqlite:///t.db\nconnectors: {{chat: {{type: webhook, url: "{chat.url}/"}}}}\n'
        'jobs: {greet: {manual: true, command: ["echo", "hello"], deliver: chat}}\n'
    )
    try:
        _first_life(terminal, chat, step)
        chat.refusing = False
        process, _ = _serve(terminal)
        found = _until(terminal, lambda item: item["status"] == "sent")
        runs = [run for run in terminal.ask("runs", "greet", "--json").json if run["outcome"] == "success"]
        process.kill()
        return _judge(step, chat.received, found, runs)
    finally:
        terminal.close()
        chat.close()


def _first_life(terminal: Terminal, chat: Chat, step: str) -> None:
    process, url = _serve(terminal)
    token = terminal.ask("token", "create", "ops", "--role", "operator").out.strip()
    chat.pid, chat.moment, chat.refusing = process.pid, step, step == "refused"
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        client.post("/api/jobs/greet/run")
    chat.at("requested")  # the run is stored; whether it began, ended or was sent is open
    if step in RECORDED:
        _until(terminal, lambda item: (item["status"], item["attempts"]) == (RECORDED[step], 1))
        chat.at(step)
    process.ended()


def _serve(terminal: Terminal) -> tuple[Process, str]:
    process = terminal.start("serve", "--port", "0", "--config", "wakeful.yaml")
    found = re.search(r"http://\S+:\d+", process.until("listening on"))
    assert found is not None
    return process, found[0]


def _until(terminal: Terminal, is_so: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """All messages, once it is so of each."""
    deadline = SystemClock().boot() + PATIENCE * 1000
    found: list[dict[str, Any]] = []
    while SystemClock().boot() < deadline:
        found = terminal.ask("delivery", "list", "--json").json
        if found and all(is_so(item) for item in found):
            return found
    raise AssertionError(found)


def _judge(
    step: str, received: list[str], found: list[dict[str, Any]], runs: list[dict[str, Any]]
) -> tuple[Row, list[str]]:
    """Every result was sent, under one id; twice only where an attempt is on record as unknown."""
    log = found[0]["log"]
    row = Row(step, len(received), len(log), sum(entry["ok"] is None for entry in log), len(set(received)))
    wrong = []
    if len(runs) != 1 or [item["run"] for item in found] != [runs[0]["id"]]:
        wrong.append(f"{len(runs)} results and {len(found)} messages")
    if set(received) != {found[0]["id"]}:
        wrong.append(f"{sorted(set(received))} arrived, and {found[0]['id']} was stored")
    if not 1 <= row.received <= 1 + row.unknown:
        wrong.append(f"received {row.received} times, with {row.unknown} attempts on record as unknown")
    if step in UNKNOWN and (log[0]["ok"] is not None or "may have arrived" not in log[0]["error"]):
        wrong.append(f"the attempt that was cut off is not on record as unknown: {log[0]}")
    return row, [f"killed when {STEPS[step]}: {line}" for line in wrong]


def drill(folder: Path) -> list[str]:
    """Every step in turn, as a table."""
    print(f"  {HEAD}", flush=True)
    wrong = []
    for step in STEPS:
        (folder / step).mkdir()
        row, found = kill_at(step, folder / step)
        print(f"  {row}", flush=True)
        wrong += found
    return wrong
