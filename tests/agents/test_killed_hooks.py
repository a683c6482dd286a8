"""The server is killed while webhooks come in: what was answered is run, once, and nothing else is."""

from __future__ import annotations

import collections
import json

import httpx
import pytest

from tests.agents.hooks import SECRET, signed
from tests.agents.test_served_agents import House
from tests.cli.terminal import PATIENCE

FILE = f"""
store: sqlite:///t.db
agents:
  a:
    runner: {{preset: scripted, args: [./work.sh], cwd: .}}
    schedules:
      deploy: {{webhook: {{verify: github, secret: {SECRET}}}, prompt: "{{payload.n}}"}}
"""
WORK = """#!/bin/sh
n=$(sed -n 's/^.payload.n.: //p')
echo "$n" >> begun
sleep 0.05
echo "$n" >> finished
echo done
"""
SENT = 60


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.promise("D4")
def test_what_was_answered_before_kill_9_is_run_once_and_what_is_sent_again_is_known(tmp_path):
    house = House(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(FILE)
    (tmp_path / "work.sh").write_text(WORK)

    def send(n):
        body = json.dumps({"n": n}).encode()
        answer = house.client.post("/hooks/a/deploy", content=body, headers=signed(body, f"d-{n}"))
        assert answer.status_code == 202, answer.text
        return answer.json()

    try:
        house.open()
        house.until(lambda: house.client.get("/api/jobs/a.deploy").status_code == 200, "the schedule")
        first = {}
        for kill_after in (7, 25, SENT):  # in the middle of the queue, with runs in every state
            for n in range(len(first), kill_after):
                first[n] = send(n)
            house.process.kill()
            house.client.close()
            house.open()
            again = {n: send(n) for n in first}
            assert again == {n: {**one, "duplicate": True} for n, one in first.items()}

        def all_ended():
            found = house.client.get("/api/jobs/a.deploy/runs?limit=200").json()["items"]
            return found if all(run["status"] == "done" for run in found) else None

        runs = house.until(all_ended, "the end of all runs")
        works = {run["id"]: house.client.get(f"/api/runs/{run['id']}").json()["payload"]["request"] for run in runs}
        done = collections.Counter(works[run["id"]] for run in runs if run["outcome"] == "success")
        assert done == {one["request"]: 1 for one in first.values()}
        cut_off = [run for run in runs if run["outcome"] == "crashed"]
        assert len(runs) == SENT + len(cut_off)
        assert len(cut_off) <= 3  # one of each life at most: an agent runs one at a time
        begun, finished = (
            collections.Counter(lines(tmp_path / "begun")),
            collections.Counter(lines(tmp_path / "finished")),
        )
        assert set(finished) == {str(n) for n in range(SENT)}
        assert sum(begun.values()) <= SENT + len(cut_off)
    finally:
        house.client.close()
        house.close()


def test_the_commands_show_and_replay_what_came_in(tmp_path):
    house = House(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(FILE)
    (tmp_path / "work.sh").write_text(WORK)
    try:
        house.open()
        body = b'{"n": 1}'
        house.until(lambda: house.client.get("/api/jobs/a.deploy").status_code == 200, "the schedule")
        taken = house.client.post("/hooks/a/deploy", content=body, headers=signed(body, "d-1")).json()
        (shown,) = house.ask("request", "list", "--json").json
        assert (shown["id"], shown["delivery_id"], shown["run"]) == (taken["request"], "d-1", taken["run"])
        assert house.ask("request", "show", shown["id"], "--json").json["body"] == '{"n": 1}'
        assert '"n": 1' in house.ask("request", "show", shown["id"]).out
        again = house.ask("request", "replay", shown["id"], "--json").json
        assert again["replay_of"] == shown["id"]
        newest = house.ask("request", "list", "a.deploy").out.splitlines()[1]
        assert "replay of req_" in newest or "replay of re…" in newest  # as wide as the terminal is
        assert f"{shown['id']}, delivery id d-1" in house.ask("show", taken["run"]).out
        explained = house.ask("explain", taken["run"]).out
        assert "its webhook was called." in explained
        assert "(delivery id d-1)" in explained
        for words in (["show", "req_0000000000000"], ["replay", "req_0000000000000"], ["list", "a.nothing"]):
            assert house.ask("request", *words).code == 3
        with httpx.Client(base_url=house.client.base_url, timeout=PATIENCE, trust_env=False) as anonymous:
            assert anonymous.get(f"/api/requests/{shown['id']}").status_code == 401
        listed = house.client.get("/api/requests?limit=1").json()
        assert (listed["items"][0]["id"], listed["next"] is None) == (again["request"], False)
        replayed = house.client.post(f"/api/requests/{shown['id']}/replay")
        assert (replayed.status_code, replayed.json()["duplicate"]) == (202, False)
    finally:
        house.client.close()
        house.close()
