"""What the store keeps of wakes, hours and budgets: each rule by itself, in virtual time."""

from __future__ import annotations

import json

import pytest

from tests.agents.test_budgets import agent as budgeted
from tests.agents.test_budgets import budget_alerts
from tests.agents.test_chat_schedules import Phone
from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful import ids
from wakeful.domains.agents.admitting import admit
from wakeful.domains.agents.budgets.rules import Caps, Limits
from wakeful.domains.agents.budgets.spending import refuse_start, settle, store_limits
from wakeful.domains.agents.budgets.tables import Budgets, Reservation
from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.hops import Sender
from wakeful.domains.agents.limits.holding import meet_limit
from wakeful.domains.agents.replies.routing import send_reply
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.wakes import add_event, find_agent, request_wake, take_wake
from wakeful.domains.delivery.tables import DeliveryFilter, Outbox
from wakeful.kernel.rules.outcome import Defer, Result
from wakeful.store.records import RunRow
from wakeful.triggers import from_ms

HOURS = {"start": "08:00", "end": "20:00", "timezone": "UTC"}
TICK = {"tick": {"every": "1h", "prompt": "x"}}


@pytest.mark.promise("A3")
@virtual
async def test_a_run_that_is_claimed_again_has_its_wake_and_one_whose_wake_is_gone_is_stale(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:

        def work(tx, context):
            asked = request_wake(tx, context, "a", "hook")
            add_event(tx, context, "a", "The door is open.", source="house", context_key=None)
            job, _ = find_agent(tx, "a")
            run = tx.runs.get(asked.run_id)
            other = RunRow.queued(context.new_id(), job, "hook", tx.now)
            return take_wake(tx, job, run), take_wake(tx, job, run), take_wake(tx, job, other)

        first, again, other = await scheduler.transact(work)
        assert first == {"reason": "hook", "events": [["house", "The door is open."]], "outside": []}
        assert again == first
        assert other == {"is_stale": True}


@pytest.mark.promise("A3")
@virtual
async def test_a_wake_delays_no_run_that_is_due_before_it(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.run_job("a.wake")
        due = await scheduler.read(lambda tx: find_agent(tx, "a")[1].due_at)
        assert (await scheduler.transact(lambda tx, context: request_wake(tx, context, "a", "hook"))).wake_at > due
        assert await scheduler.read(lambda tx: find_agent(tx, "a")[1].due_at) == due


@pytest.mark.promise("A4")
@virtual
async def test_what_a_run_has_heard_is_gone_from_the_store(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        await scene.sleep(5)
        (run,) = await scheduler.get_run_log("a.wake", 10)
        number = ids.decode(run.id)[1]
        assert await scheduler.read(lambda tx: tx.of(AgentTables).given_to(number)) == []


@pytest.mark.promise("A3")
@virtual
async def test_a_run_that_fails_after_its_agent_was_paused_is_not_tried_again(scene, agents):
    async def pause(turn):
        await scheduler.agents.pause("a")
        raise RuntimeError("broken")

    agents.act = pause
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await scene.sleep(600)
        wake = await scheduler.read(lambda tx: tx.of(AgentTables).wake(find_agent(tx, "a")[0].id))
        assert (len(await scheduler.get_run_log("a.wake", 10)), wake) == (1, None)


@pytest.mark.promise("A3")
@virtual
async def test_a_run_that_is_put_off_keeps_its_wake_and_its_hops(scene, agents):
    later = scene.clock.now() + 3_600_000
    agents.act = lambda turn: Defer(from_ms(later), "later")
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        sender = Sender("b", 1, 3)
        await scheduler.transact(lambda tx, context: request_wake(tx, context, "a", sender=sender))
        await scene.sleep(5)

        def look(tx):
            job, _ = find_agent(tx, "a")
            return tx.of(AgentTables).wake(job.id), [run.id for run in tx.runs.open(job.id)]

        wake, waiting = await scheduler.read(look)
        assert (wake.due_at, wake.hops, [wake.run_id]) == (later, 3, waiting)


@pytest.mark.promise("A6")
@virtual
async def test_a_reply_is_delivered_once_though_the_end_of_its_run_is_stored_again(scene, agents):
    async with agents.scheduler() as scheduler:
        Phone(scheduler)
        await scheduler.agents.apply({"a": agent()})
        await scheduler.start()
        await scheduler.stop()

        def work(tx, context):
            job, _ = find_agent(tx, "a")
            run = RunRow.queued(context.new_id(), job, "hook", tx.now)
            for _ in range(2):
                send_reply(tx, context, job, run, Result("success", output='{"reply":"Hello","outcome":"sent"}'))
            return [row.text for row in tx.of(Outbox).matching(DeliveryFilter())]

        assert await scheduler.transact(work) == ["Hello"]


@pytest.mark.promise("A1")
@virtual
async def test_a_wake_whose_run_was_cancelled_before_it_began_is_forgotten(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        asked = await scheduler.transact(lambda tx, context: request_wake(tx, context, "a", "hook"))
        await scheduler.cancel_run(ids.run_text(asked.run_id))
        await scene.sleep(5)
        assert agents.turns == []
        assert not (await scheduler.agents.request_wake("a"))["coalesced"]
        await scene.sleep(5)
        assert len(agents.turns) == 1


@pytest.mark.promise("A1")
@virtual
async def test_a_wake_of_a_parked_agent_leaves_it_its_place_in_the_line(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:

        def work(tx, context):
            state = find_agent(tx, "a")[1]
            tx.jobs.save([state._replace(parked="busy", due_at=None)])
            request_wake(tx, context, "a", "hook")
            return find_agent(tx, "a")[1]

        state = await scheduler.transact(work)
        assert (state.parked, state.due_at, state.queued) == ("busy", None, 1)


@pytest.mark.promise("A2")
@virtual
async def test_a_heartbeat_outside_its_hours_waits_for_them_and_one_by_hand_does_not(scene, agents):
    async with agents.scheduler() as scheduler:
        beat = {"enabled": True, "every": "7h", "active_hours": HOURS, "prompt": "Look."}
        await scheduler.agents.apply({"a": agent(heartbeat=beat)})

        def refused(tx, context):
            job, state = tx.jobs.by_name("a.heartbeat")
            return admit(tx, context, job, state), admit(tx, context, job, state._replace(queued=1))

        by_time, by_hand = await scheduler.transact(refused)
        assert (by_time.reason, by_time.until) == ("outside_active_hours", int(at(hours=8).timestamp() * 1000))
        assert by_hand is None
        await scheduler.start()
        await scheduler.run_job("a.heartbeat")
        await scene.sleep(5)
        (run,) = await scheduler.get_run_log("a.heartbeat", 10)
        assert (run.outcome, run.output["woken"], len(agents.turns)) == ("success", True, 1)


@pytest.mark.promise("D5")
@virtual
async def test_a_limit_that_ends_now_holds_nothing_up(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules=TICK)}) as scheduler:

        def refused(tx, context, ends):
            job, state = tx.jobs.by_name("a.tick")
            payload = json.loads(job.payload)
            payload["runner"]["account"] = "work"
            meet_limit(tx, "work", tx.now + ends, "busy")
            return admit(tx, context, job._replace(payload=json.dumps(payload)), state)

        assert await scheduler.transact(lambda tx, context: refused(tx, context, 0)) is None
        found = await scheduler.transact(lambda tx, context: refused(tx, context, 1))
        assert found.reason == "rate_limited"


@pytest.mark.promise("A12")
@virtual
async def test_a_beat_with_an_empty_file_is_for_what_waits(scene, agents, tmp_path):
    (tmp_path / "HEARTBEAT.md").write_text("# Nothing\n")
    async with agents.scheduler() as scheduler:
        beat = {"enabled": True, "every": "1h", "prompt_file": str(tmp_path / "HEARTBEAT.md")}
        await scheduler.agents.apply({"a": agent(heartbeat=beat)})
        await scheduler.start()
        await scene.until(at(hours=1, minutes=30))
        assert agents.turns == []
        await scheduler.agents.add_event("a", "The door is open.", source="house")
        await scene.until(at(hours=3, minutes=30))
        (prompt,) = agents.prompts
        assert "- [house] The door is open." in prompt


@pytest.mark.promise("D10")
@pytest.mark.parametrize(("others", "asked"), [(None, False), ("inside", True), ("outside", True)])
@virtual
async def test_a_wake_for_work_that_is_gone_is_for_what_else_waits(scene, agents, others, asked):
    async with agents.scheduler() as scheduler:
        plan = {"next": {"every": "10m", "work": True, "prompt": "Work.", "target": "main"}}
        await scheduler.agents.apply({"a": agent(work={"source": "queue"}, schedules=plan)})
        await scheduler.start()

        def work(tx, context):
            add_event(tx, context, "a", "Work.", source="cron", context_key="next")
            if others is not None:
                outside = others == "outside"
                add_event(tx, context, "a", "Open.", source="door", context_key=None, outside=int(outside))
            request_wake(tx, context, "a", "cron")

        await scheduler.transact(work)
        await scene.sleep(5)
        (run,) = await scheduler.get_run_log("a.wake", 10)
        assert run.outcome == ("success" if asked else "noop")
        assert ["Open." in prompt for prompt in agents.prompts] == ([True] if asked else [])


@pytest.mark.promise("X7")
@virtual
async def test_a_run_that_never_began_costs_nothing_of_the_budget(scene, agents):
    async with agents.scheduler_with({"a": budgeted(schedules=TICK)}) as scheduler:

        def work(tx, context):
            job, _ = tx.jobs.by_name("a.tick")
            run = RunRow.queued(context.new_id(), job, "schedule", tx.now)
            tx.of(Budgets).hold(5, wait=True)
            tx.of(Budgets).reserve(Reservation(run.id, "a", 5, 2_000_000))
            settle(tx, run, Result("crashed"))
            spent = tx.of(Budgets).spent(["agent:a"], 5)["agent:a"]
            return spent.runs, spent.cost, spent.held_runs

        assert await scheduler.transact(work) == (0, 0, 0)


@pytest.mark.promise("X7")
@virtual
async def test_a_start_that_is_within_budget_again_ends_the_alert(scene, agents):
    async with agents.scheduler_with({"a": budgeted({"runs_per_day": 1}, schedules=TICK)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=3, minutes=30))
        assert len(await budget_alerts(scheduler)) == 1
        await scheduler.agents.apply({"a": budgeted({"runs_per_day": 9}, schedules=TICK)})

        def start(tx, context):
            return refuse_start(tx, context, *tx.jobs.by_name("a.tick"))

        assert await scheduler.transact(start) is None
        assert await budget_alerts(scheduler) == []


@pytest.mark.promise("X7")
@virtual
async def test_a_larger_budget_of_all_lets_what_waits_look_again_once(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:

        def work(tx, _):
            state = find_agent(tx, "a")[1]
            tx.jobs.save([state._replace(ready_at=tx.now - 1, due_at=tx.now + 9_000)])
            limits = Limits(Caps(7, None), "UTC")
            changed = store_limits(tx, limits)
            due = find_agent(tx, "a")[1].due_at - tx.now
            tx.jobs.save([find_agent(tx, "a")[1]._replace(due_at=tx.now + 9_000)])
            return changed, due, store_limits(tx, limits), find_agent(tx, "a")[1].due_at - tx.now

        assert await scheduler.transact(work) == (True, 0, False, 9_000)


@pytest.mark.promise("X7", "X18")
@virtual
async def test_a_schedule_beside_the_file_is_bound_by_what_its_agent_may(scene, agents):
    async with agents.scheduler() as scheduler:
        own = agent(budget={"runs_per_day": 2}, untrusted={"session": "ephemeral"}, deliver="none")
        await scheduler.agents.apply({"a": own})
        bare = {"does": "ask", "agent": "a", "schedule": "more", "prompt": "x"}
        found = await scheduler.read(lambda tx: effective_payload(tx, bare))
        assert found["budget"] == {"runs_per_day": 2}
        assert found["untrusted"]["session"] == "ephemeral"
        assert (list(found["runner"]), found["deliver"]) == (["python"], "none")


@pytest.mark.promise("D8")
@virtual
async def test_the_last_error_of_an_agent_is_that_of_the_run_that_failed_last(scene, agents):
    agents.act = lambda turn: RuntimeError(f"{turn.schedule} is broken")
    plan = {name: {"every": "30d", "prompt": "x"} for name in ("one", "two")}
    async with agents.scheduler_with({"a": agent(schedules=plan)}) as scheduler:
        await scheduler.start()
        before = await scheduler.agents.get("a")
        assert (before["last_error"], before["last_run_at"]) == (None, None)
        for name in ("one", "two", "one"):
            await scheduler.run_job(f"a.{name}")
            await scene.sleep(5)
            shown = await scheduler.agents.get("a")
            assert (shown["last_error"], shown["last_outcome"]) == (f"{name} is broken", "error")
            begun = {one["name"]: one["last_run_at"] for one in shown["schedules"]}
            assert shown["last_run_at"] == begun[name] is not None
            (listed,) = await scheduler.agents.list()
            assert listed["last_error"] == f"{name} is broken"
