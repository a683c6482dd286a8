"""Agents through random days with crashes, restarts and failures: what is counted is what ran, within budgets."""

from __future__ import annotations

import contextlib
import random

import pytest

from tests.agents.test_counted_costs import balance
from tests.agents.virtual_agents import PLACE
from tests.kernel.scene import virtual
from wakeful import SchedulerShutdownError, ScheduleTriggerError
from wakeful.domains.agents import Reply
from wakeful.domains.agents.budgets.rules import day_of
from wakeful.domains.agents.budgets.tables import Budgets
from wakeful.kernel.rules.outcome import Noop

AGENTS = ("a", "b", "c")
OWN, FLEET, MAX_COST = 6, 3_000_000, 300_000


def settings(chance):
    every = {f"s{number}": {"every": f"{chance.choice((20, 45, 90))}m", "prompt": "x"} for number in range(3)}
    runner = {"python": PLACE, "max_cost": MAX_COST / 1_000_000}
    return {"runner": runner, "budget": {"runs_per_day": OWN}, "max_concurrent": 2, "schedules": every}


def check(tx):
    """What holds at every moment."""
    budgets, day = tx.of(Budgets), day_of(tx.now, "UTC")
    active = [run for run in tx.runs.all_open() if run.status == "active" and run.kind == "agent"]
    reserved = budgets.reservations([run.id for run in tx.runs.all_open()])
    assert {one.run_id for one in reserved} == {run.id for run in active}
    for each in (day, day - 1):
        found = budgets.spent(["fleet", *(f"agent:{name}" for name in AGENTS)], each)
        fleet, own = found.pop("fleet"), list(found.values())
        assert fleet == type(fleet)(*(sum(column) for column in zip(*own, strict=True)))
        assert fleet.cost + fleet.held_cost <= FLEET
        assert all(one.held_runs >= 0 and one.runs + one.held_runs <= OWN for one in own)
    held = sum(budgets.spent(["fleet"], each)["fleet"].held_runs for each in (day, day - 1))
    assert held == len(active)


@pytest.mark.promise("X7")
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@virtual
async def test_what_is_counted_and_reserved_is_what_ran_and_runs_and_stays_within_budgets(scene, agents, seed):
    chance = random.Random(seed)
    ran = []

    async def act(turn):
        ran.append(turn.agent)
        await scene.sleep(chance.choice((1, 60, 900)))
        how = chance.random()
        if how < 0.2:
            raise Noop("nothing new")
        if how < 0.35:
            raise RuntimeError("broken")
        return Reply("ok", cost=chance.choice((None, 0.01, 0.3)), tokens_in=chance.choice((None, 10)))

    agents.act = act
    fleet = {name: settings(chance) for name in AGENTS}
    for _ in range(12):
        async with agents.scheduler() as scheduler:
            await scheduler.agents.apply(fleet)
            await scheduler.agents.limit(cost_per_day=FLEET / 1_000_000)
            await scheduler.start()
            for _ in range(chance.randrange(1, 6)):
                await scene.sleep(chance.choice((30, 600, 3600)))
                await scheduler.read(check)
                balance(scene.url)
                try:
                    await scheduler.agents.request_wake(chance.choice(AGENTS))
                    await scheduler.run_job(f"{chance.choice(AGENTS)}.s0")
                except ScheduleTriggerError:
                    continue
            if chance.random() < 0.5:
                await scene.crash(scheduler)
            else:
                with contextlib.suppress(SchedulerShutdownError):  # an agent may take longer than a stop waits
                    await scheduler.stop(wait_for_jobs=chance.random() < 0.5)
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep(2 * 3600)
        await scheduler.read(check)
        balance(scene.url)
    assert len(set(ran)) == len(AGENTS)
