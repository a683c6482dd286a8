"""What agents said, and that they looked and had nothing to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from tests.waiting import eventually
from tests.web.conftest import Visitor

pytestmark = pytest.mark.promise("X28")
CONFIG = """\
connectors:
  phone: {type: file, path: phone.txt}
agents:
  reporter: {runner: {start: [echo, "Two invoices arrived."]}, deliver: phone}
  watcher: {runner: {start: [echo, HEARTBEAT_OK]}, heartbeat: {every: 30m}, deliver: phone}
jobs:
  busy: {every: 6h, command: [echo, hi], deliver: phone}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    terminal = Terminal(tmp_path_factory.mktemp("said"))
    Path(terminal.folder, "wakeful.yaml").write_text(CONFIG, encoding="utf-8")
    yield Server(terminal, "--config", "wakeful.yaml")
    terminal.close()


def test_replies_stay_in_sight_behind_other_messages_and_silence_is_shown_as_silence(server):
    with server.client(server.token) as client:
        for agent in ("reporter", "watcher"):
            assert client.post(f"/api/agents/{agent}/wake", json={}).status_code == 202
            eventually(
                lambda agent=agent: client.get(f"/api/runs?job={agent}.wake").json()["items"][0]["outcome"],
                lambda outcome: outcome == "success",
            )
        eventually(lambda: client.get("/api/deliveries?agent=reporter").json()["items"], bool)
        for _ in range(60):
            assert client.post("/api/connectors/phone/test", json={}).status_code < 300
    person = Visitor(server, "viewer")
    shown = person.get("/").text
    person.client.close()
    assert "Two invoices arrived." in shown
    assert "watcher</a> has looked 1 time since" in shown
