"""Agents under kill -9: a server is killed again and again while agents are woken and work through a queue.

Every event and every item that the server has acknowledged is heard or done by one run that succeeded; no item is
worked on twice at once, also by a process that outlived its server; and no process is left in the end.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.killing import ROOT
from tests.chaos.waiting import until
from wakeful.domains.agents.work import MOST_ATTEMPTS

PATIENCE_S = 300.0
SETTLE_S = 300.0
LISTENING = re.compile(r"listening on (http://\S+:\d+)")

FILE = """
store: sqlite:///wakeful.db
limits: {runs_per_day: null}
agents:
  clerk:
    runner: {start: [PYTHON, -S, -E, agent.py], cwd: .}
  smith:
    runner: {start: [PYTHON, -S, -E, agent.py], cwd: .}
    work: {source: queue}
    max_concurrent: 2
    schedules:
      one: {every: 1s, work: true, prompt: Work on this item.}
      two: {every: 2s, work: true, prompt: Work on this item.}
"""
AGENT = """
import fcntl, json, os, random, re, subprocess, sys, time

names = sorted(set(re.findall(r"(?:event|item)-[0-9]+", sys.stdin.read())))
children = [subprocess.Popen(["sleep", "1000"]), subprocess.Popen(["sleep", "1000"], start_new_session=True)]
locks, double = [], []
for name in names:
    if name.startswith("item-"):
        locks.append(open(f"lock-{name}", "w"))
        try:
            fcntl.flock(locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)  # held until nothing of this process is left
        except OSError:
            double.append(name)
line = {"run": os.environ["WAKEFUL_RUN_ID"], "names": names, "pids": [os.getpid(), *(c.pid for c in children)]}
with open("ledger", "a") as ledger:
    ledger.write(json.dumps({**line, "double": double}) + "\\n")
time.sleep(random.choice((0, 0.05, 0.3, 1)))  # a turn takes a while, so that servers are killed during it
print("Done.")
"""


class Server:
    """One life of `wakeful serve`, and who talks to it."""

    def __init__(self, folder: Path) -> None:
        log = folder / "server.log"
        begin = log.stat().st_size if log.exists() else 0
        with log.open("ab") as said:
            command = [sys.executable, "-m", "wakeful.cli", "serve", "--port", "0", "--config", "wakeful.yaml"]
            self.process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said, env=_environment())
        url = until(
            lambda: LISTENING.search(log.read_text()[begin:]),
            lambda found: found is not None or self.process.poll() is not None,
            time.monotonic() + PATIENCE_S,
        )
        if url is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        assert url is not None, log.read_text()[-2000:]
        token = (folder / "wakeful.db.token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=url[1], headers=headers, timeout=PATIENCE_S, trust_env=False)

    def post(self, path: str, body: dict[str, Any]) -> bool:
        """Whether the server said that it is done."""
        try:
            return self.client.post(path, json=body).status_code < 300
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> None:
        self.process.wait(PATIENCE_S)
        self.client.close()


def _environment() -> dict[str, str]:
    passed = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**passed, "TZ": "UTC", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


class Drill:
    """Several lives on one folder."""

    def __init__(self, folder: Path, seed: int, kills: int) -> None:
        self._folder = folder
        self._rng = random.Random(seed)
        self._kills = kills
        self._known: list[str] = []  # what the server has acknowledged
        self._count = 0
        (folder / "wakeful.yaml").write_text(FILE.replace("PYTHON", sys.executable))
        (folder / "agent.py").write_text(AGENT)

    def run(self) -> list[str]:
        """What was wrong."""
        for _ in range(self._kills):
            server = Server(self._folder)
            end = time.monotonic() + self._rng.uniform(0.1, 2.5)
            while time.monotonic() < end:
                self._ask(server)
            server.kill()
        server = Server(self._folder)
        try:
            for agent in ("clerk", "smith"):
                server.post(f"/api/agents/{agent}/resume", {})  # what crashed often waits for a person
            left = until(lambda: self._unsettled(server), lambda left: not left, time.monotonic() + SETTLE_S)
            wrong = [f"not settled after {SETTLE_S:.0f} s: {left}"] if left else []
            return wrong + self._judge(server)
        finally:
            server.process.terminate()
            server.end()

    def _ask(self, server: Server) -> None:
        self._count += 1
        if self._rng.random() < 0.5:
            name = f"event-{self._count}"
            done = server.post("/api/agents/clerk/events", {"text": name, "wake": True})
        else:
            name = f"item-{self._count}"
            done = server.post("/api/work", {"agent": "smith", "title": name})
        if done:
            self._known.append(name)
        time.sleep(self._rng.uniform(0, 0.3))  # requests come at any moment of a life, not as fast as they can

    def _unsettled(self, server: Server) -> list[Any]:
        """What still has to happen; the rest of the queue is asked for, because schedules start every 10 s at most."""
        for name in ("smith.one", "smith.two"):
            if server.client.get(f"/api/jobs/{name}").json()["status"] == "idle":
                server.post(f"/api/jobs/{name}/run", {})
        keys = ("name", "status", "events_waiting", "work_waiting", "last_error")
        shown = server.client.get("/api/agents").json()["items"]
        left: list[Any] = [[one[key] for key in keys] for one in shown if one["events_waiting"] or one["work_waiting"]]
        left += [[one["title"], one["run"]] for one in _items(server, "claimed")]
        runs = server.client.get("/api/jobs/clerk.wake/runs").json()["items"]
        return left + [run["id"] for run in runs if run["status"] == "active"]

    def _judge(self, server: Server) -> list[str]:
        path = self._folder / "ledger"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        good = {run["id"] for run in _runs(server) if run["outcome"] == "success"}
        times = {name: sum(name in line["names"] and line["run"] in good for line in lines) for name in self._known}
        given_up = {one["title"] for one in _items(server, "failed") if one["attempts"] >= MOST_ATTEMPTS}
        lost = sorted(name for name, often in times.items() if not often and name not in given_up)
        doubled = sorted(name for name, often in times.items() if often > 1)
        at_once = sorted({name for line in lines for name in line["double"]})
        left = [pid for line in lines for pid in line["pids"] if _lives(pid)]
        events = sum(name.startswith("event") for name in self._known)
        cut_off = len({line["run"] for line in lines} - good)
        print(
            f"  agents: {self._kills} kills, {events} events, {len(self._known) - events} items, "
            f"{len(lines)} processes, {cut_off} cut off, "
            f"{len(given_up)} given up; {len(lost)} lost, {len(doubled)} doubled, "
            f"{len(at_once)} worked on twice at once, {len(left)} processes left"
        )
        found = {"lost": lost, "doubled": doubled, "worked on twice at once": at_once, "processes left": left}
        return [f"{what}: {names[:10]}" for what, names in found.items() if names]


def _runs(server: Server) -> list[dict[str, Any]]:
    return _all(server, "/api/runs?limit=500")


def _items(server: Server, status: str) -> list[dict[str, Any]]:
    return _all(server, f"/api/work?limit=500&status={status}")


def _all(server: Server, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = server.client.get(f"{path}{cursor}").json()
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def drill(folder: Path, seed: int, kills: int = 12) -> list[str]:
    """Kill the server so often, and say what was wrong."""
    return Drill(folder, seed, kills).run()
