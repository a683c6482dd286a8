"""Agents with budgets, simulated and really run: the same starts, and the same starts refused, slot by slot."""

from __future__ import annotations

import random

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from tests.foresight.reality import STARTS, ZONES, as_lived, runs_of
from tests.kernel.scene import Scene
from wakeful.agents import Reply
from wakeful.clock import sleep
from wakeful.foresight.question import Setup, SimulationRequest
from wakeful.foresight.simulating import simulate
from wakeful.foresight.snapshot import take_snapshot
from wakeful.kernel.views.ledger import ledger_of_all
from wakeful.testing import VirtualClock, run
from wakeful.triggers.moments import from_ms, to_ms

pytestmark = pytest.mark.promise("X4")

DAY_MS = 86_400_000


def plan_of(rng):
    """Two agents, each with a budget that some days are too much for."""
    return {
        name: agent(
            budget={"runs_per_day": rng.randint(3, 12)},
            schedules={f"s{number}": {**_rhythm(rng), "prompt": "x"} for number in range(rng.randint(1, 3))},
        )
        for name in ("a", "b")
    }


def _rhythm(rng):
    if rng.random() < 0.5:
        return {"every": rng.choice(("45m", "2h", "5h"))}
    hours = rng.choice(("*", "*/2", "1-4", "8-20"))
    return {"cron": f"{rng.choice((0, 7, 30))} {hours} * * *", "timezone": rng.choice(ZONES)}


@pytest.mark.parametrize("seed", range(4))
def test_a_simulated_fleet_of_agents_runs_and_is_refused_as_it_then_is(sqlite_scene, seed):
    assert check(sqlite_scene, seed) > 0


@pytest.mark.parametrize("seed", [1])
def test_the_same_holds_on_postgresql(postgres_scene, seed):
    assert check(postgres_scene, seed) > 0


def test_a_call_that_runs_to_its_limit_ends_there_in_a_simulation_as_it_then_does(sqlite_scene):
    assert check(sqlite_scene, 2, took=45 * 60_000, limit="20m", outcomes={"timeout", None}) > 0


def check(scene: Scene, seed, took=None, limit=None, outcomes=None):
    rng = random.Random(f"budgets {seed}")
    start, usual = STARTS[seed % len(STARTS)], rng.choice((1_000, 20_000, 900_000))
    took = usual if took is None else took
    begins = to_ms(start)
    outage = (begins + 20 * 3_600_000 + 1_234, begins + 27 * 3_600_000) if seed % 2 else None
    plan, ends = plan_of(rng), begins + 3 * DAY_MS
    for made in plan.values() if limit is not None else ():
        made["runner"] = {**made["runner"], "timeout": limit}
    agents, scene.clock = VirtualAgents(scene), VirtualClock(start)

    async def act(_):
        await sleep(took / 1000)
        return Reply("ok")

    async def begun():
        scheduler = agents.scheduler()
        await scheduler.open()
        await scheduler.start()
        return scheduler

    async def main():
        agents.act = act
        async with agents.scheduler_with(plan) as scheduler:
            snapshot = await scheduler.read(take_snapshot)
        scheduler = await begun()
        if outage is not None:
            await scene.clock.sleep(scene.clock.until(outage[0] - 1))
            await scene.crash(scheduler)
            await scene.clock.sleep(scene.clock.until(outage[1]))
            scheduler = await begun()
        await scene.clock.sleep(scene.clock.until(ends - 1))
        ledger = await scheduler.read(lambda tx: ledger_of_all(tx, begins - 1, scheduler.host.hidden_kinds))
        found = await runs_of(scheduler)
        await scheduler.close()
        return snapshot, found, ledger

    snapshot, lived, ledger = run(main(), scene.clock)
    names = [f"{name}.{schedule}" for name, one in plan.items() for schedule in one["schedules"]]
    down = [] if outage is None else [f"{from_ms(outage[0]).isoformat()}/{from_ms(outage[1]).isoformat()}"]
    asked, runs = SimulationRequest(3 * DAY_MS, None, 1, dict.fromkeys(names, took), {}, down), []
    found = simulate(snapshot, asked, Setup("UTC", None, None), on_run=runs.append)
    assert as_lived(runs) == lived
    assert lived
    assert outcomes is None or {one[4] for one in lived} <= outcomes
    skipped = {job.name: job.skipped.get("over_budget", 0) for job in found.jobs if job.name in names}
    assert skipped == {name: ledger.jobs[name].passed_over.get("over_budget", 0) for name in names}
    return sum(skipped.values())
