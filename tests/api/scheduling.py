"""`/api/schedule` for tests: a server with a session server beside it, and a client's usual requests."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from tests.waiting import eventually

CRON = {"type": "cron", "expression": "0 9 * * 1-5"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")
HOURLY = {"type": "interval", "intervalMinutes": 60}


@contextlib.contextmanager
def serving(folder, sessions):
    """A server in that folder whose messages go to that session server."""
    terminal = Terminal(folder)
    (terminal.folder / "wakeful.yaml").write_text(f"server: {{sessions: {{url: '{sessions.url}'}}}}\n")
    try:
        yield Server(terminal)
    finally:
        terminal.close()


def put(client, slug, timing=CRON, **more):
    return client.put(f"/api/schedule/{slug}", json={"prompt": "Summarise", "schedule": timing, **more})


def get(client, slug):
    return client.get(f"/api/schedule/{slug}").json()


def run(client, sessions, slug):
    """Run it now; the run's id once the session server has the message and the run is not running any more."""
    before = len(sessions.messages)
    answer = client.post(f"/api/schedule/{slug}/run")
    assert answer.status_code == 202, answer.text
    sessions.wait_for(lambda server: len(server.messages) > before)
    return answer.json()["runId"]


def settled(client, run_id, status="done"):
    """The run when it has got that far: waited for by asking, as any client would."""
    return eventually(lambda: client.get(f"/api/runs/{run_id}").json(), lambda found: found["status"] == status)


def minutes_between(first, second):
    return round((datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds() / 60)
