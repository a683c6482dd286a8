"""Budgets on a store that two nodes share: both claim at once, and together they stay within them."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.agents.virtual_agents import PLACE, VirtualAgents
from tests.service.real_time import real
from tests.store.opened import Opened, waiting
from tests.store.postgres_server import postgres_url
from wakeful import Scheduler
from wakeful.domains.agents import Reply
from wakeful.domains.agents.budgets.tables import Budgets

SCHEDULES, RUNS = 40, 10


async def until(scheduler, refused):
    """Until so many starts were refused."""
    async with asyncio.timeout(30):
        while await _refused(scheduler) < refused:  # noqa: ASYNC110 - a refusal is no event
            await asyncio.sleep(0.05)


async def _refused(scheduler):
    return sum(one["skips"].get("over_budget", 0) for one in await scheduler.agents.list())


@pytest.mark.promise("X7", "X2")
@real
async def test_two_nodes_that_claim_at_once_stay_within_a_budget():
    agents = VirtualAgents()

    async def reply(turn):
        await asyncio.sleep(0.01)
        return Reply("ok", cost=0.5)

    agents.act = reply
    url = postgres_url()
    now = {f"s{number}": {"at": "2020-01-01T00:00:00Z", "prompt": "x"} for number in range(SCHEDULES)}
    settings = {
        "runner": {"python": PLACE, "max_cost": 0.5},
        "budget": {"runs_per_day": RUNS, "cost_per_day": 100},
        "max_concurrent": SCHEDULES,
        "schedules": now,
    }
    async with Scheduler(url, timezone="UTC", node="one") as one, Scheduler(url, timezone="UTC", node="two") as two:
        _ = two.agents
        await one.agents.apply(dict.fromkeys(("a", "b"), settings))
        await one.agents.limit(runs_per_day=None, cost_per_day=7.5)
        await asyncio.gather(one.start(), two.start())
        await until(one, 2 * SCHEDULES - 15)
        await asyncio.gather(one.stop(), two.stop())
        assert len(agents.turns) == 15  # 7.50 for both together
        found = await one.read(lambda tx: tx.of(Budgets).spent(["fleet", "agent:a", "agent:b"], _today(tx)))
        assert (found["fleet"].runs, found["fleet"].cost, found["fleet"].held_runs) == (15, 7_500_000, 0)
        assert found["agent:a"].runs + found["agent:b"].runs == 15
        assert max(found["agent:a"].runs, found["agent:b"].runs) <= RUNS
        assert {alert.kind for alert in await one.list_alerts()} == {"budget"}


@pytest.mark.promise("X7", "X2")
@real
async def test_while_one_node_decides_about_a_day_a_claim_of_another_comes_again_and_an_end_waits():
    url = postgres_url()
    async with Opened(url) as (store,):
        assert await store.write(lambda tx: [tx.of(Budgets).hold(20260101, wait=wait) for wait in (False, True)])
        with psycopg.connect(url) as other:
            other.execute("SELECT * FROM budget_days WHERE scope = 'fleet' AND day = 20260101 FOR UPDATE")
            assert await store.write(lambda tx: tx.of(Budgets).hold(20260101, wait=False)) is False
            assert await store.write(lambda tx: tx.of(Budgets).hold(20260102, wait=False)) is True
            ended = asyncio.ensure_future(store.write(lambda tx: tx.of(Budgets).hold(20260101, wait=True)))
            await waiting(other, "transactionid")
            other.commit()
            assert await ended is True


def _today(tx):
    from wakeful.domains.agents.budgets.rules import day_of

    return day_of(tx.now, "UTC")
