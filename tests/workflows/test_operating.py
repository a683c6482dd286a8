"""What operators do: replay an event, drain before a deploy; and what is kept for how long."""

from __future__ import annotations

import pytest

from tests.workflows.mailroom import fails, virtual
from tests.workflows.test_failures import ask_a_person
from tests.workflows.test_runs import publish
from wakeful import LogicError, ScheduleTriggerError, ids
from wakeful.domains.workflows import hooks, views
from wakeful.domains.workflows.actions import pause
from wakeful.domains.workflows.draining import drain
from wakeful.domains.workflows.input_actions import replay_event
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.errors import InvalidJob, NotFound


async def replay(scheduler, event_id, reason="it was lost there"):
    return await scheduler.transact(
        lambda tx, context: replay_event(tx, context, "mailroom", event_id, reason=reason, who="Ada")
    )


async def drained(scheduler):
    done = await scheduler.transact(lambda tx, context: drain(tx, context, "mailroom", who="Ada", note="deploy"))
    return done.paused


async def did(scheduler):
    """(who, what, detail) of what people did, oldest first."""
    found = await scheduler.read(lambda tx: tx.of(WorkflowVerbs).actions("mailroom", 50))
    return [(one.who, one.action, one.detail) for one in reversed(found)]


@pytest.mark.promise("K16")
@virtual
async def test_a_consumed_event_is_replayed_as_a_new_one_with_its_causes(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        [event] = await scheduler.read(lambda tx: tx.of(Topics).matching("mailroom", "mail", None, None, 9))
        text = ids.encode("evt", event.id)
        with pytest.raises(InvalidJob, match="Say why"):
            await replay(scheduler, text, " ")
        with pytest.raises(NotFound, match="has no event"):
            await replay(scheduler, "evt_nothing")
        made = await replay(scheduler, text)
        with pytest.raises(ScheduleTriggerError, match="is pending"):
            await replay(scheduler, made)
        await room.sleep("1m")
        assert [name.partition("~")[0] for name in room.ledger] == ["a", "a"]
        assert set((await room.events(scheduler)).values()) == {"consumed"}
        [row] = await scheduler.read(lambda tx: tx.of(Topics).inputs("mailroom", None, None, 9))
        caused = (await scheduler.read(lambda tx: views.input_view(tx, row)))["caused"]
        assert {text, made} <= {one["id"] for one in caused}
        assert await did(scheduler) == [("Ada", "replayed", f"{text}: it was lost there")]


@virtual
async def test_draining_finishes_what_is_there_takes_in_nothing_and_pauses(room):
    room.batch = 1
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.act["mutate"] = lambda ctx: room.sleep("10s")
        for name in "abc":
            await publish(scheduler, name)
        room.mails = ["d"]
        await room.sleep("1s")
        room.calls.clear()
        assert await drained(scheduler) is False
        shown = await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))
        assert (shown["draining"], shown["paused"]) == (True, False)
        await room.sleep("20s")
        assert not (await room.row(scheduler)).paused
        await room.sleep("1h")
        assert room.ledger == ["a", "b", "c"], "the producer is due, and waits"
        row = await room.row(scheduler)
        assert (row.paused, row.draining, row.pause_note) == (1, 0, "deploy")
        assert "poll" not in room.phases()
        with pytest.raises(ScheduleTriggerError, match="is paused"):
            await drained(scheduler)
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        assert room.ledger == ["a", "b", "c", "d"]
        assert [what for _, what, _ in await did(scheduler)][-2:] == ["draining", "resumed"]


@virtual
async def test_an_idle_workflow_is_drained_at_once(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert await drained(scheduler) is True
        assert (await room.row(scheduler)).paused == 1


@pytest.mark.promise("K16")
@pytest.mark.parametrize("way", ["resume", "skip"])
@virtual
async def test_a_workflow_is_not_drained_while_events_wait_for_a_consumer_whose_job_is_paused(room, way):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await scheduler.pause_job("mailroom.append")
        await publish(scheduler, "a")
        shown = await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))
        assert (shown["status"], shown["issue"]["kind"], shown["issue"]["actions"]) == ("needs_attention", "paused", [])
        words = "Events wait for mailroom.append, which is paused. Resume it (wakeful resume mailroom.append)."
        assert shown["issue"]["message"] == words
        assert "Next check" in shown["schedule"], "producers go on"
        assert await drained(scheduler) is False
        assert not (await room.row(scheduler)).paused
        if way == "resume":
            await scheduler.resume_job("mailroom.append")
        else:
            [event] = await scheduler.workflows.events("mailroom", status="pending")
            await scheduler.workflows.skip("mailroom", event["id"], "spam")
        await room.sleep("1m")
        assert room.ledger == (["a"] if way == "resume" else [])
        assert (await room.row(scheduler)).paused == 1


@pytest.mark.promise("K16")
@pytest.mark.parametrize("by_workflow", [True, False])
@pytest.mark.parametrize("verdict", ["approved", "rejected"])
@virtual
async def test_an_answer_is_on_record_once_whether_it_names_the_workflow_or_the_run(room, verdict, by_workflow):
    room.act["mutate"] = ask_a_person
    async with room.open() as scheduler:
        await scheduler.start()
        await publish(scheduler, "a")
        await room.sleep("1s")
        run = (await scheduler.workflows.get("mailroom"))["issue"]["run"]
        verb = {"approved": "approve", "rejected": "reject"}[verdict]
        if by_workflow:
            await room.act_on(scheduler, verb, run, who="Ada", note="as agreed")
        else:
            await getattr(scheduler, f"{verb}_run")(run, by="Ada", note="as agreed")
        await room.sleep("1m")
        assert [one for one in await did(scheduler) if one[1] == verdict] == [("Ada", verdict, "as agreed")]


@pytest.mark.promise("K6", "K16")
@virtual
async def test_another_payload_for_an_event_that_is_worked_on_is_refused_and_the_same_is_not(room):
    room.act["mutate"] = ask_a_person
    async with room.open() as scheduler:
        await scheduler.start()
        event = await scheduler.workflows.publish("mailroom", "mail", {"n": 1}, message_id="a")
        await room.sleep("1s")
        assert (await scheduler.workflows.publish("mailroom", "mail", {"n": 1}, message_id="a"))["id"] == event["id"]
        with pytest.raises(ScheduleTriggerError, match=f"{event['id']} is being worked on"):
            await scheduler.workflows.publish("mailroom", "mail", {"n": 2}, message_id="a")


@pytest.mark.promise("K11", "K16")
@virtual
async def test_a_run_that_asks_whether_its_change_happened_cannot_be_completed_as_a_success(room):
    room.reconciles = False
    room.act["mutate"] = fails(ValueError("cut off"))
    async with room.open() as scheduler:
        await scheduler.start()
        await publish(scheduler, "a")
        await room.sleep("1s")
        run = (await scheduler.workflows.get("mailroom"))["issue"]["run"]
        with pytest.raises(ScheduleTriggerError, match="asks whether its change happened"):
            await scheduler.complete_run(run)
        await scheduler.workflows.settle("mailroom", run, "happened")
        await room.sleep("1m")
        assert await room.events(scheduler) == {"a": "consumed"}


@pytest.mark.promise("K16")
@virtual
async def test_what_people_did_is_kept_as_long_as_other_records(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await publish(scheduler, "a")
        await room.act_on(scheduler, "pause", who="Ada")
        await scheduler.stop()
        await room.sleep("2d")
        await scheduler.transact(lambda tx, _: hooks.prune(tx, tx.now - 3 * 86_400_000, 100))
        assert len(await did(scheduler)) == 2
        await scheduler.transact(lambda tx, _: hooks.prune(tx, tx.now - 86_400_000, 100))
        assert await did(scheduler) == []


@pytest.mark.promise("K6")
@virtual
async def test_message_ids_outlive_their_events_by_more_than_a_year_and_not_for_ever(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await publish(scheduler, "a")
        await room.sleep("1m")

        async def pruned():
            await scheduler.transact(lambda tx, _: hooks.prune(tx, tx.now - 86_400_000, 100))
            return await scheduler.read(lambda tx: tx.of(Topics).known("mailroom", "mail", ["a"]) == {})

        await scheduler.stop()  # nothing but time passes
        await room.sleep("399d")
        assert not await pruned()
        assert await room.events(scheduler) == {}
        await room.sleep("2d")
        assert await pruned()


@pytest.mark.promise("K13")
@virtual
async def test_what_waits_for_a_stuck_workflow_is_not_reported_as_missed_too(room):
    room.mails = ["a"]
    room.act["prepare"] = fails(LogicError("wrong"))
    room.act["mutate"] = lambda ctx: room.sleep("20m")
    async with room.open(append={"timeout": "1h"}) as scheduler:
        await scheduler.start()
        await room.sleep("3h")
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("15m")
        assert "mutate" in room.phases()
        assert await scheduler.list_alerts() == [], "the producer waits for the consumer, as it should"
        await room.sleep("10m")
        assert room.ledger == ["a"]


@pytest.mark.promise("X25")
@virtual
async def test_the_ledger_says_that_slots_of_a_paused_workflow_wait_for_that(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await scheduler.transact(lambda tx, context: pause(tx, context, "mailroom", who="Ada"))
        await room.sleep("2h")
        for found in (await scheduler.get_ledger(since="3h"), await scheduler.get_ledger("mailroom.poll", since="3h")):
            assert list(found.jobs["mailroom.poll"].waiting) == ["paused"]
            assert found.total.unaccounted == 0
