"""What operators do: replay an event, drain before a deploy; and what is kept for how long."""

from __future__ import annotations

import pytest

from tests.workflows.mailroom import fails, virtual
from tests.workflows.test_runs import publish
from wakeful import LogicError, ScheduleTriggerError, ids
from wakeful.errors import InvalidJob, NotFound
from wakeful.workflows import hooks, views
from wakeful.workflows.actions import pause
from wakeful.workflows.draining import drain
from wakeful.workflows.input_actions import replay_event
from wakeful.workflows.tables import Workflows
from wakeful.workflows.topics.tables import Topics


async def replay(scheduler, event_id, reason="it was lost there"):
    return await scheduler.transact(
        lambda tx, context: replay_event(tx, context, "mailroom", event_id, reason=reason, who="Ada")
    )


async def drained(scheduler):
    done = await scheduler.transact(lambda tx, context: drain(tx, context, "mailroom", who="Ada", note="deploy"))
    return done.paused


async def did(scheduler):
    """(who, what, detail) of what people did, oldest first."""
    found = await scheduler.look(lambda tx: tx.of(Workflows).actions("mailroom", 50))
    return [(one.who, one.action, one.detail) for one in reversed(found)]


@pytest.mark.promise("K16")
@virtual
async def test_a_consumed_event_is_replayed_as_a_new_one_with_its_causes(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        [event] = await scheduler.look(lambda tx: tx.of(Topics).matching("mailroom", "mail", None, None, 9))
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
        [row] = await scheduler.look(lambda tx: tx.of(Topics).inputs("mailroom", None, None, 9))
        caused = (await scheduler.look(lambda tx: views.input_view(tx, row)))["caused"]
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
        shown = await scheduler.look(lambda tx: views.workflow_view(tx, "mailroom"))
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


@pytest.mark.promise("K6")
@virtual
async def test_message_ids_outlive_their_events_by_more_than_a_year_and_not_for_ever(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await publish(scheduler, "a")
        await room.sleep("1m")

        async def pruned():
            await scheduler.transact(lambda tx, _: hooks.prune(tx, tx.now - 86_400_000, 100))
            return await scheduler.look(lambda tx: tx.of(Topics).known("mailroom", "mail", ["a"]) == {})

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
