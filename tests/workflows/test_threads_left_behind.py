"""What is taken out while it works, and works on: whatever is put back or settled, nothing begins beside it."""

from __future__ import annotations

import asyncio

import pytest

from tests.workflows.mailroom import publish, virtual
from tests.workflows.test_put_back import no_consumer, take_out
from tests.workflows.test_removed_handlers import begin, shown, without_append
from wakeful import ScheduleTriggerError, ids


def goes_on(room, name="a"):
    """A change that takes ten minutes and cannot be stopped."""

    async def post():
        await room.sleep("10m")
        room.ledger.append(name)

    async def act(ctx):
        await asyncio.shield(asyncio.ensure_future(ctx.call(post)))

    return act


async def cut_off(room, scheduler, part, phase="mutate"):
    """The workflow, or its consumer, is taken out while a call of it is at work; cancelled, that works on."""
    await begin(room, scheduler, {phase: goes_on(room)})
    if part == "workflow":
        await take_out(scheduler, part)
    else:
        await scheduler.add_workflow(no_consumer(room))
    await scheduler.cancel_run(ids.run_text((await room.attempts(scheduler))[-1].id))
    await room.sleep("10s")
    room.act = {}
    return (await room.attempts(scheduler))[-1]


@pytest.mark.promise("K7", "K10", "K11")
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("part", ["workflow", "handler"])
@virtual
async def test_what_is_put_back_is_not_reconciled_before_its_thread_has_ended(room, part, restarts):
    scheduler = room.open()
    async with scheduler:
        attempt = await cut_off(room, scheduler, part)
        assert (await room.row(scheduler)).working_run == attempt.id
        assert (await shown(scheduler))["working"] is not None
        await scheduler.add_workflow(room.workflow())
        if restarts:
            await scheduler.stop()
            await scheduler.start()
        await room.sleep("5m")
        assert (room.phases().count("reconcile"), room.ledger) == (0, [])
        assert "is still at work" in str(await scheduler.explain("mailroom.append"))
        await room.sleep("10m")
        assert (room.phases().count("reconcile"), room.ledger) == (1, ["a"])
        assert await room.events(scheduler) == {"a": "consumed"}
        assert (await room.row(scheduler)).working_run is None


@pytest.mark.promise("K7", "K11")
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("part", ["workflow", "handler"])
@virtual
async def test_a_person_cannot_say_that_what_was_taken_out_did_not_happen_while_its_thread_works(room, part, back):
    room.reconciles = False
    async with room.open() as scheduler:
        await cut_off(room, scheduler, part)
        run = (await shown(scheduler))["issue"]["run"]
        if back:
            await scheduler.add_workflow(room.workflow())
        with pytest.raises(ScheduleTriggerError, match="wait until it has ended"):
            await scheduler.workflows.settle("mailroom", run, "did_not_happen")
        await room.sleep("15m")
        await scheduler.workflows.settle("mailroom", run, "happened")
        if not back:
            await scheduler.add_workflow(room.workflow())
        await room.sleep("1m")
        assert (room.ledger, (await shown(scheduler))["issue"]) == (["a"], None)


@pytest.mark.promise("K7", "K11")
@pytest.mark.parametrize("verdict", ["happened", "skip"])
@pytest.mark.parametrize("part", ["workflow", "handler"])
@virtual
async def test_what_a_person_settles_while_a_thread_works_goes_on_when_it_has_ended(room, part, verdict):
    room.reconciles = False
    async with room.open() as scheduler:
        await cut_off(room, scheduler, part)
        calls = len(room.calls)
        await scheduler.workflows.settle("mailroom", (await shown(scheduler))["issue"]["run"], verdict)
        await scheduler.add_workflow(room.workflow())
        await publish(scheduler, "b")
        await room.sleep("5m")
        assert (len(room.calls), room.ledger) == (calls, [])
        assert (await shown(scheduler))["working"] is not None
        await room.sleep("10m")
        assert room.ledger == ["a", "b"]
        assert set((await room.events(scheduler)).values()) == {"consumed"}


@pytest.mark.promise("K7")
@pytest.mark.parametrize("phase", ["prepare", "mutate"])
@virtual
async def test_a_handler_by_another_name_does_not_begin_beside_a_thread_of_the_one_before(room, phase):
    heard = []
    async with room.open() as scheduler:
        await cut_off(room, scheduler, "handler", phase)
        await publish(scheduler, "b")
        await scheduler.add_workflow(without_append(heard))
        await room.sleep("5m")
        assert heard == []
        await room.sleep("10m")
        if phase == "mutate":
            await scheduler.workflows.settle("mailroom", (await shown(scheduler))["issue"]["run"], "happened")
            await room.sleep("1m")
        assert heard == (["a", "b"] if phase == "prepare" else ["b"])


