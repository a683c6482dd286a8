"""kill -9 around a run of an agent, on real processes: nothing is lost, doubled or left running."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agents.test_served_agents import House
from tests.cli.terminal import lives

pytestmark = pytest.mark.promise("A4", "D10")

FILE = """
store: sqlite:///t.db
agents:
  worker:
    work: {source: queue}
    schedules:
      next: {cron: "0 9 1 1 *", work: true, prompt: Work.}
    runner:
      start: [./work.sh]
      resume: [./work.sh, "{session}"]
      cwd: .
      output: {format: jsonl, reply: reply, session: session, match: {type: result}}
"""
# Notes who it is, holds a lock for as long as anything of it runs, and starts children inside and outside of its group.
WORK = """#!/bin/sh
exec 9> lock
flock -n 9 || echo "twice at once" >> wrong
echo '{"session": "s-1"}'
sleep 1000 & inside=$!
setsid sleep 1000 & outside=$!
cat > prompt
echo "$$ $inside $outside" >> worked
if [ -e hang ]; then wait; fi
kill $inside $outside
echo '{"type": "result", "reply": "Worked."}'
"""


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(FILE)
    (tmp_path / "work.sh").write_text(WORK)
    yield made
    made.client.close()
    made.close()


def again(house):
    """The next life of the server, as it is for everybody."""
    house.process.ended()
    house.module = "wakeful.cli"
    house.client.close()
    house.open()


def worked(house):
    path = house.folder / "worked"
    return [[int(pid) for pid in line.split()] for line in path.read_text().splitlines()] if path.exists() else []


def settled(house, job, outcomes):
    """The runs of a job, oldest first, once these are how they ended."""

    def look():
        found = house.client.get(f"/api/jobs/{job}/runs").json()["items"][::-1]
        return found if [run["outcome"] for run in found] == outcomes else None

    return house.until(look, f"{job} ending as {outcomes}")


def check(house, times):
    """So many processes did something, one after the other, and nothing of them is left."""
    assert len(worked(house)) == times
    assert not (house.folder / "wrong").exists()
    assert [pid for line in worked(house) for pid in line if lives(pid)] == []


def test_between_event_and_wake(house):
    house.open()
    house.post("worker/events", text="Mend the roof.")
    house.process.kill()
    again(house)
    house.post("worker/wake")
    settled(house, "worker.wake", ["success"])
    assert (house.folder / "prompt").read_text().endswith("System events:\n- [event] Mend the roof.")
    check(house, 1)


def test_between_wake_and_claim(house):
    house.open()
    house.post("worker/events", text="Mend the roof.", wake=True)  # claimed 250 ms later
    os.kill(house.process.pid, 9)
    again(house)
    runs = settled(house, "worker.wake", ["success"])
    assert runs[0]["output"]["events"] == 1
    check(house, 1)


def test_between_claim_and_start(house):
    house.module = "tests.agents.dies_when_claimed"
    house.env["PYTHONPATH"] = str(Path.cwd())
    house.open()
    item = house.client.post("/api/work", json={"agent": "worker", "title": "Mend the roof"}).json()["id"]
    house.post("worker/events", text="Mend it.", wake=True)
    house.process.ended()
    again(house)
    runs = settled(house, "worker.wake", ["crashed", "success"])
    assert runs[1]["output"]["events"] == 1
    house.process.kill()
    house.module = "tests.agents.dies_when_claimed"
    house.client.close()
    house.open()
    house.client.post("/api/jobs/worker.next/run")
    again(house)
    settled(house, "worker.next", ["crashed", "success"])
    found = house.client.get(f"/api/work/{item}").json()
    assert (found["status"], found["attempts"]) == ("done", 1)
    check(house, 2)


def test_in_the_middle_of_a_tools_run(house):
    (house.folder / "hang").touch()
    house.open()
    item = house.client.post("/api/work", json={"agent": "worker", "title": "Mend the roof"}).json()["id"]
    house.client.post("/api/jobs/worker.next/run")
    house.until(lambda: worked(house), "the work")
    first = worked(house)[0]
    house.until(lambda: house.client.get("/api/agents/worker").json()["sessions"], "the session")
    house.process.kill()
    assert [lives(pid) for pid in first] == [True, True, True]  # they do not know that their server is gone
    (house.folder / "hang").unlink()
    again(house)
    settled(house, "worker.next", ["crashed", "success"])
    found = house.client.get(f"/api/work/{item}").json()
    assert (found["status"], found["attempts"], found["last_error"]) == ("done", 1, None)
    assert "Your last run was cut off" in (house.folder / "prompt").read_text()
    check(house, 2)
