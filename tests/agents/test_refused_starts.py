"""Every reason for which a start is refused: it arises in a running engine, counts once per slot, and has its name."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from tests.kernel.scene import at, virtual
from tests.workflows.mailroom import Mailroom, fails
from wakeful import After, Every, LogicError, Manual, Once, ScheduleTriggerError, Webhook
from wakeful.domains.agents import schedules
from wakeful.domains.agents.limits.holding import meet_limit
from wakeful.domains.agents.schedules import ScheduleSpec
from wakeful.domains.agents.task import Task
from wakeful.errors import StartRefused
from wakeful.kernel.context import Rights

pytestmark = pytest.mark.promise("D5", "X3")

HOURLY = Every("1h")
HOURS = {"start": "09:00", "end": "12:00", "timezone": "UTC"}


class Refused(NamedTuple):
    """How the job `name` comes to be refused, and what is then on record at two moments."""

    live: object  # an async function of the scene and the running scheduler
    name: str = "a"
    count: int = 1
    now: str | None = ""  # what `explain` answers to "why not now"; the reason itself where left out
    ledger: str | None = "waiting"  # where the ledger counts the slot
    options: dict | None = None  # of the scheduler


def asleep(scene, interval):
    async def act(run):
        await scene.sleep(interval)

    return act


async def already_running(scene, scheduler):
    scene.act = asleep(scene, "150m")
    await scheduler.add_job("a", HOURLY, timeout="20h")
    await scene.until(at(1, 30))
    with pytest.raises(ScheduleTriggerError, match="already running") as refused:
        await scheduler.run_job("a")
    assert refused.value.context["reason"] == "already_running"
    assert (await scheduler.explain("a")).facts["why_not_now"] == "already_running"
    await scene.until(at(3, 31))


async def at_capacity(scene, scheduler):
    scene.act = asleep(scene, "10h")
    await scheduler.add_job("z", Once(at(0, 30)), lanes={"gpu": 1}, timeout="20h")
    await scheduler.add_job("a", HOURLY, lanes={"gpu": 1})
    await scene.until(at(1, 30))


async def outside_active_hours(scene, scheduler):
    _ = VirtualAgents(scene)
    beat = {"enabled": True, "every": "7h", "active_hours": HOURS}
    await scheduler.agents.apply({"a": agent(heartbeat=beat)})
    await scene.until(at(7, 30))


async def below_min_interval(scene, scheduler):
    await scheduler.add_job("a", Every("40m"), bounded=True, source="api")
    await scene.until(at(0, 50))


async def over_budget(scene, scheduler):
    _ = VirtualAgents(scene)
    schedules = {"tick": {"every": "1h", "prompt": "x"}}
    await scheduler.agents.apply({"a": agent(budget={"runs_per_day": 1}, schedules=schedules)})
    await scene.until(at(2, 30))


async def paused(scene, scheduler):
    await scheduler.add_job("z", HOURLY)
    await scheduler.add_job("a", After("z"))
    await scheduler.pause_job("a")
    await scene.until(at(1, 30))


async def backing_off(scene, scheduler):
    async def act(run):
        if run.slot == at(0, 30):
            raise RuntimeError("no money")

    scene.act = act
    await scheduler.add_job("a", Every("30m"), backoff=["90m"])
    await scene.until(at(1, 45))
    assert (await scheduler.explain("a")).facts["why_not_now"] == "backing_off"
    await scene.until(at(2, 5))


async def no_handler(scene, scheduler):
    await scheduler.add_job("a", HOURLY, kind="rare")
    await scene.until(at(1, 30))


async def no_node(scene, scheduler):
    await scheduler.add_job("a", HOURLY, labels=["gpu"])
    await scene.until(at(1, 30))


async def rate_limited(scene, scheduler):
    runner = {"start": ["true"], "account": "work"}
    await scheduler.agents.apply({"a": {"runner": runner, "schedules": {"tick": {"every": "1h", "prompt": "x"}}}})
    until = int(at(9).timestamp() * 1000)
    await scheduler.transact(lambda tx, _: meet_limit(tx, "work", until, "usage limit"))
    await scene.until(at(1, 30))


async def held(scene, scheduler):
    await scheduler.add_job("a", HOURLY)
    await scheduler.server_side.hold_all("moving", Rights("ada", via="cli"))
    await scene.until(at(1, 30))


async def blocked(scene, scheduler):
    room = Mailroom(scene)
    scheduler.add_workflow(room.workflow())
    await scheduler.start()
    await scene.sleep("1m")
    room.mails, room.act["prepare"] = ["m"], fails(LogicError("wrong code"))
    await scene.sleep("30m")


TABLE = {
    "already_running": Refused(already_running, count=2, now="not_due", ledger="passed_over"),
    "at_capacity": Refused(at_capacity),
    "outside_active_hours": Refused(outside_active_hours, "a.heartbeat"),
    "below_min_interval": Refused(
        below_min_interval, now="not_due", ledger="passed_over", options={"min_interval": "1h"}
    ),
    "over_budget": Refused(over_budget, "a.tick", now="not_due", ledger="passed_over"),
    "paused": Refused(paused, now="unsupported_type", ledger=None),
    "backing_off": Refused(backing_off, count=2, now="not_due", ledger="passed_over"),
    "no_handler": Refused(no_handler),
    "no_node": Refused(no_node),
    "rate_limited": Refused(rate_limited, "a.tick"),
    "held": Refused(held),
    "blocked": Refused(blocked, "mailroom.poll"),
}


@pytest.mark.parametrize("reason", TABLE)
@virtual
async def test_a_refused_start_is_counted_once_per_slot_under_its_reason(scene, reason):
    case = TABLE[reason]
    async with scene.scheduler(**(case.options or {})) as scheduler:
        _ = scheduler.agents
        if reason != "blocked":
            await scheduler.start()
        await case.live(scene, scheduler)
        await scene.sleep("5m")  # sweeps and turns look at the same slot again
        explained = await scheduler.explain(case.name)
        counts = {skip["reason"]: skip["count"] for skip in explained.facts["skips"]}
        assert counts[reason] == case.count
        assert sum(counts.values()) == case.count + (reason == "blocked")  # it was at_capacity when it was deployed
        assert explained.facts["why_not_now"] == (case.now or reason)
        assert f"refused as {reason}" in str(explained)
        tally = (await scheduler.get_ledger(case.name, since="1d")).total
        if case.ledger is not None:
            assert getattr(tally, case.ledger) == {reason: case.count}
            assert (await scheduler.get_ledger(since="1d")).jobs[case.name] == tally


@virtual
async def test_what_becomes_due_while_the_only_server_stops_is_refused_as_draining_and_caught_up_later(scene):
    scene.act = asleep(scene, "20m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("long", Once(at(0, 55)))
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.until(at(0, 56))
        await scheduler.stop(timeout=3600)
        explained = await scheduler.explain("a")
        assert [(skip["reason"], skip["count"]) for skip in explained.facts["skips"]] == [("draining", 1)]
        assert "1 start refused as draining: no node was starting runs (the server was stopping)" in str(explained)
        assert explained.facts["why_not_now"] == "no_node"
        scene.act = None
        await scheduler.start()
        await scene.sleep("1m")
        assert [run.slot for run in scene.of("a")] == [at(1)]
        assert (await scheduler.explain("a")).facts["skips"][0]["count"] == 1


@pytest.mark.parametrize("scene", ["postgres"], indirect=True)
@virtual
async def test_what_becomes_due_while_every_node_drains_is_refused_as_draining_once(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scheduler.drain_node("here")
        await scene.until(at(1, 10))
        explained = await scheduler.explain("a")
        assert [(skip["reason"], skip["count"]) for skip in explained.facts["skips"]] == [("draining", 1)]
        assert "It has been due since 2026-01-01 01:00:00 UTC and waits: every node is draining" in str(explained)
        assert explained.facts["why_not_now"] == "draining"
        assert (await scheduler.get_ledger("a", since="1d")).total.waiting == {"draining": 1}
        assert (await scheduler.get_ledger(since="1d")).total.waiting == {"draining": 1}
        assert "waits: no node was starting runs" in (await scheduler.get_slot("a", at(1))).sentence
        await scheduler.drain_node("here", drain=False)
        await scene.until(at(2, 30))
        assert [run.slot for run in scene.of("a")] == [at(2)]  # it hears of that with its beat, and catches up once
        explained = await scheduler.explain("a")
        assert (explained.facts["skips"][0]["count"], explained.facts["why_not_now"]) == (1, "not_due")


@virtual
async def test_what_is_not_due_disabled_or_never_by_time_is_answered_when_asked(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scheduler.add_job("ahead", HOURLY)
        await scheduler.add_job("off", HOURLY)
        await scheduler.update_job("off", enabled=False)
        await scheduler.add_job("over", Once(at(0, 1)))
        await scheduler.add_job("quiet", HOURLY)
        await scheduler.pause_job("quiet")
        await scheduler.add_job("hook", Webhook())
        await scheduler.add_job("by_hand", Manual())
        await scheduler.add_job("next", After("ahead"))
        await scene.until(at(0, 2))
        names = ("ahead", "off", "over", "quiet", "hook", "by_hand", "next")
        found = [await scheduler.explain(name) for name in names]
        assert [explained.facts["why_not_now"] for explained in found] == [
            *("not_due", "disabled", "disabled", "paused"),
            *("unsupported_type", "unsupported_type", "unsupported_type"),
        ]
        assert all(explained.facts["skips"] == [] for explained in found)


@virtual
async def test_a_start_that_waits_for_another_reason_than_first_says_the_one_that_counts_now(scene):
    async with scene.scheduler() as scheduler:
        _ = scheduler.agents
        await scheduler.start()
        await scheduler.server_side.hold_all(None, Rights("ada", via="cli"))
        await rate_limited(scene, scheduler)
        assert (await scheduler.explain("a.tick")).facts["why_not_now"] == "held"
        await scheduler.server_side.release_all(Rights("ada", via="cli"))
        await scene.sleep("2m")
        explained = await scheduler.explain("a.tick")
        assert [(skip["reason"], skip["count"]) for skip in explained.facts["skips"]] == [("held", 1)]
        assert explained.facts["why_not_now"] == "rate_limited"
        assert (await scheduler.agents.get("a"))["skips"] == {"held": 1}
        assert (await scheduler.get_ledger("a.tick", since="1d")).total.waiting == {"rate_limited": 1}


@virtual
async def test_a_start_by_hand_over_budget_counts_whoever_asks_for_it(scene, agents):
    ada = Rights("ada", admin_kinds=True)
    async with agents.scheduler_with({"a": agent(budget={"runs_per_day": 1})}) as scheduler:
        spec = ScheduleSpec(Task("Count."), {"type": "cron", "expression": "0 9 * * *"}, None, "a")
        await scheduler.transact(lambda tx, context: schedules.put(tx, context, "tally", spec), rights=ada)
        await scheduler.start()

        async def start():
            return await scheduler.transact(lambda tx, context: schedules.start(tx, context, "tally"), rights=ada)

        run, _ = await start()
        await scheduler.wait_for_run(run)
        for times in (1, 2):
            with pytest.raises(StartRefused):
                await start()
            [skip] = (await scheduler.explain("tally")).facts["skips"]
            assert (skip["reason"], skip["count"]) == ("over_budget", times)
