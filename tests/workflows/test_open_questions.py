"""What a handler asks people stays asked, whatever becomes of the others of its workflow."""

from __future__ import annotations

import pytest

from tests.workflows.mailroom import UNKNOWN, fails, publish, virtual
from wakeful import ApprovalNeeded, ScheduleTriggerError, TransientError
from wakeful.domains.workflows import actions, hooks
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand


def publish_and_run(tx, context):
    """An event comes, and a person starts the producer; a node claims that start and ends at once."""
    publish_by_hand(tx, context, "mailroom", ByHand("mail", "a", None), who="Ada")
    (text,) = actions.run_now(tx, context, "mailroom", who="Ada")
    job, _ = tx.jobs.by_name("mailroom.poll")
    (run,) = tx.runs.open(job.id)
    hooks.claimed(tx, context, job, run)
    return text


@pytest.mark.promise("K13", "K16")
@virtual
async def test_a_start_that_is_cancelled_does_not_hide_what_another_handler_asks(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.act = {"mutate": fails(ApprovalNeeded("May I?"))}
        run = await scheduler.transact(publish_and_run)
        await room.sleep("10s")
        await scheduler.cancel_run(run)
        await room.sleep("11m")
        shown = await scheduler.workflows.get("mailroom")
        assert (shown["status"], shown["issue"]["kind"]) == ("needs_attention", "approval")
        await room.act_on(scheduler, "approve", shown["issue"]["run"], who="Ada")
        await room.sleep("11m")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})
        assert (await scheduler.workflows.get("mailroom"))["issue"] is None


@pytest.mark.promise("K10", "K11")
@pytest.mark.parametrize("reconciles", [True, False])
@virtual
async def test_an_answer_about_one_change_is_not_taken_for_a_later_one(room, reconciles):
    room.reconciles, room.batch = reconciles, 1
    room.act = {"mutate": fails(ConnectionError("lost"), 2)}
    async with room.open() as scheduler:
        await scheduler.start()
        await publish(scheduler, "a")
        await room.sleep("1s")
        first = next(one["id"] for one in await scheduler.workflows.runs("mailroom") if one["mutation"] == "in_flight")
        room.verdict = UNKNOWN  # from here on; after the first change it found that nothing had happened
        if not reconciles:
            await scheduler.workflows.settle("mailroom", first, "did_not_happen")
        await room.sleep("10m")
        shown = await scheduler.workflows.get("mailroom")
        assert (shown["issue"]["kind"], shown["issue"]["actions"]) == ("reconciliation", ["settle"])
        for verdict in ("happened", "did_not_happen", "skip"):
            with pytest.raises(ScheduleTriggerError, match="has no mutation to settle"):
                await scheduler.workflows.settle("mailroom", first, verdict)
        assert await room.events(scheduler) == {"a": "reserved"}
        await scheduler.workflows.settle("mailroom", shown["issue"]["run"], "happened")
        await room.sleep("1s")
        assert (room.ledger, await room.events(scheduler)) == ([], {"a": "consumed"})


@pytest.mark.promise("K16")
@virtual
async def test_a_workflow_that_is_paused_while_it_fails_needs_nobody(room):
    async with room.open() as scheduler:
        room.act = {"poll": fails(TransientError("busy"), 99)}
        await scheduler.start()
        await room.sleep("3h")
        assert (await scheduler.workflows.get("mailroom"))["status"] == "needs_attention"
        shown = await scheduler.workflows.pause("mailroom")
        assert (shown["status"], shown["issue"]["message"]) == ("stopped", "Paused by a person.")
