"""A function that is cut off, swallows that and returns has not done its work: what was to come of it is not known."""

from __future__ import annotations

import asyncio

import pytest

from tests.workflows.mailroom import publish, virtual
from wakeful import ids


def stubborn(room, interval="1h"):
    """An act that takes long, and goes on as if nothing had happened when it is cut off."""

    async def act(ctx):
        try:
            await room.sleep(interval)
        except asyncio.CancelledError:
            ctx.log.debug("swallowed")

    return act


@pytest.mark.promise("K11", "K12")
@pytest.mark.parametrize(
    ("phase", "status"),
    [("prepare", "paused:transient"), ("mutate", "paused:reconciliation"), ("next", "paused:transient")],
)
@virtual
async def test_a_function_over_its_time_has_failed_even_when_it_swallows_that(room, phase, status):
    room.reconciles = False
    async with room.open(append={"timeout": "1m"}) as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        room.act[phase] = stubborn(room)
        await publish(scheduler, "a")
        await room.sleep("65s")
        assert (await room.attempts(scheduler))[-1].status == status
        assert f"{phase} took longer than 1m" in (await room.row(scheduler)).issue_message
        assert await room.events(scheduler) == {"a": "pending" if phase == "prepare" else "reserved"}


@pytest.mark.promise("K11")
@virtual
async def test_a_reconcile_over_its_time_has_not_answered_even_when_it_swallows_that(room):
    room.mails = ["a"]
    room.act["mutate"] = room.act["reconcile"] = stubborn(room)
    async with room.open(append={"timeout": "10s"}) as scheduler:
        await scheduler.start()
        await room.sleep("25s")
        assert room.phases().count("reconcile") == 1
        assert "reconcile took longer than 10s" in (await room.row(scheduler)).issue_message
        assert await room.events(scheduler) == {"a": "reserved"}


@pytest.mark.promise("K10", "K11")
@virtual
async def test_a_mutation_that_a_person_cancels_is_uncertain_even_when_it_swallows_that(room):
    room.mails = ["a"]
    room.act["mutate"] = stubborn(room)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        cancelled = (await room.attempts(scheduler))[-1]
        del room.act["mutate"]
        await scheduler.cancel_run(ids.run_text(cancelled.id))
        await room.sleep("1m")
        assert room.phases().count("reconcile") == 1, "only that knows whether it happened"
        run = await scheduler.get_run(ids.run_text(cancelled.id))
        assert run.outcome == "cancelled"
