"""Jobs, agents, workflows and deliveries on one server: one history, one list, one status."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import Terminal
from tests.waiting import eventually

FILE = """
store: sqlite:///t.db
connectors:
  out: {type: file, path: out.jsonl}
jobs:
  nightly: {cron: "0 3 1 1 *", command: [echo, done], deliver: out}
agents:
  reporter:
    runner: {preset: scripted, args: [./agent.sh], cwd: .}
    heartbeat: {enabled: true, every: 12h, prompt: Look around.}
    schedules:
      standup: {cron: "0 3 1 1 *", prompt: Summarise., deliver: out}
workflows: [mailroom.py]
"""
AGENT = "#!/bin/sh\necho HEARTBEAT_OK\n"
FLOW = """
from wakeful import Interval, Prepared, Workflow

workflow = Workflow("mailroom")


@workflow.producer(Interval("12h"), publishes=["mail"])
async def poll(ctx, state):
    await ctx.publish("mail", message_id=1, payload={})


post = workflow.consumer("post", subscribes=["mail"])


@post.prepare
async def prepare(ctx, state):
    mails = await ctx.peek("mail", limit=10)
    return Prepared(reserve={"mail": [mail.id for mail in mails]}, title="Mail")
"""
JOBS = {"nightly", "reporter.heartbeat", "reporter.standup", "mailroom.poll", "mailroom.post"}


@pytest.fixture
def house(tmp_path):
    terminal = Terminal(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(FILE)
    (tmp_path / "agent.sh").write_text(AGENT)
    (tmp_path / "agent.sh").chmod(0o755)
    (tmp_path / "mailroom.py").write_text(FLOW)
    terminal.serve()
    yield terminal
    terminal.close()


@pytest.mark.promise("X1")
def test_jobs_heartbeats_workflows_and_deliveries_share_one_history_and_one_screen(house, tmp_path):
    def names():
        return {job["name"] for job in house.ask("list", "--json").json}

    assert eventually(names, lambda found: found >= JOBS) >= JOBS  # the file is applied after the server listens
    for name in ("nightly", "reporter.heartbeat", "reporter.standup"):
        assert house.ask("run", name, "--wait").code == 0

    def runs():
        return house.ask("runs", "--json", "--limit", "50").json

    def all_ended(found):
        return {run["job"] for run in found} >= JOBS and all(run["status"] == "done" for run in found)

    found = eventually(runs, all_ended)
    assert {run["job"] for run in found} >= JOBS
    assert {run["outcome"] for run in found} <= {"success", "noop"}
    assert "delivery.out" not in names()  # how a delivery is carried out is no job of theirs
    ids, out = {run["id"]: run["job"] for run in found}, tmp_path / "out.jsonl"

    def sent():
        return {ids.get(json.loads(line)["run"]) for line in out.read_text().splitlines()} if out.exists() else set()

    assert eventually(sent, lambda seen: "nightly" in seen) >= {"nightly"}
    assert house.ask("status").out.startswith("All well.")
