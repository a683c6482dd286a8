"""A run that reads text from outside over HTTP writes text from outside: on every route that a run may read."""

from __future__ import annotations

import pytest

from tests.agents.test_outside_text import MANUAL, is_data
from tests.agents.token_house import EVIL, opened
from tests.kernel.scene import virtual
from tests.mcp.desks import Tools
from tools.access import YES, rules
from wakeful import ids
from wakeful.domains.agents.senders.feeding import is_fed
from wakeful.domains.agents.senders.tables import Senders

pytestmark = pytest.mark.promise("X30")

HOURLY = {"type": "interval", "intervalMinutes": 60}
#: What shows a run no words of jobs and runs, but names, numbers and times.
WORDLESS = {"GET /api/ledger", "GET /api/me"}


def readable():
    """The routes by which a run may read what is its agent's."""
    cells = {rule.name: rule.cells for rule in rules() if rule.method == "GET"}
    return sorted(name for name, cell in cells.items() if cell["run, own"] == YES and cell["no token"] == "401")


class World:
    """An agent `a` whose schedule `extra` has failed once with EVIL, and asks for another; `fed`: with outside text."""

    def __init__(self, scene, house, *, fed):
        self.scene, self.house, self.scheduler, self.fed = scene, house, house.scheduler, fed
        self.readers, self.answers, self.path = {}, {}, None
        house.does = {"a": self._act}

    async def _act(self, turn):
        number = ids.decode(turn.run.id)[1]
        if turn.schedule == "read":
            self.readers[self.path] = number
            self.answers[self.path] = await self.house.get(turn, self.path)
            return
        if self.fed:
            await self.scheduler.transact(lambda tx, _: tx.of(Senders).feed(number))
        await Tools(self.scheduler).of(turn).ok("schedule", when="every day at 09:00", prompt=EVIL, name="asked")
        raise RuntimeError(EVIL)

    async def open(self):
        operator = await self.scheduler.create_token("ada", "operator")
        self.operator = {"Authorization": f"Bearer {operator}"}
        body = {"prompt": "Do it.", "schedule": HOURLY, "agent": "a"}
        client = self.house.server.client
        assert (await client.put("/api/schedule/extra", json=body, headers=self.operator)).status_code == 201
        await self.scene.sleep(3700)
        await self.scheduler.pause_job("extra")
        failed = [run for run in await self.scheduler.get_run_log("extra", 20) if run.slot is not None]
        slot = failed[-1].slot.isoformat().replace("+00:00", "Z")
        self.parts = {"ref": "extra", "slug": "extra", "name": "a", "run_id": failed[-1].id, "time": slot}

    async def read(self, name):
        """Read by that route in a new run; whether the run counts as given text from outside then."""
        self.path = name.removeprefix("GET ").format(**self.parts)
        await self.scheduler.wait_for_run(await self.scheduler.run_job("a.read"))
        assert self.answers[self.path].status_code == 200, (name, self.answers[self.path].text)
        return await self.scheduler.read(lambda tx: is_fed(tx, self.readers[self.path]))


async def world_of(scene, agents, scheduler, *, fed):
    plan = {"schedules": {"read": MANUAL}, "self_schedule": "ask"}
    world = World(scene, await opened(agents, scheduler, a=plan), fed=fed)
    await world.open()
    return world


@virtual
async def test_whatever_shows_a_run_such_text_marks_the_run(scene, agents):
    async with agents.scheduler() as scheduler:
        world = await world_of(scene, agents, scheduler, fed=True)
        marked = {name for name in readable() if await world.read(name)}
        assert marked == set(readable()) - WORDLESS
        for name in WORDLESS:
            assert EVIL not in world.answers[name.removeprefix("GET ")].text


@virtual
async def test_the_same_words_of_a_run_that_was_given_none_mark_nobody(scene, agents):
    async with agents.scheduler() as scheduler:
        world = await world_of(scene, agents, scheduler, fed=False)
        assert [name for name in readable() if await world.read(name)] == []
        shown = [path for path, answer in world.answers.items() if EVIL in answer.text]
        assert {"/api/jobs/extra", "/api/runs", "/api/schedule/extra", "/api/approvals", "/api/agents/a"} <= set(shown)


@virtual
async def test_a_run_that_sees_an_event_of_such_a_run_is_marked(scene, agents):
    async with agents.scheduler() as scheduler:
        world = await world_of(scene, agents, scheduler, fed=False)
        assert not await world.read("GET /api/agents/{name}")
        await scheduler.agents.add_event("a", "The build is red.", source="ci")
        assert not await world.read("GET /api/agents/{name}")

        async def leaves(turn):
            await scheduler.transact(lambda tx, _: tx.of(Senders).feed(ids.decode(turn.run.id)[1]))
            assert (await world.house.post(turn, "/api/agents/a/events", text=EVIL)).status_code == 202

        world.house.does["b"] = leaves
        await scheduler.agents.request_wake("b")
        await scene.sleep(10)
        assert await world.read("GET /api/agents/{name}")


@virtual
async def test_what_people_read_marks_no_run(scene, agents):
    async with agents.scheduler() as scheduler:
        world = await world_of(scene, agents, scheduler, fed=True)
        await world.read("GET /api/me")
        client = world.house.server.client
        for name in readable():
            path = name.removeprefix("GET ").format(**world.parts)
            assert (await client.get(path, headers=world.operator)).status_code == 200
        assert not await scheduler.read(lambda tx: is_fed(tx, world.readers["/api/me"]))


@virtual
@pytest.mark.parametrize("route", ["/api/runs/{run}", "/api/runs/{run}/log", "/api/runs", "/api/jobs/a.deploy/runs"])
async def test_the_words_of_a_stranger_reach_a_third_agent_as_data_by_way_of_a_run_that_reads_them(
    scene, agents, route
):
    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler)

        async def repeats(turn):
            return EVIL

        async def relays(turn):
            run = (await scheduler.get_run_log("a.deploy", 1))[0].id
            answer = await house.get(turn, route.format(run=run))
            assert EVIL in answer.text
            await house.tells("c", EVIL)(turn)

        house.does = {"a": repeats}
        await house.server.send({"ref": "main"}, "d-1")
        await scene.sleep(10)
        house.does = {"a": relays}
        await scheduler.agents.request_wake("a")
        await scene.sleep(10)
        assert is_data(house.prompts("c")[0])
        assert await house.limited("c.wake") == [True]
