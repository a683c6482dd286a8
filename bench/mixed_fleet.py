"""The fleet of the mixed soak: its configuration, its agents and workflows, and what is sent to it from outside."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

AGENTS, QUEUES, MONITORS, JOBS = 100, 10, 5, 40
WORKFLOWS = ("orders", "mails", "photos")
EVENTS_PER_S = 10  # of all workflows together
HOOKS_PER_S, ITEMS_PER_S, PING_S = 2, 0.5, 10
READERS = 3
SECRET = "a-secret-of-the-mixed-soak"  # noqa: S105 - known to both sides of the measure alone
OUTAGES_S = (5, 25)
KEPT = 100  # runs of a job: so history is pruned from the first minutes on, as it is after a day

AGENT = """
async def answer(turn):
    return "HEARTBEAT_OK" if not turn.schedule else "Done: " + turn.prompt[:60]
"""
WORKFLOW = """
from wakeful import Prepared, Workflow

workflow = Workflow("{name}")
consumer = workflow.consumer("take", subscribes=["{name}"])


@consumer.prepare
async def prepare(ctx, state):
    events = await ctx.peek("{name}", limit=50)
    return Prepared(reserve={{"{name}": [event.id for event in events]}}, data=len(events))


@consumer.mutate
async def mutate(ctx, prepared):
    return await ctx.call(count, prepared.data)


async def count(number):
    return number
"""


def configuration(target: str) -> dict[str, Any]:
    """What the server of the soak is given; replies and results are sent to `target`."""
    agents: dict[str, Any] = {"defaults": {"runner": {"python": "answers:answer"}, "deliver": "out"}}
    for number in range(AGENTS):
        agents[f"agent-{number:03}"] = {
            "heartbeat": {"enabled": True, "every": "1m"},
            "budget": {"runs_per_day": 1_000_000},
        }
    for number in range(QUEUES):
        agents[f"agent-{number:03}"] |= {
            "work": {"source": "queue"},
            "schedules": {
                "check": {"interval": "10s", "work": True, "prompt": "Work on this item."},
                "hook": {"webhook": {"verify": "bearer", "secret": SECRET}, "prompt": "Look at {payload.number}."},
            },
        }
    jobs: dict[str, Any] = {f"tick-{n:02}": {"cron": "* * * * *", "command": ["true"]} for n in range(JOBS)}
    jobs |= {f"watch-{n}": {"ping": True, "every": "1m", "grace": "5m"} for n in range(MONITORS)}
    return {
        "store": "./wakeful.db",
        "retention": {"runs_per_job": KEPT, "events": 5_000, "records": 1_000},
        "limits": {"runs_per_day": None, "cost_per_day": None},
        "connectors": {"out": {"type": "webhook", "url": target}},
        "workflows": [f"{name}.py:workflow" for name in WORKFLOWS],
        "agents": agents,
        "jobs": jobs,
    }


def write(folder: Path, target: str) -> Path:
    """The fleet's files; returns that of its configuration, which JSON is as good a form of as YAML."""
    (folder / "answers.py").write_text(AGENT, encoding="utf-8")
    for name in WORKFLOWS:
        (folder / f"{name}.py").write_text(WORKFLOW.format(name=name), encoding="utf-8")
    path = folder / "wakeful.yaml"
    path.write_text(json.dumps(configuration(target), indent=1), encoding="utf-8")
    return path


class Target:
    """Takes what is delivered, and is away for 5 to 25 seconds at times."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._until, self._away = time.time() + 60, False
        self.received: Counter[str] = Counter()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/in"

    def close(self) -> None:
        assert self._server is not None
        self._server.close()

    def _is_away(self) -> bool:
        if time.time() >= self._until:
            self._away = not self._away
            self._until = time.time() + (self._random.uniform(*OUTAGES_S) if self._away else 60)
        return self._away

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = (line.partition(":") for line in head.split("\r\n")[1:])
            headers = {name.lower(): value.strip() for name, _, value in lines}
            await reader.readexactly(int(headers.get("content-length", 0)))
            if self._is_away():
                answer = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            else:
                self.received[headers.get("webhook-id", "")] += 1
                answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            writer.write(answer)
            await writer.drain()
        finally:
            writer.close()


class Outside:
    """Everybody who writes to the server, at an even rate, and counts what it accepted."""

    def __init__(self, base: str, token: str) -> None:
        self._client = httpx.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=30)
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._pings: dict[str, str] = {}

    async def run(self, until: float) -> None:
        """Write and read until then; a reader that loses its connection opens another."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._evenly(until, EVENTS_PER_S, self._publish))
                tasks.create_task(self._evenly(until, HOOKS_PER_S, self._call_hook))
                tasks.create_task(self._evenly(until, ITEMS_PER_S, self._add_work))
                tasks.create_task(self._evenly(until, MONITORS / PING_S, self._ping))
                for _ in range(READERS):
                    tasks.create_task(self._read(until))
        finally:
            await self._client.aclose()

    async def ended(self) -> int:
        """How many runs have ended since the server began."""
        lines = (await self._client.get("/metrics")).text.splitlines()
        return int(sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("wakeful_runs_total{")))

    async def _evenly(self, until: float, rate: float, act: Any) -> None:
        started, number = time.time(), 0
        while time.time() < until:
            await act(number)
            number += 1
            await asyncio.sleep(max(0.0, started + number / rate - time.time()))

    async def _publish(self, number: int) -> None:
        name = WORKFLOWS[number % len(WORKFLOWS)]
        message = {"message_id": f"m{number}", "payload": {"number": number}}
        await self._post("event", f"/api/workflows/{name}/topics/{name}", message)

    async def _call_hook(self, number: int) -> None:
        headers = {"Authorization": f"Bearer {SECRET}"}
        await self._post("hook", f"/hooks/agent-{number % QUEUES:03}/hook", {"number": number}, headers)

    async def _add_work(self, number: int) -> None:
        await self._post("item", "/api/work", {"agent": f"agent-{number % QUEUES:03}", "title": f"Item {number}"})

    async def _ping(self, number: int) -> None:
        name = f"watch-{number % MONITORS}"
        if name not in self._pings:
            job = (await self._client.get(f"/api/jobs/{name}")).json()
            self._pings[name] = str(job["monitor"]["ping_url"]).partition("/ping/")[2]
        await self._post("ping", f"/ping/{self._pings[name]}", {})

    async def _post(self, what: str, path: str, body: Any, headers: dict[str, str] | None = None) -> None:
        try:
            answer = await self._client.post(path, json=body, headers=headers)
        except httpx.HTTPError as error:
            self.refused[f"{what} {type(error).__name__}"] += 1
            return
        if answer.is_success:
            self.accepted[what] += 1
        else:
            self.refused[f"{what} {answer.status_code}"] += 1

    async def _read(self, until: float) -> None:
        while time.time() < until:
            try:
                async with asyncio.timeout(until - time.time()):
                    async with self._client.stream("GET", "/api/events", timeout=None) as answer:
                        async for _ in answer.aiter_raw():
                            self.accepted["read"] += 1
            except (httpx.HTTPError, TimeoutError):
                await asyncio.sleep(0.1)
