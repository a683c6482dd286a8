"""How the handlers of a workflow run: when, one at a time, with what they leave behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kernel.scene import at
from tests.workflows.mailroom import publish, virtual
from wakeful import (
    Prepared,
    ScheduleTriggerError,
    Workflow,
)
from wakeful.domains.workflows import hooks
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand


@pytest.mark.promise("K1", "K7", "K9")
@virtual
async def test_what_a_producer_finds_is_consumed_once_and_the_next_time_is_stored(room):
    room.mails = ["a", "b"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert room.phases() == ["prepare", "next", "poll", "prepare", "mutate", "next"]
        assert room.ledger == ["a", "b"]
        assert await room.events(scheduler) == {"a": "consumed", "b": "consumed"}
        assert await room.events(scheduler, "rows") == {"a+b": "pending"}
        assert (await room.handler(scheduler)).state == '{"status":"applied"}'
        assert (await scheduler.get_job("mailroom.poll")).next_run_at == at(minutes=5)
        assert (await scheduler.get_job("mailroom.append")).next_run_at is None
        room.mails.append("c")
        await room.sleep("5m")
        assert room.ledger == ["a", "b", "c"]
        phases = {(one.phase, one.status) for one in await room.attempts(scheduler)}
        assert phases == {("committed", "committed")}


@pytest.mark.promise("K1")
@virtual
async def test_a_restart_is_no_deploy_and_a_new_version_keeps_what_is_stored(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
    room.calls.clear()
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert room.calls == []
    async with room.open(append={"timeout": "7m"}) as scheduler:
        changed = room.scene.scheduler()
        workflow = room.workflow()
        workflow.version = "another"
        async with changed:
            changed.add_workflow(workflow)
            await changed.start()
            await room.sleep("1s")
            assert (await room.row(changed)).version == "another"
            assert (await room.handler(changed, "poll")).state == '{"known":1}'
            assert await room.events(changed) == {"a": "consumed"}
            assert room.ledger == ["a"]


@pytest.mark.promise("K2", "K4", "K13")
@virtual
async def test_triggers_during_a_run_are_queued_once_and_no_event_is_lost(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.calls.clear()

        async def slow(ctx):
            if not room.ledger:
                await room.sleep("4m50s")  # the producer is due meanwhile

        room.act["mutate"] = slow
        await publish(scheduler, "a")
        await room.sleep("1s")
        for name in "bcd":
            await publish(scheduler, name)
        waiting = [run for run in await scheduler.get_run_log("mailroom.append") if run.status == "queued"]
        assert len(waiting) == 1
        await room.sleep("4m")
        room.calls.clear()
        await room.sleep("1m")
        assert room.ledger == ["a", "b", "c", "d"]
        assert room.phases()[:4] == ["next", "prepare", "mutate", "next"], "consumers go before producers"
        assert room.phases().count("poll") == 1
        assert set((await room.events(scheduler)).values()) == {"consumed"}


@pytest.mark.promise("K7")
@pytest.mark.parametrize("first", ["x", "y"])
@virtual
async def test_the_consumer_whose_oldest_event_has_waited_longest_goes_first(room, first):
    started, busy = [], []
    workflow = Workflow("mailroom")

    def consume(topic):
        consumer = workflow.consumer(topic, subscribes=[topic])

        @consumer.prepare
        async def prepare(ctx, state):
            started.append(topic)
            busy.append(topic)
            assert busy == [topic], "one run at a time"
            found = await ctx.peek(topic, limit=1)
            await room.sleep("10s")
            busy.remove(topic)
            return Prepared({topic: [event.id for event in found]})

    for topic in ("mail", "x", "y"):
        consume(topic)
    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    async with scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await publish(scheduler, "busy")
        await room.sleep("1s")
        started.clear()
        for topic in (first, "y" if first == "x" else "x"):
            given = ByHand(topic, "1", None)
            await scheduler.transact(
                lambda tx, context, given=given: publish_by_hand(tx, context, "mailroom", given, who="A")
            )
            await room.sleep("1s")
        await room.sleep("1m")
        assert started[:2] == [first, "y" if first == "x" else "x"]


@pytest.mark.promise("K4", "K14")
@virtual
async def test_an_event_is_not_lost_when_its_handler_is_paused_and_resumed(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await scheduler.pause_job("mailroom.append")
        await publish(scheduler, "a")
        await room.sleep("10m")
        assert room.ledger == []
        await scheduler.resume_job("mailroom.append")
        await room.sleep("2m")
        assert room.ledger == ["a"]


@pytest.mark.promise("K3")
@virtual
async def test_run_now_queues_the_producers_and_is_refused_while_something_runs(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.calls.clear()
        room.act["poll"] = lambda ctx: room.sleep("10s")
        started = await room.act_on(scheduler, "run_now", who="Ada")
        assert len(started) == 1
        await room.sleep("1s")
        with pytest.raises(ScheduleTriggerError, match="is running"):
            await room.act_on(scheduler, "run_now", who="Ada")
        await room.sleep("20s")
        assert room.phases() == ["poll"], "consumers run through events alone"
        assert (await scheduler.get_job("mailroom.poll")).next_run_at == at(minutes=6, seconds=10)
        await room.act_on(scheduler, "pause", who="Ada", note="holiday")
        with pytest.raises(ScheduleTriggerError, match="is paused"):
            await room.act_on(scheduler, "run_now", who="Ada")


@pytest.mark.promise("K2", "K3")
@virtual
async def test_run_now_asked_twice_is_one_start(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await scheduler.stop()
        room.calls.clear()
        first = await room.act_on(scheduler, "run_now", who="Ada")
        assert await room.act_on(scheduler, "run_now", who="Bob") == first
        await scheduler.start()
        await room.sleep("1m")
        assert room.phases() == ["poll"]


@pytest.mark.promise("K4", "K5")
@virtual
async def test_an_empty_reservation_waits_for_an_event_or_its_wake_time(room):
    room.batch = 0
    async with room.open() as scheduler:
        await scheduler.start()
        room.wake_at = room.now + timedelta(hours=1)
        await publish(scheduler, "a")
        await room.sleep("1m")
        first = room.phases().count("prepare")
        assert (await room.handler(scheduler)).wake_at == int(at(hours=1).timestamp() * 1000)
        await room.sleep("50m")
        assert room.phases().count("prepare") == first
        room.wake_at = None
        await room.sleep("10m")
        assert room.phases().count("prepare") == first + 1
        assert [when for when, phase in room.calls if phase == "prepare"][-1] == at(hours=1)
        assert (await room.handler(scheduler)).wake_at is None, "leaving it out clears the old one"
        await room.sleep("2h")
        assert room.phases().count("prepare") == first + 1
        await publish(scheduler, "b")
        await room.sleep("1s")
        assert room.phases().count("prepare") == first + 2


@pytest.mark.promise("K6")
@virtual
async def test_publishing_is_idempotent_by_message_id_also_when_the_event_is_pruned(room):
    room.batch = 0
    async with room.open() as scheduler:
        await scheduler.start()
        first = await publish(scheduler, "a", {"n": 1})
        again = await publish(scheduler, "a", {"n": 2})
        assert (first.new, again.new, again.event_id) == (True, False, first.event_id)
        assert await room.events(scheduler) == {"a": "pending"}
        room.batch = 10
        await publish(scheduler, "b")
        await room.sleep("1s")
        assert (await publish(scheduler, "a", {"n": 3})).new is False
        later = room.clock.now() + 1
        deleted = await scheduler.transact(lambda tx, _: hooks.prune(tx, later, 100))
        assert deleted == 6, "both, the row that no handler subscribes to, and what is on record of publishing"
        assert await room.events(scheduler) == {}
        assert (await publish(scheduler, "a")).new is False
        await room.sleep("1m")
        assert sorted(room.ledger) == ["a", "b"]
