"""What a run of an agent may do, asked by real processes: its token, the command line under it, wakes, the story."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.agents.test_served_agents import House
from tests.cli.terminal import PATIENCE
from tests.waiting import ended

FILE = """
store: sqlite:///t.db
connectors:
  disk: {type: file, path: out.jsonl}
agents:
  a:
    runner: {start: [./agent.sh], cwd: .}
    work: {source: queue}
    schedules:
      tick: {cron: "0 9 1 1 *", prompt: Tick.}
      next: {cron: "0 9 1 1 *", work: true}
  b:
    runner: {start: [./agent.sh], cwd: .}
"""
AGENT = """#!/bin/sh
cat > "prompt-$WAKEFUL_AGENT"
echo "$WAKEFUL_RUN_ID" >> "runs-$WAKEFUL_AGENT"
[ -e "do-$WAKEFUL_AGENT" ] && . "./do-$WAKEFUL_AGENT"
echo "$WAKEFUL_AGENT heard."
"""
WAKEFUL = f"{sys.executable} -m wakeful.cli"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    made = House(tmp_path_factory.mktemp("runs"))
    (made.folder / "wakeful.yaml").write_text(FILE)
    (made.folder / "agent.sh").write_text(AGENT)
    (made.folder / "agent.sh").chmod(0o755)
    made.gate, made.there = made.pipe("gate"), made.pipe("there")
    made.open()
    yield made
    made.client.close()
    made.close()


@pytest.fixture
def does(house):
    """Write what an agent does in its next runs; what it did is forgotten."""

    def write(agent, text):
        (house.folder / f"do-{agent}").write_text(text)

    yield write
    for path in [*house.folder.glob("do-*"), *house.folder.glob("runs-*")]:
        path.unlink()


def runs_of(house, agent):
    path = house.folder / f"runs-{agent}"
    return path.read_text().split() if path.exists() else []


def test_the_token_of_a_run_reads_its_own_wakes_agents_changes_nothing_and_dies_with_the_run(house, does):
    does("a", 'printf %s "$WAKEFUL_TOKEN" > token; echo "I am $WAKEFUL_TOKEN"; echo up > there; read line < gate\n')
    run = house.client.post("/api/jobs/a.tick/run").json()["id"]
    house.there.line()
    token = (house.folder / "token").read_text()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=house.client.base_url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        assert client.get("/api/me").json() == {"name": "a", "role": "agent"}
        assert [job["name"] for job in client.get("/api/jobs").json()["items"]] == ["a.next", "a.tick", "a.wake"]
        assert client.get(f"/api/runs/{run}").json()["status"] == "active"
        assert [one["name"] for one in client.get("/api/agents").json()["items"]] == ["a"]
        assert client.get("/api/agents/a").json()["status"] == "running"
        assert client.get("/api/agents/b").status_code == 404
        every = {"trigger": {"type": "every", "interval": "2h"}}
        refused = [
            client.post("/api/jobs", json={"name": "mine", "kind": "x", **every}),
            client.put("/api/jobs/mine", json={"kind": "x", **every}),
            client.patch("/api/jobs/a.tick", json=every),
            client.delete("/api/jobs/a.tick"),
            client.post("/api/jobs/a.tick/pause"),
            client.post("/api/jobs/a.tick/run"),
            client.post(f"/api/runs/{run}/cancel"),
            client.put(
                "/api/schedule/mine", json={"prompt": "x", "schedule": {"type": "interval", "intervalMinutes": 60}}
            ),
            client.post("/api/work", json={"agent": "a", "title": "More"}),
            client.post("/api/agents/b/pause"),
        ]
        assert [answer.status_code for answer in refused] == [403] * len(refused)
        assert refused[0].json()["error"] == (
            f"{run} is a run of a: it changes and starts no jobs. "
            "It may read those of its agent, wake agents and leave them events."
        )
        assert client.post("/api/agents/b/events", json={"text": "From a.", "wake": True}).status_code == 202
        house.gate.write("go on")
        found = ended(house.client, run)
        assert found["output"]["reply"].splitlines()[0] == "I am [redacted]"
        assert {client.get("/api/me").status_code, client.post("/api/agents/b/wake").status_code} == {401}
    house.until(lambda: runs_of(house, "b"), "b being woken")
    heard = ended(house.client, runs_of(house, "b")[0])
    assert (heard["reason"], heard["output"]["events"]) == ("agent", 1)
    assert (house.folder / "prompt-b").read_text().endswith("System events:\n- [a] From a.")


def test_the_command_line_in_a_run_asks_the_server_and_never_opens_the_store(house, does):
    does(
        "a",
        f"""{WAKEFUL} agent event b "The door is open." --source house --wake --json > event.json
        {WAKEFUL} agent wake b >> said 2>&1; echo "code $?" >> said
        {WAKEFUL} agent show b >> said 2>&1; echo "code $?" >> said
        {WAKEFUL} explain a.wake >> said 2>&1; echo "code $?" >> said
        {WAKEFUL} list >> said 2>&1; echo "code $?" >> said
        {WAKEFUL} add mine --every 2h -- ls >> said 2>&1; echo "code $?" >> said
        """,
    )
    run = ended(house.client, house.post("a/wake")["run"])
    assert run["outcome"] == "success"
    said = (house.folder / "said").read_text()
    assert said.startswith("b is woken (agent)")
    assert "Error: There is no agent 'b' that a run of a may see.\ncode 3\n" in said
    assert f"It is running now ({run['id']})" in " ".join(said.split())
    assert (
        "Error: wakeful add needs the store, and under WAKEFUL_TOKEN wakeful asks the server at WAKEFUL_URL: there are "
        "agent list, agent show, agent wake, agent event, list, show, runs, explain and mcp.\ncode 4\n"
    ) in said
    assert [line.split()[0] for line in said.splitlines() if line.startswith("a.")] == [
        "a.wake",
        "a.next",
        "a.tick",
        "a.wake",
    ]
    assert house.client.get("/api/jobs/mine").status_code == 404
    house.until(lambda: runs_of(house, "b"), "b being woken")
    assert ended(house.client, runs_of(house, "b")[0])["output"]["events"] == 1
    house.until(lambda: house.client.get("/api/agents/b").json()["status"] == "idle", "the end of b's runs")


@pytest.mark.promise("A1", "A3")
def test_requests_within_250_ms_are_one_process_and_those_during_a_run_one_more(house, does):
    does("b", "echo up > there; read line < gate\n")
    with ThreadPoolExecutor(4) as callers:  # at once, so that a slow machine does not spread them
        reasons = ("interval", "message", "hook", "manual")
        asked = list(callers.map(lambda reason: house.post("b/wake", reason=reason), reasons))
    assert len({one["run"] for one in asked}) == 1
    house.there.line()
    during = [house.post("b/wake", reason=reason) for reason in ("cron", "hook", "interval")]
    assert len({one["run"] for one in during}) == 1
    assert runs_of(house, "b") == [asked[0]["run"]]
    house.gate.write("go on")
    house.there.line()
    house.gate.write("go on")
    runs = [ended(house.client, one["run"]) for one in (asked[0], during[0])]
    assert runs[0]["reason"] in {"hook", "manual"}  # of equal rank, and which of them came first is chance
    assert runs[1]["reason"] == "hook"
    assert runs_of(house, "b") == [run["id"] for run in runs]
    assert runs[1]["started_at"] >= runs[0]["finished_at"]


def test_explain_says_what_wakes_an_agent_what_it_hears_its_session_its_work_and_what_became_of_its_reply(house, does):
    does("a", "")
    house.post("b/events", text="The build is red.", source="ci")
    waiting = house.ask("explain", "b.wake").out
    assert "It runs when something wakes b. No wake waits." in " ".join(waiting.split())
    assert "1 system event waits for the next run: [ci] The build is red." in " ".join(waiting.split())
    run = ended(house.client, house.post("b/wake")["run"])
    sentences = house.client.get(f"/api/runs/{run['id']}/explain").json()["sentences"]
    assert "It received 1 system event." in sentences
    house.client.post("/api/work", json={"agent": "a", "title": "Mend the roof"})
    said = " ".join(house.ask("explain", "a.next").out.split())
    assert "1 work item waits. Each run begins a session of its own." in said
    done = ended(house.client, house.client.post("/api/jobs/a.next/run").json()["id"])
    sent = house.until(lambda: [one for one in house.sent() if one["run"] == done["id"]], "a delivery")[0]

    def story():
        found = house.client.get("/api/jobs/a.next/explain").json()["sentences"]
        return [one for one in found if one == f"Its reply is {sent['id']} to disk: sent."]

    house.until(story, "the story of the reply")
    worked = house.client.get(f"/api/runs/{done['id']}/explain").json()["sentences"]
    assert f"It worked on {done['output']['item']}." in worked
