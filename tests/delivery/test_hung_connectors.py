"""A function that never returns keeps its own connector busy, and nothing else: not the server, and not its end."""

from __future__ import annotations

import re
import signal

import httpx
import pytest

from tests.cli.terminal import PATIENCE, Terminal
from tests.waiting import ended, eventually

HUNG = 34  # more than the threads that a loop has of its own, on any machine
FILE = """
store: sqlite:///t.db
connectors:
  disk: {{type: file, path: out.jsonl}}
{hung}
jobs:
  greet: {{manual: true, command: ["echo", "hello"], deliver: disk}}
{jobs}
"""
SENDS = """
import threading

def send(message):
    print(f"called {message.id}", flush=True)
    threading.Event().wait()
"""


@pytest.fixture
def terminal(tmp_path):
    made = Terminal(tmp_path)
    yield made
    made.close()


@pytest.mark.promise("A8", "X26")
def test_connectors_that_hang_stop_no_other_no_log_no_edit_and_no_shutdown(terminal):
    names = [f"hung{number}" for number in range(HUNG)]
    hung = "\n".join(f"  {name}: {{type: python, callable: 'sends:send'}}" for name in names)
    jobs = "\n".join(f'  to-{name}: {{manual: true, command: ["true"], deliver: {name}}}' for name in names)
    (terminal.folder / "sends.py").write_text(SENDS)
    config = terminal.folder / "wakeful.yaml"
    config.write_text(FILE.format(hung=hung, jobs=jobs))
    process = terminal.start("serve", "--port", "0", "--config", "wakeful.yaml", "--shutdown-wait", "1s")
    url = re.search(r"http://\S+:\d+", process.until("listening on"))[0]
    token = terminal.ask("token", "create", "ops", "--role", "operator").out.strip()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        for name in names:
            assert client.post(f"/api/jobs/to-{name}/run").status_code < 300
        for _ in names:
            process.until("called dlv_")
        run = ended(client, client.post("/api/jobs/greet/run").json()["id"])
        eventually((terminal.folder / "out.jsonl").exists, bool)
        assert client.get(f"/api/runs/{run['id']}/log").text == "hello\n"
        config.write_text(FILE.format(hung=hung, jobs=f'  later: {{manual: true, command: ["true"]}}\n{jobs}'))
        eventually(lambda: client.get("/api/jobs/later").status_code, lambda status: status == 200)
    process.signal(signal.SIGTERM)
    assert process.ended().code == 0
