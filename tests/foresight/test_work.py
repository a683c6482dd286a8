"""Agents that work on items: a run that finds none calls nobody, in a simulation and in a forecast too."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from wakeful.agents import Reply
from wakeful.domains.agents.work import NewItem, add_item
from wakeful.foresight.forecasting import forecast
from wakeful.foresight.question import Setup, SimulationRequest
from wakeful.foresight.simulating import simulate
from wakeful.foresight.snapshot import take_snapshot
from wakeful.testing import run

pytestmark = pytest.mark.promise("X4", "X21")

DAY_MS = 86_400_000
PLAN = {
    "a": agent(
        work={"source": "queue"},
        budget={"runs_per_day": 20},
        schedules={"check": {"every": "30m", "work": True, "prompt": "Work on this item."}},
    )
}


@pytest.fixture
def agents(sqlite_scene):
    return VirtualAgents(sqlite_scene)


async def added(scheduler, number):
    item = NewItem(f"Item {number}")
    await scheduler.transact(lambda tx, context: add_item(tx, context, "a", item))


def foreseen(scene, agents, live):
    """What a day is simulated and forecast to be after `live`."""

    async def main():
        async with agents.scheduler_with(PLAN) as scheduler:
            await live(scheduler)
            snapshot = await scheduler.read(take_snapshot)
            return snapshot, await scheduler.read(lambda tx: forecast(tx, "UTC", DAY_MS))

    snapshot, expected = run(main(), scene.clock)
    runs = []
    found = simulate(snapshot, SimulationRequest(DAY_MS), Setup(min_interval=None), on_run=runs.append)
    return found, runs, expected


def test_a_run_without_an_item_calls_nobody_and_uses_no_budget(sqlite_scene, agents):
    async def live(scheduler):
        for number in range(3):
            await added(scheduler, number)

    found, runs, expected = foreseen(sqlite_scene, agents, live)
    outcomes = [one.outcome for one in runs]
    assert (outcomes.count("success"), outcomes.count("noop")) == (3, len(outcomes) - 3)
    assert len(outcomes) >= 47
    assert [job.skipped for job in found.jobs if job.name == "a.check"] == [{}]  # not over its budget of 20 calls
    assert [note.kind for note in found.notes] == []
    assert [one.reached_at for one in expected.budgets] == [None, None]


def test_items_come_as_often_as_they_came_and_cost_what_they_cost(sqlite_scene, agents):
    agents.act = lambda turn: Reply("ok", cost=0.5, tokens_in=100, tokens_out=10)

    async def live(scheduler):
        await scheduler.start()
        for number in range(10):  # every third run finds one
            await added(scheduler, number)
            await sqlite_scene.sleep(90 * 60)
        await scheduler.stop()

    found, runs, expected = foreseen(sqlite_scene, agents, live)
    called = sum(one.outcome == "success" for one in runs)
    assert 8 <= called <= 24  # 16 of 48
    assert found.cost.expected == pytest.approx(0.5 * called)
    assert expected.total.cost == pytest.approx(0.5 * 16, rel=0.05)
    assert [one.reached_at for one in expected.budgets] == [None, None]
