"""Agents through the real server, with real processes: HTTP, the command line, delivery, edits of the file, kill -9."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import httpx
import pytest

from tests.cli.terminal import PATIENCE, Terminal, lives
from tests.waiting import ended, eventually

FAKES = Path(__file__).parent / "fakes"
FILE = """
store: sqlite:///t.db
connectors:
  disk: {type: file, path: out.jsonl}
agents:
  reporter:
    description: Looks after the repository
    runner: {preset: claude, cwd: ., tools: [Read]}
    heartbeat: {enabled: true, every: 12h, prompt: Look around.}
    schedules:
      standup: {cron: "0 9 * * 1-5", prompt: Summarise.}
      quiet: {cron: "0 9 * * 1-5", prompt: Summarise., deliver: none}
  worker:
    work: {source: queue}
    schedules:
      next: {cron: "0 9 1 1 *", work: true}
    runner:
      start: [./work.sh]
      resume: [./work.sh, "{session}"]
      output: {format: jsonl, reply: reply, session: session, match: {type: result}}
"""
WORK = """#!/bin/sh
# Says its session at once, then works until it is let go.
echo '{"session": "s-1"}'
echo "$$ $1" >> worked
cat > prompt
sleep 1000 &
if [ -e hang ]; then wait; fi
kill $!
echo '{"type": "result", "reply": "Worked."}'
"""


class House(Terminal):
    """A folder with a configuration, and servers in it."""

    def __init__(self, folder):
        super().__init__(folder)
        self.env["PATH"] = f"{FAKES}{os.pathsep}{os.environ['PATH']}"
        (folder / "wakeful.yaml").write_text(FILE)
        (folder / "work.sh").write_text(WORK)
        (folder / "work.sh").chmod(0o755)
        self.client = None

    def open(self):
        self.process = self.start("serve", "--port", "0", "--config", "wakeful.yaml")
        url = re.search(r"http://\S+:\d+", self.process.until("listening on"))[0]
        self.process.until("applied") if self.client is None else None
        token = (self.folder / "t.db.token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False)

    def post(self, path, **body):
        answer = self.client.post(f"/api/agents/{path}", json=body)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def until(self, true, what="it"):
        return eventually(true, bool, what)

    def sent(self):
        path = self.folder / "out.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    made = House(tmp_path_factory.mktemp("agents"))
    made.open()
    yield made
    made.client.close()
    made.close()


@pytest.mark.promise("D8")
def test_agents_and_their_schedules_can_be_read(house):
    assert [one["name"] for one in house.client.get("/api/agents").json()["items"]] == ["reporter", "worker"]
    shown = house.client.get("/api/agents/reporter").json()
    assert (shown["status"], shown["running"], shown["max_concurrent"]) == ("idle", 0, 1)
    assert [one["job"] for one in shown["schedules"]] == ["reporter.quiet", "reporter.standup"]
    assert shown["schedules"][0] | {"next_run_at": None, "last_run_at": None} == {
        "name": "quiet", "job": "reporter.quiet", "status": "idle", "cut_off": False, "last_run_at": None,
        "next_run_at": None, "last_error": None, "type": "cron",
    }  # fmt: skip
    assert shown["heartbeat"]["job"] == "reporter.heartbeat"
    assert house.ask("agent", "list", "--json").json[0]["name"] == "reporter"
    assert "Looks after the repository" in house.ask("agent", "show", "reporter").out


def test_a_schedule_runs_the_tool_and_its_reply_is_delivered(house):
    run = ended(house.client, house.client.post("/api/jobs/reporter.standup/run").json()["id"])
    output = run["output"]
    assert (output["reply"], output["outcome"], output["cost"]) == ("Said: Summarise.", "sent", 0.083)
    again = ended(house.client, house.client.post("/api/jobs/reporter.standup/run").json()["id"])
    assert again["output"]["session"] == output["session"]
    found = house.until(lambda: [one for one in house.sent() if one["run"] == run["id"]], "a delivery")
    assert (found[0]["kind"], found[0]["agent"], found[0]["text"]) == ("reply", "reporter", "Said: Summarise.")
    silent = ended(house.client, house.client.post("/api/jobs/reporter.quiet/run").json()["id"])
    assert (silent["output"]["outcome"], silent["deliveries"]) == ("silent", [])


def test_an_event_is_heard_by_the_agent_that_is_woken_for_it(house):
    added = house.post("reporter/events", text="The build is red.", source="ci", context_key="build")
    assert (added["id"][:4], added["waiting"]) == ("evt_", 1)
    first = house.post("reporter/wake")
    second = house.post("reporter/wake", reason="hook")
    assert (first["coalesced"], first["reason"], second["run"]) == (False, "manual", first["run"])
    run = ended(house.client, first["run"])
    assert run["output"]["reply"] == "Said: Look around.\n\nSystem events:\n- [ci] The build is red."
    assert (run["reason"], run["output"]["reason"]) == ("manual", "manual")
    assert house.client.get("/api/agents/reporter").json()["events"] == []
    assert house.post("reporter/reset-session")["forgotten"] >= 1
    assert house.client.post("/api/agents/nobody/wake").status_code == 404
    assert house.client.post("/api/agents/reporter/wake", json={"reason": "whim"}).status_code == 422


def test_an_agent_is_paused_and_resumed_as_a_whole(house):
    assert house.post("reporter/pause")["status"] == "paused"
    assert house.ask("agent", "event", "reporter", "Waits.", "--wake").code == 0
    shown = house.client.get("/api/agents/reporter").json()
    assert (shown["events_waiting"], {one["status"] for one in shown["schedules"]}) == (1, {"paused"})
    assert house.post("reporter/resume")["status"] == "idle"
    house.until(lambda: not house.client.get("/api/agents/reporter").json()["events_waiting"], "hearing the event")


@pytest.mark.promise("D9")
def test_a_work_item_is_added_worked_on_and_tried_again(house):
    added = house.client.post("/api/work", json={"agent": "worker", "title": "Mend the roof", "external_id": "T-1"})
    item = added.json()
    assert (added.status_code, item["status"], item["id"][:4]) == (201, "ready", "wrk_")
    again = house.client.post("/api/work", json={"agent": "worker", "title": "The same", "external_id": "T-1"})
    assert (again.status_code, again.json()["id"]) == (200, item["id"])
    assert [one["id"] for one in house.ask("work", "list", "worker", "--json").json] == [item["id"]]
    run = ended(house.client, house.client.post("/api/jobs/worker.next/run").json()["id"])
    assert (run["outcome"], run["output"]["item"]) == ("success", item["id"])
    done = house.client.get(f"/api/work/{item['id']}").json()
    assert (done["status"], done["run"], done["attempts"]) == ("done", run["id"], 1)
    assert house.client.post(f"/api/work/{item['id']}/release").status_code == 409
    assert house.client.post(f"/api/work/{item['id']}/retry").json()["status"] == "ready"
    assert house.client.get("/api/work?status=ready").json()["items"][0]["id"] == item["id"]
    assert ended(house.client, house.client.post("/api/jobs/worker.next/run").json()["id"])["outcome"] == "success"
    assert ended(house.client, house.client.post("/api/jobs/worker.next/run").json()["id"])["outcome"] == "noop"
    (house.folder / "worked").unlink()


@pytest.mark.promise("D10")
def test_work_items_and_events_are_moved_to_another_agent_over_http(house):
    item = house.client.post("/api/work", json={"agent": "worker", "title": "Paint the wall"}).json()
    assert item["orphaned"] is False
    moved = house.client.post(f"/api/work/{item['id']}/move", json={"agent": "reporter"}).json()
    assert (moved["agent"], moved["status"]) == ("reporter", "ready")
    assert house.client.post(f"/api/work/{item['id']}/move", json={"agent": "nobody"}).status_code == 404
    assert house.client.post(f"/api/work/{item['id']}/move", json={}).status_code == 422
    assert house.client.get("/api/work?orphaned=true").json()["items"] == []
    both = house.client.post("/api/agents/reporter/move", json={"agent": "worker"}).json()
    assert both == {"agent": "reporter", "to": "worker", "items": 1, "events": 0, "left": 0}
    assert house.client.post("/api/agents/nobody/move", json={"agent": "worker"}).status_code == 404
    assert house.client.get(f"/api/work/{item['id']}").json()["agent"] == "worker"
    assert ended(house.client, house.client.post("/api/jobs/worker.next/run").json()["id"])["outcome"] == "success"
    (house.folder / "worked").unlink()


@pytest.mark.promise("X15")
def test_a_schedule_over_http_asks_an_agent_and_belongs_to_who_made_it(house):
    hourly = {"type": "interval", "intervalMinutes": 90}
    body = {"prompt": "Look around.", "agent": "reporter", "schedule": hourly}
    made = house.client.put("/api/schedule/patrol", json=body)
    assert (made.status_code, made.json()["created"]) == (201, True)
    shown = house.client.get("/api/schedule/patrol").json()
    assert (shown["agent"], shown["sessionConfig"], shown["owner"]) == ("reporter", None, "reporter")
    assert house.client.put("/api/schedule/patrol", json=shown).json()["created"] is False  # written back as it is
    started = house.client.post("/api/schedule/patrol/run").json()
    run = ended(house.client, started["runId"])
    assert run["output"]["reply"] == "Said: Look around."
    assert house.client.patch("/api/schedule/patrol", json={"prompt": "Look again."}).json()["prompt"] == "Look again."
    assert "patrol" in [one["name"] for one in house.client.get("/api/agents/reporter").json()["schedules"]]
    assert [one["slug"] for one in house.client.get("/api/schedule").json()] == ["patrol"]
    for slug, more, status in [
        ("reporter.standup", {}, 409),  # the file's
        ("other", {"agent": "nobody"}, 404),
        ("other", {"sessionConfig": {"model": "x"}}, 400),
        ("reporter.more", {"agent": None}, 400),  # of a session, with an agent's name
        ("patrol", {"agent": "worker"}, 409),
        ("other", {"schedule": {"type": "interval", "intervalMinutes": 1}}, 400),
    ]:
        assert house.client.put(f"/api/schedule/{slug}", json={**body, **more}).status_code == status, (slug, more)
    assert house.client.get("/api/jobs/reporter.standup").json()["payload"]["prompt"] == "Summarise."
    token = house.ask("token", "create", "reporter", "--role", "agent", "--json").json["token"]
    own = {"Authorization": f"Bearer {token}"}
    assert house.client.put("/api/schedule/mine", json=body, headers=own).status_code == 403
    assert house.client.patch("/api/schedule/patrol", json={"prompt": "x"}, headers=own).status_code == 404
    assert house.client.delete("/api/schedule/patrol").status_code == 204


@pytest.mark.promise("X15")
def test_a_schedule_added_on_the_command_line_follows_its_agent_and_survives_an_apply(house):
    added = house.ask("add", "nightly", "--agent", "reporter", "--prompt", "Count.", "--cron", "0 3 * * *", "--json")
    assert (added.json["name"], added.json["source"], added.json["kind"]) == ("reporter.nightly", "cli", "agent")
    assert "runner" not in added.json["payload"]
    run = ended(house.client, house.client.post("/api/jobs/reporter.nightly/run").json()["id"])
    assert (run["output"]["reply"], run["output"]["outcome"]) == ("Said: Count.", "sent")
    assert house.ask("edit", "reporter.nightly", "--prompt", "Count again.").code == 0
    assert house.ask("plan").code == 0  # the file has nothing to say about it
    for argv, said in [
        (["nightly", "--agent", "reporter", "--every", "1h"], "A job named 'reporter.nightly' already exists"),
        (["reporter.other", "--every", "1h", "--", "true"], "'reporter.other' would be a schedule of the agent"),
        (["other", "--agent", "reportr", "--every", "1h"], "There is no agent 'reportr'. Did you mean 'reporter'?"),
        (["Other", "--agent", "reporter", "--every", "1h"], "A schedule's name begins with a small letter"),
        (["wake", "--agent", "reporter", "--every", "1h"], "wake is one of the agent's own jobs"),
        (["other", "--agent", "reporter", "--every", "1h", "--", "true"], "--agent and a command after --"),
        (["other", "--agent", "reporter", "--every", "1h", "--url", "http://x"], "--url does not go with --agent"),
        (["other", "--prompt", "x", "--every", "1h", "--", "true"], "--prompt goes with --agent AGENT"),
    ]:
        answer = house.ask("add", *argv)
        assert (answer.code in (2, 3, 4), said in answer.err) == (True, True), answer
    assert house.ask("remove", "reporter.nightly", "--yes").code == 0


@pytest.mark.promise("D1")
def test_an_edit_of_the_file_is_taken_over_and_a_broken_one_changes_nothing(house):
    path = house.folder / "wakeful.yaml"
    path.write_text(FILE.replace("quiet:", "hushed:"))
    house.until(lambda: house.client.get("/api/jobs/reporter.hushed").status_code == 200, "the edit")
    assert house.client.get("/api/jobs/reporter.quiet").status_code == 404
    path.write_text(FILE.replace("heartbeat:", "hartbeat:"))

    def alert():
        found = house.client.get("/api/alerts?open=true").json()["items"]
        return [one["message"] for one in found if one["kind"] == "config"]

    message = house.until(alert, "an alert")[0]
    assert message.endswith("line 9: There is no key 'hartbeat' in agents.reporter. Did you mean 'heartbeat'?")
    assert house.client.get("/api/jobs/reporter.hushed").status_code == 200
    path.write_text(FILE)
    house.until(lambda: not alert(), "the end of the alert")


@pytest.mark.promise("A4")
def test_a_killed_server_leaves_no_process_and_goes_on_in_the_session_with_the_event(house):
    hang, worked = house.folder / "hang", house.folder / "worked"
    hang.touch()
    worked.unlink(missing_ok=True)
    house.post("worker/reset-session")
    house.post("worker/events", text="Mend the roof.", wake=True)
    house.until(lambda: house.client.get("/api/agents/worker").json()["sessions"], "the session")
    house.until(worked.exists, "the work")
    pid = int(worked.read_text().split()[0])
    house.process.kill()
    hang.unlink()
    house.client.close()
    house.open()
    runs = house.until(
        lambda: [one for one in house.client.get("/api/jobs/worker.wake/runs").json()["items"] if one["outcome"]][1:],
        "the recovery",
    )
    assert runs[-1]["outcome"] == "crashed"
    assert not lives(pid)
    assert worked.read_text().splitlines()[1].split()[1:] == ["s-1"]  # resumed
    prompt = (house.folder / "prompt").read_text()
    assert "Your last run was cut off" in prompt
    assert prompt.endswith("System events:\n- [event] Mend the roof.")
    assert house.client.get("/api/agents/worker").json()["events"] == []
