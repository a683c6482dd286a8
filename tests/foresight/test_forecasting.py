"""Forecasts: days, costs and budgets, against what then happens."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from tests.kernel.scene import at, virtual
from wakeful import After, Cron, Every, Interval, NewJob, NotFound, Once
from wakeful.domains.agents import Reply
from wakeful.foresight.forecasting import day_bounds, forecast
from wakeful.foresight.question import Setup, SimulationRequest
from wakeful.foresight.simulating import simulate
from wakeful.foresight.snapshot import take_snapshot
from wakeful.testing import VirtualClock, run
from wakeful.triggers.moments import to_ms

DAY_MS = 86_400_000
BERLIN = "Europe/Berlin"


@pytest.fixture
def agents(sqlite_scene):
    return VirtualAgents(sqlite_scene)


@pytest.mark.promise("X21")
@virtual
async def test_a_forecast_counts_the_times_of_every_day(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs(
            [
                NewJob("hourly", Cron("0 * * * *"), kind="job"),
                NewJob("weekdays", Cron("0 9 * * 1-5"), kind="job"),
                NewJob("often", Every("15m", max_runs=100), kind="job"),
                NewJob("once", Once(at(hours=30)), kind="job"),
                NewJob("then", After("hourly"), kind="job"),
                NewJob("rounds", Interval("59s"), kind="job"),
            ]
        )
        await scheduler.add_job("paused", Every("1m"), kind="job")
        await scheduler.pause_job("paused")
        found = await scheduler.read(lambda tx: forecast(tx, "UTC", 4 * DAY_MS))
    runs = {job.name: [round(number) for number in job.counts] for job in found.jobs}
    assert runs == {
        "hourly": [23, 24, 24, 24],
        "weekdays": [1, 1, 0, 0],
        "often": [95, 5, 0, 0],
        "once": [0, 1, 0, 0],
        "then": [23, 24, 24, 24],
        "rounds": [1440, 1440, 1440, 1440],
        "paused": [0, 0, 0, 0],
    }
    shown = found.to_dict()
    assert list(shown) == ["from", "to", "days", "by_job", "by_agent", "budget"]
    assert [list(day) for day in shown["days"]] == [["date", "runs", "cost", "low", "high", "tokens"]] * 4
    assert [day["date"] for day in shown["days"]] == ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
    assert {job["history"] for job in shown["by_job"]} == {"no history"}


@pytest.mark.promise("X21")
@virtual
async def test_a_forecast_of_one_job_is_about_that_one_and_an_unknown_name_is_not_found(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(name, Every("1h"), kind="job") for name in ("one", "two")])
        found = await scheduler.read(lambda tx: forecast(tx, "UTC", DAY_MS, only="two"))
        assert [job.name for job in found.jobs] == ["two"]
        with pytest.raises(NotFound):
            await scheduler.read(lambda tx: forecast(tx, "UTC", DAY_MS, only="three"))


@pytest.mark.promise("X21")
def test_days_are_those_of_the_zone_also_where_clocks_change():
    begins = to_ms(datetime(2026, 3, 28, 12, tzinfo=UTC))
    bounds = day_bounds(begins, begins + 3 * DAY_MS, "Europe/Berlin")
    assert [end - begin for begin, end in pairwise(bounds)] == [
        11 * 3_600_000, 23 * 3_600_000, DAY_MS, 14 * 3_600_000,
    ]  # fmt: skip


@pytest.mark.promise("X21", "X4")
def test_the_costs_of_a_month_are_as_forecast_within_a_tenth(sqlite_scene, agents):
    """History, a forecast, and then thirty days as they really come, in virtual time."""
    rng = random.Random(3)
    agents.act = lambda turn: Reply("ok", cost=rng.uniform(0.01, 0.09), tokens_in=rng.randint(50, 150), tokens_out=10)
    schedules = {"often": {"every": "3h", "prompt": "x"}, "daily": {"cron": "0 9 * * *", "prompt": "x"}}

    async def main():
        async with agents.scheduler_with({"a": agent(schedules=schedules)}) as scheduler:
            await scheduler.start()
            await sqlite_scene.sleep("30d")
            found = await scheduler.read(lambda tx: forecast(tx, "UTC"))
            asked = len(agents.turns)
            spent = []
            agents.act = lambda turn: spent.append(rng.uniform(0.01, 0.09)) or Reply("ok", cost=spent[-1])
            await sqlite_scene.sleep("30d")
        return found, asked, spent

    found, asked, spent = run(main(), sqlite_scene.clock)
    assert asked
    total = found.total
    assert len(agents.turns) - asked == pytest.approx(total.runs, rel=0.02)
    assert sum(spent) == pytest.approx(total.cost, rel=0.1)
    shown = total.to_dict()
    assert shown["low"] < sum(spent) < shown["high"]
    assert [row["agent"] for row in found.to_dict()["by_agent"]] == ["a"]


@pytest.mark.promise("X21", "X4")
def test_a_budget_is_reached_when_the_forecast_and_the_simulation_say(sqlite_scene, agents):
    agents.act = lambda turn: Reply("ok", cost=0.5, tokens_in=10, tokens_out=1)
    plan = {"a": agent(budget={"cost_per_day": 6}, schedules={"tick": {"every": "1h", "prompt": "x"}})}

    async def main():
        async with agents.scheduler_with(plan) as scheduler:
            await scheduler.start()
            await sqlite_scene.until(at(hours=5, minutes=30))
            await scheduler.stop()
            found = await scheduler.read(lambda tx: forecast(tx, "UTC", 2 * DAY_MS))
            return found, await scheduler.read(take_snapshot)

    found, snapshot = run(main(), sqlite_scene.clock)
    [own] = [one for one in found.budgets if one.agent == "a"]
    assert own.to_dict()["cap"] == {"runs": 100, "cost": 6.0}
    reached = datetime.fromtimestamp(own.reached_at / 1000, UTC)
    assert abs(reached - at(hours=12, minutes=30)) < timedelta(hours=1)  # twelve runs of half a dollar
    runs = []
    simulation = simulate(snapshot, SimulationRequest(DAY_MS), Setup(), on_run=runs.append)
    [note] = [one for one in simulation.notes if one.kind == "budget"]
    assert note.job == "a.tick"
    assert datetime.fromtimestamp(note.at / 1000, UTC) == at(hours=13)
    assert "a cost of 6.00 of 6.00 is used today). Raise the budget, or run its schedules less often." in note.text
    [job] = [one for one in simulation.jobs if one.name == "a.tick"]
    assert job.skipped == {"over_budget": 11}
    assert simulation.cost.expected == pytest.approx(0.5 * len(runs))


def heartbeat(**hours):
    return agent(heartbeat={"every": "30m", "active_hours": hours})


@pytest.mark.promise("X21")
def test_a_heartbeat_is_forecast_within_its_hours_also_where_clocks_change(sqlite_scene, agents):
    plan = {
        "day": heartbeat(start="09:00", end="17:00"),
        "night": heartbeat(start="01:00", end="04:00", timezone="Europe/Berlin"),
    }
    sqlite_scene.clock = VirtualClock(datetime(2026, 3, 27, 23, 0, tzinfo=UTC))  # midnight in Berlin

    async def main():
        async with agents.scheduler_with(plan) as scheduler:
            return await scheduler.read(lambda tx: forecast(tx, "Europe/Berlin", 3 * DAY_MS))

    found = {job.name: job.counts for job in run(main(), sqlite_scene.clock).jobs}
    assert found["day.heartbeat"] == found["day.wake"] == [16, 16, 16, 0]
    assert found["night.heartbeat"] == found["night.wake"] == [7, 5, 7, 0]  # one waited; 02:00 to 03:00 does not exist


@pytest.mark.promise("X21", "X4")
def test_a_beat_that_waits_for_its_hours_is_forecast_when_they_open(sqlite_scene, agents):
    plan = {
        name: agent(heartbeat={"every": every, "active_hours": {"start": start, "end": end, "timezone": BERLIN}})
        for name, every, start, end in (
            ("late", "45m", "09:00", "17:00"), ("night", "50m", "22:00", "06:00"), ("rare", "7h", "01:00", "04:00"),
        )
    }  # fmt: skip
    sqlite_scene.clock = VirtualClock(datetime(2026, 3, 27, 8, 10, tzinfo=UTC))

    async def main():
        async with agents.scheduler_with(plan) as scheduler:
            found = await scheduler.read(lambda tx: forecast(tx, "UTC", 6 * DAY_MS))
            again = await scheduler.read(lambda tx: forecast(tx, "UTC", 6 * DAY_MS))
            assert found.jobs == again.jobs
            snapshot = await scheduler.read(take_snapshot)
            await scheduler.start()
            await sqlite_scene.sleep(timedelta(days=6) - timedelta(milliseconds=1))
            return found, snapshot, len(agents.turns)

    found, snapshot, turns = run(main(), sqlite_scene.clock)
    expected = {job.name: round(job.sum.runs) for job in found.jobs}
    simulation = simulate(snapshot, SimulationRequest(6 * DAY_MS), Setup(min_interval=None))
    assert expected == {job.name: job.runs for job in simulation.jobs}
    assert sum(expected[f"{name}.wake"] for name in plan) == turns
    assert 6 <= expected["rare.heartbeat"] <= 9  # each opening has at least the one that waited


@pytest.mark.promise("X21", "X4")
def test_a_forecast_has_no_more_runs_than_budgets_let_start(sqlite_scene, agents):
    agents.act = lambda turn: Reply("ok", cost=0.5, tokens_in=10, tokens_out=1)
    plan = {
        "busy": agent(budget={"cost_per_day": 4}, schedules={"tick": {"every": "1h", "prompt": "x"}}),
        "calm": agent(schedules={"tick": {"every": "6h", "prompt": "x"}}),
    }

    async def main():
        async with agents.scheduler_with(plan) as scheduler:
            await scheduler.start()
            await sqlite_scene.sleep("2d")
            found = await scheduler.read(lambda tx: forecast(tx, "UTC", 5 * DAY_MS))
            asked = len(agents.turns)
            await sqlite_scene.sleep("5d")
            await scheduler.agents.limit(cost_per_day=3)
            return found, len(agents.turns) - asked, await scheduler.read(lambda tx: forecast(tx, "UTC", 5 * DAY_MS))

    found, then, less = run(main(), sqlite_scene.clock)
    assert then == 5 * (8 + 4)
    assert found.total.runs == pytest.approx(then, rel=0.05)
    assert {one.agent: one.reached_at is not None for one in found.budgets} == {
        None: False,
        "busy": True,
        "calm": False,
    }
    assert [round(one.cost, 6) for _, one in less.days()][1:] == [3] * 4
    assert [one.agent for one in less.budgets if one.reached_at is not None] == [None, "busy"]


@pytest.mark.promise("X21", "X4")
def test_a_budget_is_reached_at_a_time_at_which_its_agent_starts_and_never_by_what_asks_first(sqlite_scene, agents):
    hours = {"start": "09:00", "end": "17:00", "timezone": "UTC"}
    plan = {
        "n": agent(budget={"runs_per_day": 100}, heartbeat={"every": "1m", "active_hours": hours}),
        "asks": agent(budget={"runs_per_day": 10}, schedules={"a": {"every": "1m", "prompt": "x", "approval": True}}),
    }

    async def main():
        async with agents.scheduler_with(plan) as scheduler:
            return await scheduler.read(lambda tx: forecast(tx, "UTC", DAY_MS))

    found = run(main(), sqlite_scene.clock)
    reached = {one.agent: one.reached_at for one in found.budgets}
    assert reached["asks"] is None
    expected = to_ms(at(hours=9, minutes=100))
    assert abs(reached["n"] - expected) < 5 * 60_000, "a hundred beats after the hours have begun"
