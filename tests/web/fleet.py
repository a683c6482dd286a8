"""A server for tests of pages: jobs of every kind, agents, a workflow, a question, failures and messages."""

from __future__ import annotations

from pathlib import Path

from tests.api.conftest import Server
from tests.cli.terminal import Terminal

CONFIG = """\
connectors:
  phone: {type: file, path: phone.txt}
defaults: {timezone: Europe/Berlin}
agents:
  reporter:
    description: Reads invoices
    runner: {start: [echo, "Two invoices arrived."]}
    heartbeat: {every: 30m}
    deliver: phone
  watcher:
    runner: {start: [echo, HEARTBEAT_OK]}
    heartbeat: {every: 30m}
    deliver: phone
workflows: [flow.py]
jobs:
  hello: {every: 1h, command: [echo, hi], deliver: phone}
  asks: {every: 24h, command: ["true"], approval: true}
  offsite: {ping: true, cron: "0 13 * * *", grace: 1h}
"""
FLOW = """\
from wakeful import Interval, Workflow

workflow = Workflow("invoices")


@workflow.producer(Interval("1h"), publishes=["mail"])
async def poll(ctx, state):
    item = await ctx.register_input("imap", "mail", 1, title="Invoice 1")
    await ctx.publish("mail", message_id=1, payload={"subject": "Invoice 1"}, input=item)
    return state
"""


def populate(terminal: Terminal) -> Server:
    """Start a server on a fleet, and let some of it run."""
    Path(terminal.folder, "wakeful.yaml").write_text(CONFIG, encoding="utf-8")
    Path(terminal.folder, "flow.py").write_text(FLOW, encoding="utf-8")
    server = Server(terminal, "--config", "wakeful.yaml")
    with server.client(server.token) as client:
        body = {"name": "broken", "every": "6h", "command": ["sh", "-c", "echo working; echo 'error: no disk'; exit 3"]}
        assert client.post("/api/jobs", json={**body, "retry": 0}).status_code == 201
        for argv in (("run", "hello", "--wait"), ("run", "broken", "--wait"), ("run", "asks")):
            server.terminal.ask(*argv)
        for agent in ("reporter", "watcher"):
            client.post(f"/api/agents/{agent}/wake", json={})
    return server
