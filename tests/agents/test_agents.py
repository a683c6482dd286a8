"""Agents in virtual time on both stores: schedules, sessions, wakes, system events, heartbeats, limits."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.virtual_agents import PLACE, agent
from tests.kernel.scene import at, virtual
from wakeful import InvalidJob
from wakeful.domains.agents import Reply
from wakeful.domains.agents.limits.holding import meet_limit
from wakeful.domains.agents.limits.rules import RateLimit
from wakeful.domains.agents.limits.tables import RateLimits
from wakeful.domains.agents.tables import AgentTables
from wakeful.errors import AgentNotFound
from wakeful.kernel.actions.pausing import disable_job

BEAT = {"every": "30m", "prompt": "Look around."}


async def runs(scheduler, job):
    return list(reversed(await scheduler.get_run_log(job, 100)))


@virtual
async def test_an_isolated_schedule_asks_the_agent_in_a_session_of_its_own(scene, agents):
    agents.act = lambda turn: Reply(f"Done {turn.prompt}", session=turn.session or f"s-{turn.schedule}", cost=0.25)
    async with agents.scheduler() as scheduler:
        schedules = {name: {"every": "1h", "prompt": f"{name}!"} for name in ("one", "two")}
        await scheduler.agents.apply({"a": agent(schedules=schedules)})
        await scheduler.start()
        await scene.until(at(hours=2, minutes=30))
        first, second = await runs(scheduler, "a.one")
        assert first.output == {
            "reply": "Done one!", "session": "s-one", "cost": 0.25, "tokens_in": None, "tokens_out": None,
            "outcome": "sent",
        }  # fmt: skip
        asked = [(turn.schedule, turn.session) for turn in agents.turns]
        assert sorted(asked[:2]) == [("one", None), ("two", None)]
        assert sorted(asked[2:]) == [("one", "s-one"), ("two", "s-two")]
        shown = await scheduler.agents.get("a")
        assert [kept["name"] for kept in shown["sessions"]] == ["a/one", "a/two"]
        assert await scheduler.agents.reset_session("a") == 2
        assert second.outcome == "success"


@virtual
async def test_ephemeral_sessions_are_new_and_named_ones_are_shared(scene, agents):
    agents.act = lambda turn: Reply("ok", session=turn.session or f"new-{len(agents.turns)}")
    async with agents.scheduler() as scheduler:
        often = {"tick": {"every": "1h", "prompt": "x"}}
        shared = {name: agent(session="team", schedules=often) for name in ("b", "c")}
        await scheduler.agents.apply({"a": agent(session="ephemeral", schedules=often), **shared})
        await scheduler.start()
        await scene.until(at(hours=3, minutes=30))
        of_a = [turn.session for turn in agents.turns if turn.agent == "a"]
        others = {turn.session for turn in agents.turns if turn.agent != "a"}
        assert of_a == [None, None, None]
        assert len(others - {None}) == 1
        assert await scheduler.read(lambda tx: tx.of(AgentTables).sessions_of("a", None)) == []  # none is kept
        assert [turn.session for turn in agents.turns if turn.agent != "a"].count(None) == 1


@pytest.mark.promise("A1")
@virtual
async def test_requests_within_250_ms_become_one_run_under_the_most_important_reason(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        first = await scheduler.agents.request_wake("a", "interval")
        await scene.sleep(0.05)
        second = await scheduler.agents.request_wake("a", "cron")
        assert (first["coalesced"], second["coalesced"], second["reason"]) == (False, True, "cron")
        assert first["wake_at"] == second["wake_at"] == "2026-01-01T00:00:00.250Z"
        await scene.sleep(10)
        (run,) = await runs(scheduler, "a.wake")
        assert (run.reason, run.output["reason"], len(agents.turns)) == ("cron", "cron", 1)
        assert agents.times == [at(seconds=0.25)]


@pytest.mark.promise("A3", "D6")
@virtual
async def test_requests_during_a_run_are_kept_and_become_one_run_after_it(scene, agents):
    agents.act = lambda turn: scene.sleep(60)
    async with agents.scheduler_with({"a": agent(schedules={"tick": {"every": "1h", "prompt": "x"}})}) as scheduler:
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await scene.sleep(10)
        for reason in ("interval", "hook", "cron"):
            await scheduler.agents.request_wake("a", reason)
        await scheduler.run_job("a.tick")
        await scene.sleep(600)
        assert [run.reason for run in await runs(scheduler, "a.wake")] == ["manual", "hook"]
        assert len(agents.turns) == 3
        assert agents.most_busy == 1  # scheduled, manual and woken runs together


@pytest.mark.promise("A3", "A4")
@virtual
async def test_a_run_that_fails_is_tried_after_a_second_then_by_the_ladder_with_its_events(scene, agents):
    agents.act = lambda turn: RuntimeError("broken") if len(agents.turns) < 4 else "Better."
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        await scheduler.agents.add_event("a", "The door is open.", source="house", wake=True)
        await scene.until(at(minutes=10))
        gaps = [(later - before).total_seconds() for before, later in zip(agents.times, agents.times[1:], strict=False)]
        assert [round(gap) for gap in gaps] == [1, 30, 60]
        assert all("- [house] The door is open." in prompt for prompt in agents.prompts)
        assert [run.reason for run in await runs(scheduler, "a.wake")] == ["hook", "retry", "retry", "retry"]
        assert (await scheduler.agents.get("a"))["events"] == []


@pytest.mark.promise("A4")
@virtual
async def test_events_survive_a_crash_and_are_heard_once(scene, agents):
    started = asyncio.Event()

    async def hang(turn):
        started.set()
        await scene.sleep(3600)

    agents.act = hang
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        await scheduler.agents.add_event("a", "first", wake=True)
        await started.wait()
        await scheduler.agents.add_event("a", "second")
        await scene.crash(scheduler)
    agents.act = lambda turn: "Heard."
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep(60)
        assert len(agents.turns) == 2
        assert "Your last run was cut off" in agents.prompts[1]
        assert agents.prompts[1].endswith("System events:\n- [event] first\n- [event] second")
        assert (await scheduler.agents.get("a"))["events_waiting"] == 0


@pytest.mark.promise("A1", "A3")
@virtual
async def test_a_run_that_was_cut_off_twice_and_what_was_asked_for_meanwhile_become_one_run(scene, agents):
    async def hang(turn):
        started.set()
        await scene.sleep(3600)

    agents.act = hang
    for text in ("first", "second"):
        started = asyncio.Event()
        async with agents.scheduler_with({"a": agent()}) as scheduler:
            await scheduler.start()
            await scheduler.agents.add_event("a", text, wake=text == "first")
            await started.wait()
            if text == "second":  # what was cut off twice is put off, and this is not
                await scheduler.agents.add_event("a", "third", wake=True)
            await scene.crash(scheduler)
    agents.act = lambda turn: "Heard."
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(hours=3))
        assert agents.prompts[2].endswith("System events:\n- [event] first\n- [event] second\n- [event] third")
        assert len(agents.turns) == 3
        outcomes = [run.outcome for run in await runs(scheduler, "a.wake")]
        assert sorted(outcomes) == ["crashed", "crashed", "noop", "success"]


@pytest.mark.promise("A4", "A5")
@virtual
async def test_a_schedule_with_target_main_leaves_an_event_and_wakes_the_agent(scene, agents):
    async with agents.scheduler() as scheduler:
        schedules = {"check": {"every": "1h", "prompt": "Check the mail.", "target": "main"}}
        await scheduler.agents.apply({"a": agent(heartbeat={"enabled": False, **BEAT}, schedules=schedules)})
        await scheduler.start()
        await scene.until(at(hours=2, minutes=30))
        assert agents.prompts == ["Look around.\n\nSystem events:\n- [cron] Check the mail."] * 2
        assert [run.output["outcome"] for run in await runs(scheduler, "a.wake")] == ["sent", "sent"]
        assert {turn.schedule for turn in agents.turns} == {"wake"}


@pytest.mark.promise("A4")
@virtual
async def test_an_events_key_replaces_and_at_most_fifty_wait(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.agents.add_event("a", "old", context_key="k")
        assert (await scheduler.agents.add_event("a", "new", context_key="k"))["waiting"] == 1
        for number in range(60):
            last = await scheduler.agents.add_event("a", f"event {number}")
        assert last["waiting"] == 50
        events = (await scheduler.agents.get("a"))["events"]
        assert (events[0]["text"], events[-1]["text"]) == ("event 10", "event 59")


@pytest.mark.promise("A2", "A11", "A12")
@virtual
async def test_a_heartbeat_outside_its_hours_waits_for_them_and_keeps_its_grid(scene, agents):
    hours = {"start": "09:00", "end": "22:00", "timezone": "UTC"}
    async with agents.scheduler() as scheduler:
        beat = {"enabled": True, "every": "7h", "active_hours": hours}
        await scheduler.agents.apply({"a": agent(heartbeat=beat), "b": agent(heartbeat={"enabled": True})})
        await scheduler.start()
        await scheduler.agents.request_wake("a", "cron")  # hours hold for heartbeats alone
        await scene.until(at(days=1))
        of_a = [when for turn, when in zip(agents.turns, agents.times, strict=True) if turn.agent == "a"]
        # The grid is 07:00, 14:00, 21:00: the first waits for the opening, the others come at their time.
        assert [when.replace(microsecond=0) for when in of_a] == [at(), at(hours=9), at(hours=14), at(hours=21)]
        assert (await scheduler.agents.get("a"))["skips"] == {"outside_active_hours": 1}
        assert sum(turn.agent == "b" for turn in agents.turns) in (47, 48)
        prompt = "Read HEARTBEAT.md and check if anything needs attention. Reply HEARTBEAT_OK if nothing to report."
        assert {turn.prompt for turn in agents.turns} == {prompt}


@pytest.mark.promise("A12")
@virtual
async def test_a_beat_of_a_busy_agent_waits_for_it_and_the_grid_stays(scene, agents):
    agents.act = lambda turn: scene.sleep(45 * 60 if turn.schedule == "long" else 1)
    async with agents.scheduler() as scheduler:
        schedules = {"long": {"at": "2026-01-01T00:20:00", "prompt": "x"}}
        patient = {"python": PLACE, "timeout": "2h"}
        await scheduler.agents.apply({"a": agent(runner=patient, heartbeat={"every": "30m"}, schedules=schedules)})
        await scheduler.start()
        await scene.until(at(hours=2))
        beats = [w for t, w in zip(agents.turns, agents.times, strict=True) if t.schedule == "wake"]
        # Beats at 00:30 and 01:00 wait for 01:05, where the agent is free; the next is at 01:30.
        assert [when.replace(microsecond=0) for when in beats] == [at(hours=1, minutes=5), at(hours=1, minutes=30)]


@virtual
async def test_an_empty_heartbeat_file_calls_no_agent_unless_an_event_waits(scene, agents, tmp_path):
    file = tmp_path / "HEARTBEAT.md"
    file.write_text("# Things to look at\n\n-\n")
    async with agents.scheduler() as scheduler:
        beat = {"every": "30m", "prompt": "Look.", "prompt_file": "HEARTBEAT.md"}
        await scheduler.agents.apply({"a": agent(heartbeat=beat)}, folder=tmp_path)
        await scheduler.start()
        await scene.until(at(minutes=45))
        (run,) = await runs(scheduler, "a.wake")
        assert (run.outcome, agents.turns) == ("noop", [])
        await scheduler.agents.request_wake("a", "manual")  # who asks for it is not put off by an empty file
        await scene.sleep(1)
        assert len(agents.turns) == 1
        agents.turns.clear()
        file.write_text("# Things\n- the mail")
        await scene.until(at(minutes=75))
        assert agents.prompts == ["Look.\n\n# Things\n- the mail"]


@virtual
async def test_of_two_runs_that_meet_a_limit_the_later_end_counts(scene, agents):
    def limits(*ends):
        return lambda tx, _: [meet_limit(tx, "work", tx.now + end, f"for {end}") for end in ends]

    async with agents.scheduler() as scheduler:
        began = scene.clock.now()
        await scheduler.transact(limits(5000, 2000))
        found = await scheduler.read(lambda tx: tx.of(RateLimits).of("work"))
        assert found == RateLimit("work", began + 5000, "for 5000", began)
        await scene.sleep(1)
        await scheduler.transact(limits(9000))
        found = await scheduler.read(lambda tx: tx.of(RateLimits).of("work"))
        assert found == RateLimit("work", began + 10_000, "for 9000", began)


@virtual
async def test_pausing_an_agent_pauses_all_its_jobs_and_resuming_hears_what_waited(scene, agents):
    async with agents.scheduler() as scheduler:
        schedules = {"on": {"every": "1h", "prompt": "x"}, "off": {"every": "1h", "prompt": "x", "enabled": False}}
        await scheduler.agents.apply({"a": agent(heartbeat=BEAT, schedules=schedules)})
        await scheduler.start()
        assert (await scheduler.agents.pause("a"))["status"] == "paused"
        await scheduler.agents.add_event("a", "waits", wake=True)
        await scene.until(at(hours=3))
        assert agents.turns == []
        assert (await scheduler.agents.get("a"))["skips"]["paused"] >= 1  # the wake is counted
        shown = await scheduler.agents.resume("a")
        assert shown["status"] == "idle"
        assert {one["name"]: one["status"] for one in shown["schedules"]} == {"on": "idle", "off": "disabled"}
        await scene.sleep(5)
        assert agents.prompts == ["Look around.\n\nSystem events:\n- [event] waits"]


@virtual
async def test_a_schedule_that_a_program_switched_off_is_switched_on_again_by_it_and_a_pause_stays(scene, agents):
    def schedules(*, on):
        timing = {"every": "1h", "prompt": "x", "enabled": on}
        return {"a": agent(schedules={"one": timing, "paused": timing, "failing": {**timing, "enabled": True}})}

    async def statuses():
        return {one["name"]: one["status"] for one in (await scheduler.agents.get("a"))["schedules"]}

    async with agents.scheduler() as scheduler:
        await scheduler.agents.apply(schedules(on=True))
        await scheduler.pause_job("a.paused")
        await scheduler.transact(lambda tx, context: disable_job(tx, context, "a.failing"))
        await scheduler.agents.apply(schedules(on=False))
        assert await statuses() == {"one": "disabled", "paused": "paused", "failing": "disabled"}
        await scheduler.agents.apply(schedules(on=True))
        assert await statuses() == {"one": "idle", "paused": "paused", "failing": "disabled"}
        await scheduler.start()
        await scene.until(at(hours=1, minutes=1))
        assert [turn.schedule for turn in agents.turns] == ["one"]


@pytest.mark.promise("A1")
@virtual
async def test_a_person_wakes_an_agent_that_is_paused(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        await scheduler.agents.pause("a")
        assert (await scheduler.agents.request_wake("a", "cron"))["wake_at"] is None
        assert (await scheduler.agents.request_wake("a", "manual"))["wake_at"] is not None
        await scene.sleep(1)
        assert [run.reason for run in await runs(scheduler, "a.wake")] == ["manual"]


@pytest.mark.promise("A4")
@virtual
async def test_events_that_a_failed_run_gives_back_and_those_that_came_meanwhile_are_fifty_at_most(scene, agents):
    async def hang(turn):
        await scene.sleep(10)
        raise RuntimeError("broken")

    agents.act = hang
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        for number in range(50):
            await scheduler.agents.add_event("a", f"first {number}")
        await scheduler.agents.request_wake("a")
        await scene.sleep(5)
        for number in range(3):
            await scheduler.agents.add_event("a", f"second {number}")
        await scene.sleep(5.5)
        waiting = await scheduler.read(lambda tx: tx.of(AgentTables).waiting("a"))
        assert (len(waiting), waiting[0].text, waiting[-1].text) == (50, "first 3", "second 2")


@pytest.mark.promise("A4", "H2")
@virtual
async def test_what_came_during_a_run_is_heard_when_the_clock_goes_back_before_its_end(scene, agents):
    agents.act = lambda turn: scene.sleep(60) if len(agents.turns) == 1 else "ok"
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await scene.sleep(5)
        await scheduler.agents.add_event("a", "waits", wake=True)
        scene.step(days=-10)
        await scene.sleep("5m")
        assert len(agents.prompts) == 2
        assert "[event] waits" in agents.prompts[1]


@virtual
async def test_applying_again_changes_what_differs_and_removes_what_is_gone(scene, agents):
    async with agents.scheduler() as scheduler:
        two = {name: {"every": "1h", "prompt": "x"} for name in ("x", "y")}
        await scheduler.agents.apply({"a": agent(schedules=two), "b": agent()})
        before = await scheduler.get_job("a.x")
        changed = await scheduler.agents.apply({"a": agent(schedules={"x": two["x"]})})
        assert changed["removed"] == ["a.y", "b.wake"]
        after = await scheduler.get_job("a.x")
        assert (after.next_run_at, after.revision) == (before.next_run_at, before.revision)
        assert [one["name"] for one in await scheduler.agents.list()] == ["a"]
        with pytest.raises(InvalidJob, match=r"agents\.Bad Name"):
            await scheduler.agents.apply({"Bad Name": agent()})
        with pytest.raises(InvalidJob, match="has none of preset, start, url, python"):
            await scheduler.agents.apply({"a": {"runner": {}}})
        with pytest.raises(InvalidJob, match="must have another name: wake is one of the agent's own jobs"):
            await scheduler.agents.apply({"a": agent(schedules={"wake": two["x"]})})
        assert [one["name"] for one in await scheduler.agents.list()] == ["a"]


@virtual
async def test_what_is_not_there_is_named(scene, agents):
    async with agents.scheduler_with({"reporter": agent()}) as scheduler:
        with pytest.raises(AgentNotFound, match=r"There is no agent 'reportr'\. Did you mean 'reporter'\?"):
            await scheduler.agents.request_wake("reportr")
        with pytest.raises(InvalidJob, match="A wake's reason is one of interval, cron, message, manual, hook"):
            await scheduler.agents.request_wake("reporter", "whim")
        with pytest.raises(InvalidJob, match="An event needs a text"):
            await scheduler.agents.add_event("reporter", "  ")
