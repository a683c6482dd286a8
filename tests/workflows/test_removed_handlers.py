"""A deploy without a handler: what its unfinished run reserved is released, consumed, or waits for a person."""

from __future__ import annotations

import asyncio

import pytest

from tests.workflows.mailroom import fails, publish, virtual
from wakeful import ApprovalNeeded, Prepared, TransientError, Workflow, ids
from wakeful.domains.workflows import views


def without_append(heard):
    """The same workflow with another consumer in place of `append`."""
    workflow = Workflow("mailroom")
    archive = workflow.consumer("archive", subscribes=["mail"])

    @archive.prepare
    async def prepare(ctx, state):
        mails = await ctx.peek("mail", limit=10)
        return Prepared({"mail": [mail.id for mail in mails]}, [mail.message_id for mail in mails])

    @archive.mutate
    async def mutate(ctx, prepared):
        heard.extend(prepared.data)

    return workflow


async def shown(scheduler):
    return await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom", scheduler.host.seen))


async def begin(room, scheduler, act):
    """Let `append` work on one event, after its first round without any."""
    await scheduler.start()
    await room.sleep("1m")
    room.act = act
    await publish(scheduler, "a")
    await room.sleep("1m")


async def stuck(room, act):
    """A run of `append` that ended in the middle, with its event reserved."""
    async with room.open() as scheduler:
        await begin(room, scheduler, act)
        assert await room.events(scheduler) == {"a": "reserved"}
        return (await room.attempts(scheduler))[-1]


@pytest.mark.promise("K10")
@pytest.mark.parametrize(
    ("phase", "error", "heard", "detail"),
    [
        ("mutate", ApprovalNeeded("May I?"), ["a"], "1 event is pending again"),
        (
            "next",
            TransientError("busy"),
            [],
            "1 event is consumed: the change was made, and what follows it was not done",
        ),
    ],
)
@virtual
async def test_events_of_a_removed_handler_are_pending_again_or_consumed(room, phase, error, heard, detail):
    attempt = await stuck(room, {phase: fails(error, 99)})
    got, scheduler = [], room.scene.scheduler()
    scheduler.add_workflow(without_append(got))
    async with scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert (got, await room.events(scheduler)) == (heard, {"a": "consumed"})
        found = await shown(scheduler)
        assert (found["status"], found["paused"], found["issue"]) == ("idle", False, None)
        [done] = [one for one in found["actions"] if one["action"] == "gave_up"]
        why = "append was removed from the code"
        assert (done["who"], done["detail"]) == ("deploy", f"{ids.run_text(attempt.id)}: {why}; {detail}")
        assert (await room.attempts(scheduler))[-1].status == "given_up"
        assert (await room.handler(scheduler)).open_run is None


@pytest.mark.promise("K10", "K11")
@pytest.mark.parametrize(("verdict", "heard"), [("happened", []), ("skip", []), ("did_not_happen", ["a"])])
@virtual
async def test_a_change_in_flight_of_a_removed_handler_waits_for_a_person(room, verdict, heard):
    room.reconciles = False
    attempt = await stuck(room, {"mutate": fails(RuntimeError("lost"), 99)})
    got, scheduler = [], room.scene.scheduler()
    scheduler.add_workflow(without_append(got))
    async with scheduler:
        await scheduler.start()
        await room.sleep("1h")
        assert (got, await room.events(scheduler)) == ([], {"a": "reserved"})
        issue = (await shown(scheduler))["issue"]
        assert (issue["kind"], issue["handler"], issue["actions"]) == ("reconciliation", "append", ["settle"])
        await room.act_on(scheduler, "settle", ids.run_text(attempt.id), verdict, who="Ada")
        await room.sleep("1m")
        assert (got, await room.events(scheduler)) == (heard, {"a": "consumed"})
        assert (await shown(scheduler))["issue"] is None


@virtual
async def test_a_run_in_progress_of_a_removed_handler_is_given_up_when_it_fails(room):
    gate, got = asyncio.Event(), []

    async def wait_and_fail(ctx):
        await gate.wait()
        raise TransientError("busy")

    async with room.open() as scheduler:
        await begin(room, scheduler, {"next": wait_and_fail})
        await scheduler.add_workflow(without_append(got))
        assert await room.events(scheduler) == {"a": "reserved"}
        gate.set()
        await room.sleep("1m")
        assert (got, await room.events(scheduler)) == ([], {"a": "consumed"})
        assert (await shown(scheduler))["issue"] is None
