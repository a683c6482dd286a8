"""What a handler asks people stays asked, whatever becomes of the others of its workflow."""

from __future__ import annotations

import pytest

from tests.workflows.mailroom import fails, virtual
from wakeful import ApprovalNeeded
from wakeful.workflows import actions, hooks
from wakeful.workflows.input_actions import ByHand, publish_by_hand


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
