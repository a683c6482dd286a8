"""Active hours of heartbeats: they hold for every call whose only cause is the interval, whatever delayed it."""

from __future__ import annotations

import json

import pytest

from tests.agents.virtual_agents import PLACE, agent
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.limits.holding import meet_limit
from wakeful.kernel.rules.outcome import Defer
from wakeful.surfaces.cli.times import next_starts
from wakeful.triggers.moments import to_ms

pytestmark = pytest.mark.promise("A2")

HOURS = {"start": "01:00", "end": "23:00", "timezone": "UTC"}
BEAT = {"every": "30m", "prompt": "Look.", "active_hours": HOURS}
PATIENT = {"python": PLACE, "timeout": "10h"}
EVENING, NIGHT, OPENS = at(hours=22), at(hours=23), at(days=1, hours=1)


def woken(agents):
    """When the woken agent was called."""
    pairs = zip(agents.turns, agents.times, strict=True)
    return [when.replace(microsecond=0) for turn, when in pairs if turn.schedule == "wake"]


def failing(scene, agents):
    agents.act = lambda turn: RuntimeError("broken")
    return agent(heartbeat=BEAT)


def put_off(scene, agents):
    later = at(hours=23, minutes=30)
    agents.act = lambda turn: Defer(later, "rate limit") if scene.now < later else "Fine."
    return agent(heartbeat=BEAT)


def at_a_limit(scene, agents):
    return agent(runner={"python": PLACE, "account": "work"}, heartbeat=BEAT)


def busy(scene, agents):
    agents.act = lambda turn: scene.sleep("70m") if turn.schedule == "long" else "Fine."
    long = {"long": {"at": "2026-01-01T22:20:00", "prompt": "x"}}
    return agent(runner=PATIENT, heartbeat=BEAT, schedules=long)


def over_budget(scene, agents):
    return agent(heartbeat=BEAT, budget={"runs_per_day": 0})


@pytest.mark.parametrize("cause", [failing, put_off, at_a_limit, busy, over_budget])
@pytest.mark.promise("A12")
@virtual
async def test_what_keeps_a_beat_from_its_hours_leaves_it_waiting_for_the_next_ones(scene, agents, cause):
    plan = {"a": cause(scene, agents)}
    await scene.until(EVENING)
    async with agents.scheduler_with(plan) as scheduler:
        if cause is at_a_limit:
            until = int(at(hours=23, minutes=30).timestamp() * 1000)
            await scheduler.transact(lambda tx, _: meet_limit(tx, "work", until, "used up"))
        await scheduler.start()
        await scene.until(at(days=1, minutes=59))
        assert [when for when in woken(agents) if when >= NIGHT] == []
        assert (await scheduler.explain("a.wake")).facts["why_not_now"] == "outside_active_hours"
        agents.act = lambda turn: "Fine."
        if cause is over_budget:
            await scheduler.agents.apply({"a": agent(heartbeat=BEAT)})
        before = len(woken(agents))
        await scene.until(at(days=1, hours=1, minutes=10))
        assert woken(agents)[before:] == [OPENS]  # one, for all that waited


@pytest.mark.promise("A12", "D5")
@virtual
async def test_a_beat_over_budget_waits_for_the_next_day_and_its_hours(scene, agents):
    await scene.until(EVENING)
    async with agents.scheduler_with({"a": agent(heartbeat=BEAT, budget={"runs_per_day": 1})}) as scheduler:
        await scheduler.start()
        await scene.until(at(days=1, hours=1, minutes=10))
        assert woken(agents) == [at(hours=22, minutes=30), OPENS]


@pytest.mark.promise("A12")
@virtual
async def test_a_beat_that_was_cut_off_goes_on_when_its_hours_begin(scene, agents):
    agents.act = lambda turn: scene.sleep("10h")
    await scene.until(EVENING)
    async with agents.scheduler_with({"a": agent(runner=PATIENT, heartbeat=BEAT)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=22, minutes=40))
        await scene.crash(scheduler)
    await scene.until(at(hours=23, minutes=30))
    agents.act = lambda turn: "Fine."
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(days=1, hours=1, minutes=10))
        assert woken(agents) == [at(hours=22, minutes=30), OPENS]
        assert "Your last run was cut off" in agents.prompts[1]


@pytest.mark.parametrize("reason", ["cron", "message", "manual", "hook"])
@pytest.mark.promise("A1")
@virtual
async def test_whoever_else_asks_for_a_wake_that_waits_for_its_hours_gets_it_at_once(scene, agents, reason):
    agents.act = lambda turn: RuntimeError("broken") if len(agents.turns) == 1 else "Fine."
    await scene.until(at(hours=22, minutes=59, seconds=59))
    async with agents.scheduler_with({"a": agent(heartbeat=BEAT)}) as scheduler:
        await scheduler.start()
        await scheduler.agents.request_wake("a", "interval")  # fails, and is tried again a second later
        await scene.sleep("10m")
        assert len(agents.turns) == 1
        asked = await scheduler.agents.request_wake("a", reason)
        assert (asked["coalesced"], asked["reason"], asked["waits_for"]) == (True, reason, None)
        await scene.sleep(60)
        assert (len(agents.turns), agents.times[1]) == (2, at(hours=23, minutes=9, seconds=59.25))
        assert (await scheduler.explain("a.wake")).facts["why_not_now"] == "unsupported_type"


@virtual
async def test_a_person_starts_a_woken_agent_or_its_heartbeat_by_hand_whatever_waits_for_its_hours(scene, agents):
    agents.act = lambda turn: RuntimeError("broken") if len(agents.turns) == 1 else "Fine."
    await scene.until(at(hours=22, minutes=59, seconds=59))
    async with agents.scheduler_with({"a": agent(heartbeat=BEAT)}) as scheduler:
        await scheduler.start()
        await scheduler.agents.request_wake("a", "interval")
        await scene.sleep("10m")
        await scheduler.run_job("a.wake")
        await scene.sleep(60)
        assert len(agents.turns) == 2
        await scheduler.run_job("a.heartbeat")
        await scene.sleep(60)
        assert len(agents.turns) == 3
        log = await scheduler.get_run_log("a.wake", 10)
        assert [run.output["reason"] for run in log if run.outcome == "success"] == ["manual", "manual"]
        await scene.until(at(days=1, minutes=59))
        assert len(agents.turns) == 3


@virtual
async def test_what_others_asked_for_is_tried_again_at_any_hour_also_where_a_beat_joined_it(scene, agents):
    agents.act = lambda turn: RuntimeError("broken") if len(agents.turns) < 4 else "Fine."
    async with agents.scheduler_with({"a": agent(heartbeat=BEAT)}) as scheduler:
        await scene.until(NIGHT)
        await scheduler.start()
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        await scene.sleep(10)  # it has failed twice, and waits for its third attempt
        asked = await scheduler.agents.request_wake("a", "interval")
        assert asked["coalesced"]
        await scene.sleep("10m")
        assert len(agents.turns) == 4
        assert (await scheduler.agents.get("a"))["events"] == []


@virtual
async def test_a_beat_that_comes_during_a_run_does_not_bind_what_that_run_was_for_to_its_hours(scene, agents):
    async def fails_late(turn):
        await scene.sleep(30)
        raise RuntimeError("broken")

    agents.act = fails_late
    async with agents.scheduler_with({"a": agent(heartbeat=BEAT)}) as scheduler:
        await scene.until(NIGHT)
        await scheduler.start()
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        await scene.sleep(10)
        await scheduler.agents.request_wake("a", "interval")
        agents.act = lambda turn: "Fine."
        await scene.sleep(60)
        assert "The door is open." in agents.prompts[1]


@virtual
async def test_an_interval_wake_outside_the_hours_says_when_they_begin(scene, agents):
    async with agents.scheduler_with({"a": agent(heartbeat=BEAT)}) as scheduler:
        await scene.until(NIGHT)
        await scheduler.start()
        asked = await scheduler.agents.request_wake("a", "interval")
        assert (asked["waits_for"], asked["waits_until"]) == ("outside_active_hours", "2026-01-02T01:00:00Z")
        await scene.sleep(60)
        assert agents.turns == []
        explained = await scheduler.explain("a.wake")
        assert "A wake (interval) waits for the active hours of a.heartbeat" in str(explained)
        assert {skip["reason"]: skip["count"] for skip in explained.facts["skips"]} == {"outside_active_hours": 1}
        assert (await scheduler.agents.request_wake("a", "cron"))["waits_for"] is None


@virtual
async def test_hours_without_a_zone_are_those_of_the_default_zone_and_are_stored_with_it(scene, agents):
    hours = {"start": "09:00", "end": "22:00"}
    places = {"a": hours, "b": {**hours, "timezone": "Europe/Berlin"}}
    plan = {name: agent(heartbeat={**BEAT, "active_hours": own}) for name, own in places.items()}
    async with agents.scheduler(timezone="Asia/Shanghai") as scheduler:
        await scheduler.agents.apply(plan)
        stored = [json.loads((await scheduler.read(lambda tx, n=n: tx.jobs.by_name(n)))[0].payload) for n in
                  ("a.heartbeat", "b.heartbeat")]  # fmt: skip
        zones = [one["active_hours"]["timezone"] for one in stored]
        assert zones == ["Asia/Shanghai", "Europe/Berlin"]
        await scheduler.start()
        await scene.until(at(hours=1, minutes=10))
        asked = [(t.agent, w.replace(microsecond=0)) for t, w in zip(agents.turns, agents.times, strict=True)]
        assert asked == [("a", at(hours=1))]  # nine o'clock there
    async with agents.scheduler(timezone="UTC") as scheduler:  # another default does not move what is stored
        kept = json.loads((await scheduler.read(lambda tx: tx.jobs.by_name("a.heartbeat")))[0].payload)
        assert kept["active_hours"]["timezone"] == "Asia/Shanghai"


@pytest.mark.promise("H3")
@virtual
async def test_in_closed_hours_every_view_names_the_beat_that_comes_when_they_begin(scene, agents):
    beat = {**BEAT, "every": "7m", "active_hours": {"start": "09:00", "end": "09:20", "timezone": "UTC"}}
    other = agent(schedules={"late": {"every": "11h", "prompt": "x"}})
    async with agents.scheduler_with({"a": agent(heartbeat=beat), "b": other}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=1))
        job = await scheduler.get_job("a.heartbeat")
        shown = job.upcoming(5)
        opens = at(hours=9)
        assert (shown[0], job.next_run_at) == (opens, opens)
        assert [one.next_run_at for one in await scheduler.list_jobs() if one.name == "a.heartbeat"] == [opens]
        assert [(one.name, ms) for one, ms in await next_starts(scheduler, 1)] == [("a.heartbeat", to_ms(opens))]
        assert (await scheduler.agents.get("a"))["next_run_at"] == "2026-01-01T09:00:00Z"
        assert next(one["next_run_at"] for one in await scheduler.agents.list()) == "2026-01-01T09:00:00Z"
        explained = str(await scheduler.explain("a.heartbeat"))
        assert "It will run next at 2026-01-01 09:00:00" in explained
        assert "the next beat waits until 2026-01-01 09:00:00" in explained
        await scene.until(at(days=1, hours=10))
        beats = [moment.replace(microsecond=0) for moment in woken(agents)]
        assert beats[:5] == [moment.replace(microsecond=0) for moment in shown], "what is shown is what comes"
