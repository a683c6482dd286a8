"""A woken agent whose job is disabled or paused: what goes on without it, and what resuming it brings back."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.tables import AgentTables
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.actions.pausing import disable_job

MAIN = {"tell": {"every": "20m", "prompt": "Tell me.", "target": "main"}}
PLAN = {"a": agent(heartbeat={"every": "30m", "prompt": "Look."}, schedules=MAIN)}


async def statuses(scheduler):
    shown = await scheduler.agents.get("a")
    return {one["name"]: one["status"] for one in (*shown["schedules"], shown["heartbeat"])}


@pytest.mark.promise("A4", "X3")
@virtual
async def test_a_disabled_wake_job_disables_nothing_else_and_resuming_it_alone_is_enough(scene, agents):
    async with agents.scheduler_with(PLAN) as scheduler:
        await scheduler.start()
        await scheduler.transact(lambda tx, context: disable_job(tx, context, "a.wake"))
        await scene.until(at(hours=2, minutes=35))
        assert agents.turns == []
        assert await statuses(scheduler) == {"tell": "idle", "heartbeat": "idle"}
        (beat, *_) = await scheduler.get_run_log("a.heartbeat", 1)
        assert (beat.outcome, beat.error or beat.output) == (
            "skipped",
            "a is disabled: resume it (wakeful resume a.wake)",
        )
        (told, *_) = await scheduler.get_run_log("a.tell", 1)
        assert (told.outcome, told.output["woken"]) == ("success", False)
        shown = await scheduler.agents.get("a")
        assert (shown["status"], shown["events_waiting"], shown["skips"]["disabled"]) == ("disabled", 1, 5 + 7)
        with pytest.raises(ScheduleTriggerError, match="a is disabled: resume it first"):
            await scheduler.agents.request_wake("a")
        await scheduler.resume_job("a.wake")
        await scene.sleep(5)
        assert agents.prompts == ["Look.\n\nSystem events:\n- [cron] Tell me."]
        await scene.until(at(hours=3, minutes=5))
        assert len(agents.turns) == 3
        assert (await scheduler.agents.get("a"))["status"] == "idle"


@pytest.mark.parametrize("resume", ["resume_job", "agents.resume"])
@pytest.mark.promise("A4")
@virtual
async def test_an_event_that_was_to_wake_a_paused_agent_is_heard_when_it_is_resumed(scene, agents, resume):
    async with agents.scheduler_with(PLAN) as scheduler:
        await scheduler.start()
        await scheduler.pause_job("a.wake")
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        await scene.sleep(60)
        assert agents.turns == []
        await (scheduler.resume_job("a.wake") if resume == "resume_job" else scheduler.agents.resume("a"))
        await scene.sleep(5)
        assert agents.prompts == ["Look.\n\nSystem events:\n- [event] The door is open."]
        assert (await scheduler.agents.get("a"))["events_waiting"] == 0


@pytest.mark.parametrize("resume", ["resume_job", "agents.resume"])
@pytest.mark.promise("A4")
@virtual
async def test_an_event_that_was_to_wake_a_disabled_agent_is_heard_when_it_is_resumed(scene, agents, resume):
    async with agents.scheduler_with(PLAN) as scheduler:
        await scheduler.start()
        await scheduler.transact(lambda tx, context: disable_job(tx, context, "a.wake"))
        left = await scheduler.agents.add_event("a", "The door is open.", wake=True)
        assert left["waiting"] == 1
        await scene.sleep(60)
        shown = await scheduler.agents.get("a")
        assert (agents.turns, shown["events_waiting"], shown["skips"]["disabled"]) == ([], 1, 1)
        await (scheduler.resume_job("a.wake") if resume == "resume_job" else scheduler.agents.resume("a"))
        await scene.sleep(5)
        assert agents.prompts == ["Look.\n\nSystem events:\n- [event] The door is open."]


@pytest.mark.promise("A3", "A4")
@virtual
async def test_an_event_is_also_heard_where_the_agent_is_paused_and_resumed_during_one_run(scene, agents):
    started = asyncio.Event()

    async def long(turn):
        started.set()
        await scene.sleep(60)

    agents.act = long
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await started.wait()
        await scheduler.pause_job("a.wake")
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        await scheduler.resume_job("a.wake")
        await scene.sleep(300)
        assert (len(agents.turns), agents.most_busy) == (2, 1)
        assert "The door is open." in agents.prompts[1]


@virtual
async def test_resuming_an_agent_for_which_nothing_waits_calls_nobody(scene, agents):
    async with agents.scheduler_with(PLAN) as scheduler:
        await scheduler.start()
        for name in ("a.wake", "a.heartbeat"):
            await scheduler.pause_job(name)
            await scheduler.resume_job(name)
        await scene.sleep(60)
        assert agents.turns == []
        assert await scheduler.read(lambda tx: tx.of(AgentTables).wake(tx.jobs.by_name("a.wake")[0].id)) is None


@pytest.mark.promise("H7")
@virtual
async def test_a_schedule_of_the_main_session_is_disabled_by_its_source_after_a_day_of_trouble_alone(scene, agents):
    work = {"source": "directory", "path": "/proc/1/no/such/inbox"}
    check = {"check": {"interval": "5h", "work": True, "prompt": "Work.", "target": "main"}}
    beat = {"every": "10d"}
    async with agents.scheduler_with({"a": agent(heartbeat=beat, work=work, schedules=check)}) as scheduler:
        spans = [
            (await scheduler.get_job(f"a.{name}")).options["error_span"] for name in ("check", "heartbeat", "wake")
        ]
        assert spans == ["1d"] * 3
        await scheduler.start()
        await scene.until(at(hours=21))
        runs = await scheduler.get_run_log("a.check", 10)
        assert [run.outcome for run in runs] == ["error"] * 5
        assert (await scheduler.agents.get("a"))["schedules"][0]["status"] == "idle"
        await scene.until(at(hours=26))
        assert (await scheduler.agents.get("a"))["schedules"][0]["status"] == "disabled"


@pytest.mark.promise("A4", "X15")
@pytest.mark.parametrize("stopped", ["pause", "remove"])
@virtual
async def test_who_undoes_that_an_agent_was_stopped_lets_it_hear_what_happened_meanwhile(scene, agents, stopped):
    async def fail_later(turn):
        await scene.sleep("1m")
        return RuntimeError("broken")

    agents.act = fail_later
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        await scene.sleep(5)
        await (scheduler.agents.pause("a") if stopped == "pause" else scheduler.agents.apply({}))
        await scene.sleep("2m")
        assert len(agents.turns) == 1
        await scheduler.undo()
        await scene.sleep(5)
        assert ["The door is open." in prompt for prompt in agents.prompts] == [True, True]
