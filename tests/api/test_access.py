"""Every route, as every caller, on what is the caller's own and on what is others': as docs/access.md says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from tests.api.callers import Callers
from tests.kernel.scene import sqlite_scene
from tools.access import CALLERS, HIDDEN, PAGE, SECRET, YES, render, rules
from wakeful import Every, ids
from wakeful.kernel.actions import callbacks, run_tokens
from wakeful.store.records import RunRow
from wakeful.testing import run

__all__ = ["sqlite_scene"]

CRON = {"type": "cron", "expression": "0 9 * * 1-5"}
SCHEDULE = {"prompt": "x", "schedule": CRON}
TICK = {"tick": {"every": "6h", "prompt": "x"}}
MINE, THEIRS = "mine", "theirs"
BODIES = {
    "POST /api/jobs": {"name": "{new}", "every": "6h", "kind": "note", "owner": "{owner}"},
    "PUT /api/jobs/{ref}": {"every": "6h", "kind": "note"},
    "PATCH /api/jobs/{ref}": {"timeout": "5m"},
    "POST /api/jobs:pause": {"ids": ["{ref}"]},
    "POST /api/jobs:resume": {"ids": ["{ref}"]},
    "POST /api/jobs:run": {"ids": ["{ref}"]},
    "POST /api/jobs:preview": {"ids": ["{ref}"], "do": "pause"},
    "POST /api/hold": {},
    "PUT /api/schedule/{slug}": {"prompt": "y", "schedule": CRON},
    "PATCH /api/schedule/{slug}": {"prompt": "y"},
    "POST /api/agents/{name}/events": {"text": "hello"},
    "POST /api/runs/{run_id}/complete": {"output": 1},
}
#: Lists in which the caller's own can be seen.
SHOWS_OWN = ("GET /api/jobs", "GET /api/runs", "GET /api/schedule", "GET /api/agents")


class Asked:
    """An answer: its status, and what it says, but for a stream that would not end."""

    def __init__(self):
        self.status, self.body, self.began = None, b"", asyncio.Event()

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.is_stream = any(b"event-stream" in value for _, value in message["headers"])
            self.began.set()
        else:
            self.body += message.get("body", b"")


class Server(Callers):
    """A server with something of everybody's; what a request may change is made anew for each."""

    def __init__(self, scheduler):
        super().__init__(scheduler, jobs_per_agent=1000)
        self.made, self.runs = 0, {}

    async def open(self):
        VirtualAgents()
        await self.scheduler.agents.apply({name: agent(schedules=TICK) for name in (MINE, THEIRS)})
        for role in ("viewer", "operator", "admin"):
            await self.add(role, role)
        for name in (MINE, THEIRS):
            await self.add(name, "agent")
            body = {"prompt": "x", "schedule": CRON, "agent": name}
            assert (await self.ask("operator", f"PUT /api/schedule/{name}-extra", body)).status_code == 201
            self.runs[name] = await self.scheduler.run_job(f"{name}.tick")
            await self.scheduler.run_job(await self.job(name))
            await self.schedule(name)
        self.secrets |= {"agent": self.secrets[MINE], "run": await self.run_token("mine.tick")}

    async def run_token(self, job):
        """The token of a run that is in progress."""

        def work(tx, context):
            run = RunRow.queued(context.new_id(), tx.jobs.by_name(job)[0], "manual", tx.now)
            tx.runs.add([run])
            tx.runs.activate([run._replace(status="active", started_at=tx.now, node=context.id)])
            return run_tokens.run_token(tx, run.id)

        return await self.scheduler.transact(work)

    def fresh(self, owner):
        self.made += 1
        return f"{owner}-{self.made}"

    async def job(self, owner):
        name = self.fresh(owner)
        await self.scheduler.add_job(name, Every("6h"), kind="note", owner=owner)
        return name

    async def schedule(self, owner):
        name = self.fresh(owner)
        assert (await self.ask(owner, f"PUT /api/schedule/{name}", SCHEDULE)).status_code == 201
        return name

    async def start(self, owner):
        return await self.scheduler.run_job(await self.job(owner))

    async def action(self, owner):
        return (await self.ask(owner, f"POST /api/jobs/{await self.job(owner)}/pause")).headers["Wakeful-Action"]

    async def thing(self, path, part, caller, owner):
        """What a part of an address stands for: something of this owner, and of the caller's kind of owners."""
        if caller == "run":
            known = {"ref": f"{owner}.tick", "run_id": self.runs[owner], "slug": f"{owner}-extra", "name": owner}
            return known.get(part, "nothing")
        if part == "name" and path.startswith("/api/agents/"):
            return owner
        makers = {"ref": self.job, "run_id": self.start, "slug": self.schedule, "action_id": self.action}
        return await makers[part](owner) if part in makers else "nothing"

    async def answer(self, rule, caller, owner):
        """Ask as that caller about something of that owner."""
        written = json.dumps(BODIES[rule.name]) if rule.name in BODIES else None
        path = rule.path
        known = {"new": self.fresh(MINE), "owner": owner}
        for part in re.findall(r"{([a-z_]+)}", f"{path} {written}"):
            if part == "time":
                coming = await self.ask("admin", f"GET /api/jobs/{known['ref']}/upcoming?n=1")
                known[part] = coming.json()["items"][0]["at"]
            elif part not in known:
                known[part] = await self.thing(path, part, caller, owner)
        for part, text in known.items():
            path = path.replace("{" + part + "}", text)
            written = None if written is None else written.replace("{" + part + "}", text)
        found = await self.raw(rule.method, path, caller, written)
        if rule.name == "POST /api/hold":
            await self.ask("admin", "DELETE /api/hold")
        return found

    async def raw(self, method, path, caller, body):
        """Ask, and wait for the end of the answer unless it has none."""
        path, _, query = path.partition("?")
        headers = [(b"host", b"127.0.0.1:7878")]
        if caller in self.secrets:
            headers.append((b"authorization", f"Bearer {self.secrets[caller]}".encode()))
        if body is not None:
            headers.append((b"content-type", b"application/json"))
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 7878), "scheme": "http",
            "http_version": "1.1", "root_path": "",
        }  # fmt: skip
        given = iter([{"type": "http.request", "body": (body or "").encode(), "more_body": False}])
        asked, never = Asked(), asyncio.Event()

        async def receive():
            for message in given:
                return message
            return await never.wait()

        task = asyncio.ensure_future(self.guarded(scope, receive, asked.send))
        await asyncio.wait({task, asyncio.ensure_future(asked.began.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done() and asked.is_stream:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return asked


def judged(rule, cell, asked, caller):
    """Whether an answer is what the table says."""
    text = asked.body.decode("utf-8", "replace")
    if cell == SECRET:
        return asked.status in (401, 404)  # without the secret, whoever asks
    if cell.isdigit():
        return asked.status == int(cell)
    if asked.status in (401, 403) or (rule.has_owner and asked.status not in (200, 201, 202, 204, 400, 409)):
        return False
    if cell == HIDDEN:
        return THEIRS not in text
    return rule.name not in SHOWS_OWN or caller not in ("agent", "run") or MINE in text


@pytest.mark.promise("X18")
@pytest.mark.parametrize("column", CALLERS)
def test_the_server_answers_every_caller_on_every_route_as_the_table_says(sqlite_scene, column):
    caller, _, whose = column.partition(", ")
    owner = MINE if whose == "own" else THEIRS

    async def main():
        wrong = {}
        async with sqlite_scene.scheduler() as scheduler, Server(scheduler) as server:
            await server.open()
            for rule in rules():
                if caller != "no token" and rule.cells["no token"] == YES:
                    continue  # a token is not looked at
                asked, cell = await server.answer(rule, caller, owner), rule.cells[column]
                if not judged(rule, cell, asked, caller):
                    wrong[rule.name] = (cell, asked.status, asked.body[:300])
        return wrong

    assert run(main(), sqlite_scene.clock) == {}


def test_a_callback_token_reports_the_end_of_its_own_run_and_does_nothing_else(sqlite_scene):
    async def main():
        async with sqlite_scene.scheduler() as scheduler, Server(scheduler) as server:
            await server.open()
            runs = [await server.start(MINE) for _ in range(2)]
            numbers = [ids.decode(one)[1] for one in runs]
            mine, other = await scheduler.transact(lambda tx, _: [callbacks.callback_token(tx, one) for one in numbers])
            path = f"/api/runs/{runs[0]}/complete"
            found = [
                (await server.raw("POST", f"{path}?token={token}", None, '{"output": 1}')).status
                for token in (other, "0" * 64, mine)
            ]
            assert found == [403, 403, 202]
            server.secrets["callback"] = mine
            tried = [rule for rule in rules() if rule.cells["viewer"] == YES and rule.cells["no token"] == "401"]
            for rule in tried[:5]:  # further wrong tokens must wait
                assert (await server.answer(rule, "callback", MINE)).status == 401, rule.name

    run(main(), sqlite_scene.clock)


def test_the_table_is_what_the_routes_ask_for():
    assert PAGE.read_text(encoding="utf-8") == render(), "docs/access.md is out of date: run make access"


@pytest.mark.promise("X18")
def test_what_changes_something_is_for_nobody_without_a_token_and_for_no_viewer():
    changing = [rule for rule in rules() if rule.method != "GET" and rule.cells["no token"] != SECRET]
    assert {rule.cells["no token"] for rule in changing} == {"401"}
    assert {rule.cells["viewer"] for rule in changing} == {"403"}
    assert {rule.cells["run, own"] for rule in changing} == {"403", YES}
    allowed = [rule.name for rule in changing if rule.cells["run, own"] == YES]
    assert allowed == ["POST /api/agents/{name}/events", "POST /api/agents/{name}/wake"]
