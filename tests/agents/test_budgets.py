"""Budgets of agents in virtual time on both stores: what is refused, what waits, what counts, and one alert."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import PLACE
from tests.kernel.scene import at, virtual
from wakeful import ScheduleTriggerError
from wakeful.domains.agents import Reply
from wakeful.domains.agents.budgets.tables import Budgets
from wakeful.kernel.actions.lookup import require_run
from wakeful.kernel.rules.outcome import Noop

HOURLY = {"tick": {"every": "1h", "prompt": "x"}}


def agent(budget=None, max_cost=None, **settings):
    runner = {"python": PLACE} if max_cost is None else {"python": PLACE, "max_cost": max_cost}
    return {"runner": runner, **({"budget": budget} if budget is not None else {}), **settings}


async def spent(scheduler, name="a"):
    found = await scheduler.agents.get(name)
    return found["spent_today"], found["reserved"]


async def reservations(scheduler, job="a.tick"):
    numbers = [require_run(run.id) for run in await scheduler.get_run_log(job, 100)]
    return await scheduler.read(lambda tx: tx.of(Budgets).reservations(numbers))


async def budget_alerts(scheduler, **how):
    return [alert for alert in await scheduler.list_alerts(**how) if alert.kind == "budget"]


@pytest.mark.promise("X7")
@virtual
async def test_slots_over_budget_pass_with_one_alert_and_the_next_day_goes_on(scene, agents):
    agents.act = lambda turn: Reply("ok", cost=0.25, tokens_in=100, tokens_out=11)
    async with agents.scheduler_with(
        {"a": agent({"runs_per_day": 3}, schedules=HOURLY), "b": agent(schedules=HOURLY)}
    ) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=23, minutes=30))
        assert sum(turn.agent == "a" for turn in agents.turns) == 3
        assert sum(turn.agent == "b" for turn in agents.turns) == 23  # others have budgets of their own
        assert await spent(scheduler) == ({"runs": 3, "cost": 0.75, "tokens": 333}, {"runs": 0, "cost": 0.0})
        shown = await scheduler.agents.get("a")
        assert (shown["skips"], shown["budget"]) == ({"over_budget": 20}, {"runs_per_day": 3})
        (alert,) = await budget_alerts(scheduler)
        assert (alert.job, alert.times) == ("a.wake", 1)
        assert alert.message.startswith("a is over budget: 3 of 3 runs are used today. Slots are passed over")
        explained = await scheduler.explain("a.tick")
        assert "20 starts refused as over_budget: a budget was used up (a is over budget: 3 of 3 runs" in str(explained)
        assert "Used today: 3 of 3 runs, cost 0.75, 333 tokens by a; 26 runs, cost 6.50 of 20.00" in str(explained)
        await scene.until(at(days=1, hours=1, minutes=30))
        assert sum(turn.agent == "a" for turn in agents.turns) == 5  # midnight and one o'clock
        assert await budget_alerts(scheduler) == []
        assert (await spent(scheduler))[0]["runs"] == 2


@pytest.mark.promise("X7")
@virtual
async def test_days_are_those_of_the_schedulers_zone(scene, agents):
    async with agents.scheduler_with(
        {"a": agent({"runs_per_day": 1}, schedules=HOURLY)}, timezone="America/New_York"
    ) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=6))
        assert [when.hour for when in agents.times] == [1, 5]  # 05:00 UTC is midnight there


@pytest.mark.promise("X7")
@virtual
async def test_a_start_by_hand_over_budget_is_refused_and_counted(scene, agents):
    async with agents.scheduler_with(
        {"a": agent({"runs_per_day": 1}, schedules={"ask": {"cron": "0 9 1 1 *"}})}
    ) as scheduler:
        await scheduler.start()
        run = await scheduler.wait_for_run(await scheduler.run_job("a.ask"))
        with pytest.raises(ScheduleTriggerError, match="a is over budget: 1 of 1 run is used today") as refused:
            await scheduler.run_job("a.ask")
        assert refused.value.context == {"job": "a.ask", "reason": "over_budget"}
        with pytest.raises(ScheduleTriggerError, match="over_budget"):
            await scheduler.retry_run(run.id)
        assert (await scheduler.agents.get("a"))["skips"] == {"over_budget": 2}
        assert len(await budget_alerts(scheduler)) == 1
        assert len(await scheduler.get_run_log("a.ask")) == len(agents.turns) == 1


@pytest.mark.promise("X7")
@virtual
async def test_times_that_will_be_passed_over_are_not_shown_as_the_next_ones(scene, agents):
    async with agents.scheduler_with(
        {name: agent({"runs_per_day": runs}, schedules=HOURLY) for name, runs in (("a", 3), ("b", 9))}
    ) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=5, minutes=30))
        explained = str(await scheduler.explain("a.tick"))
        assert "It will run next at 2026-01-02 00:00:00 UTC." in explained
        assert "and times before 2026-01-02 00:00 UTC are passed over." in explained
        job, other = await scheduler.get_job("a.tick"), await scheduler.get_job("b.tick")
        assert (job.next_run_at, job.upcoming(2)) == (at(days=1), [at(days=1), at(days=1, hours=1)])
        assert job.passed_over in job.to_dict()["notes"]
        assert (other.next_run_at, other.passed_over) == (at(hours=6), None)


@pytest.mark.promise("X7")
@virtual
async def test_wakes_and_one_time_starts_over_budget_wait_for_the_next_day(scene, agents):
    once = {"later": {"at": "2026-01-01T12:00:00Z", "prompt": "once"}}
    async with agents.scheduler_with({"a": agent({"runs_per_day": 1}, schedules=once)}) as scheduler:
        await scheduler.start()
        assert (await scheduler.agents.request_wake("a"))["waits_for"] is None
        await scene.sleep(10)
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        asked = await scheduler.agents.request_wake("a", "cron")
        assert (asked["waits_for"], asked["waits_until"][:19]) == ("over_budget", "2026-01-02T00:02:42")
        await scene.until(at(hours=13))
        assert len(agents.turns) == 1
        assert "waits until 2026-01-02 00:02:42 UTC" in str(await scheduler.explain("a.later"))
        await scheduler.agents.apply({"a": agent({"runs_per_day": 2}, schedules=once)})  # raised: at once, one of them
        await scene.sleep(10)
        assert len(agents.turns) == 2
        await scene.until(at(days=1, minutes=30))
        assert len(agents.turns) == 3
        assert sorted(turn.schedule for turn in agents.turns) == ["later", "wake", "wake"]
        assert (await scheduler.agents.get("a"))["skips"] == {"over_budget": 2}


@pytest.mark.promise("X7")
@virtual
async def test_all_agents_together_have_a_budget_which_can_be_raised(scene, agents):
    agents.act = lambda turn: Reply("ok", cost=1.0)
    async with agents.scheduler() as scheduler:
        fleet = {name: agent(schedules=HOURLY) for name in ("a", "b", "c")}
        await scheduler.agents.apply(fleet)
        await scheduler.agents.limit(cost_per_day=7.0)
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await scene.until(at(hours=12, minutes=30))
        assert len(agents.turns) == 7
        (alert,) = await budget_alerts(scheduler)
        assert alert.message.startswith("All agents together are over budget: a cost of 7.00 of 7.00 is used today.")
        await scheduler.agents.request_wake("b", "hook")
        await scene.sleep(60)
        assert len(agents.turns) == 7
        await scheduler.agents.limit(cost_per_day=None, runs_per_day=8)
        await scene.sleep(60)
        assert len(agents.turns) == 8  # what waited started; the slots went by
        await scene.until(at(hours=14))
        assert len(agents.turns) == 8


@pytest.mark.promise("X7")
@virtual
async def test_a_hundred_runs_and_twenty_a_day_are_the_default(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules={"tick": {"every": "1m", "prompt": "x"}})}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=4))
        assert len(agents.turns) == 100
        agents.act = lambda turn: Reply("ok", cost=6.0)
        await scene.until(at(days=1, hours=4))
        assert len(agents.turns) == 104  # four times six is over twenty, and the fourth was asked below it


@pytest.mark.promise("X7")
@virtual
async def test_what_runs_may_cost_is_reserved_while_they_run(scene, agents):
    agents.act = lambda turn: scene.sleep(600)
    many = {f"s{number}": {"every": "1h", "prompt": "x"} for number in range(6)}
    async with agents.scheduler() as scheduler:
        budget = {"cost_per_day": 1.0}
        await scheduler.agents.apply({"a": agent(budget, 0.3, max_concurrent=10, schedules=many)})
        await scheduler.start()
        await scene.until(at(hours=1, minutes=5))
        assert agents.most_busy == 3  # a fourth could cost too much
        assert await spent(scheduler) == ({"runs": 0, "cost": 0.0, "tokens": 0}, {"runs": 3, "cost": 0.9})
        await scene.until(at(hours=1, minutes=30))
        # They reported nothing: each counts what it might have cost.
        assert await spent(scheduler) == ({"runs": 3, "cost": 0.9, "tokens": 0}, {"runs": 0, "cost": 0.0})


@pytest.mark.promise("X7")
@virtual
async def test_what_was_reserved_and_not_spent_is_there_again(scene, agents):
    agents.act = lambda turn: Reply("ok", cost=0.1)
    async with agents.scheduler_with({"a": agent({"cost_per_day": 0.5}, 0.3, schedules=HOURLY)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=12, minutes=30))
        assert len(agents.turns) == 3  # 0.1 + 0.1 + 0.1, and a fourth might cost 0.3 more
        assert (await spent(scheduler))[0]["cost"] == 0.3


@pytest.mark.promise("X7")
@virtual
async def test_a_run_that_did_nothing_is_free(scene, agents):
    agents.act = lambda turn: Noop("nothing new")
    async with agents.scheduler_with({"a": agent({"runs_per_day": 1}, 0.3, schedules=HOURLY)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=4, minutes=30))
        assert len(agents.turns) >= 4
        assert await spent(scheduler) == ({"runs": 0, "cost": 0.0, "tokens": 0}, {"runs": 0, "cost": 0.0})
        assert await reservations(scheduler) == []


@pytest.mark.promise("X7")
@virtual
async def test_a_failed_run_counts_its_limit_and_so_does_each_retry(scene, agents):
    agents.act = lambda turn: RuntimeError("broken")
    async with agents.scheduler_with({"a": agent({"cost_per_day": 2.0}, 0.5)}) as scheduler:
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await scene.until(at(hours=12))
        assert len(agents.turns) == 4
        assert await spent(scheduler) == ({"runs": 4, "cost": 2.0, "tokens": 0}, {"runs": 0, "cost": 0.0})


@pytest.mark.promise("X7")
@virtual
async def test_a_crash_settles_what_was_reserved_once_at_its_limit(scene, agents):
    agents.act = lambda turn: scene.sleep(36_000)
    async with agents.scheduler_with({"a": agent({"cost_per_day": 1.0}, 0.4, schedules=HOURLY)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=1, minutes=5))
        assert await spent(scheduler) == ({"runs": 0, "cost": 0.0, "tokens": 0}, {"runs": 1, "cost": 0.4})
        await scene.crash(scheduler)
    agents.act = lambda turn: Reply("ok", cost=0.1)
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep(60)
        # Cut off: its limit. Recovered: what it cost.
        assert await spent(scheduler) == ({"runs": 2, "cost": 0.5, "tokens": 0}, {"runs": 0, "cost": 0.0})
        assert await reservations(scheduler) == []
        await scheduler.stop()
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep(60)
        assert (await spent(scheduler))[0] == {"runs": 2, "cost": 0.5, "tokens": 0}


@pytest.mark.promise("X7")
@virtual
async def test_a_run_counts_on_the_day_on_which_it_began(scene, agents):
    agents.act = lambda turn: scene.sleep(1200)
    async with agents.scheduler() as scheduler:
        late = {"late": {"cron": "50 23 * * *", "prompt": "x"}}
        await scheduler.agents.apply({"a": agent({"runs_per_day": 1}, 0.5, schedules=late)})
        await scheduler.start()
        await scene.until(at(days=1, hours=1))
        assert len(agents.turns) == 1
        assert (await spent(scheduler))[0]["runs"] == 0
        day = await scheduler.read(lambda tx: tx.of(Budgets).spent(["fleet", "agent:a"], 20260101))
        assert {scope: (found.runs, found.cost, found.held_runs) for scope, found in day.items()} == {
            "fleet": (1, 500_000, 0), "agent:a": (1, 500_000, 0),
        }  # fmt: skip


@virtual
async def test_beats_and_events_are_not_runs_of_the_agent(scene, agents):
    async with agents.scheduler() as scheduler:
        main = {"note": {"every": "1h", "prompt": "x", "target": "main"}}
        settings = agent({"runs_per_day": 0}, heartbeat={"enabled": True, "every": "1h"}, schedules=main)
        await scheduler.agents.apply({"a": settings})
        await scheduler.start()
        await scene.until(at(hours=3, minutes=30))
        assert agents.turns == []
        outcomes = [run.outcome for name in ("a.note", "a.heartbeat") for run in await scheduler.get_run_log(name)]
        assert set(outcomes) == {"success"}
        shown = await scheduler.agents.get("a")
        assert (shown["events_waiting"], shown["skips"]) == (1, {"over_budget": 1})


@virtual
async def test_old_days_are_pruned(scene, agents):
    from wakeful.kernel.loop.config import Retention

    async with agents.scheduler_with(
        {"a": agent(schedules={"tick": {"every": "6h", "prompt": "x"}})}, retention=Retention(days=2)
    ) as scheduler:
        await scheduler.start()
        await scene.until(at(days=8))
        days = [20260101 + number for number in range(9)]
        found = await scheduler.read(
            lambda tx: {day: tx.of(Budgets).spent(["agent:a"], day)["agent:a"] for day in days}
        )
        kept = [day for day, used in found.items() if used.runs]
        assert len(kept) <= 5
        assert 20260108 in kept
