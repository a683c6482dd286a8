"""When the clock is set back, a workflow's waits take as long as they were to take."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.workflows.mailroom import UNKNOWN, fails, publish, virtual
from wakeful import TransientError


def calls(room, phase):
    return room.phases().count(phase)


async def begin(room, scheduler, **acts):
    await scheduler.start()
    await room.sleep("1m")
    room.calls.clear()
    room.after.update(acts)
    await publish(scheduler, "a")
    await room.sleep("1s")


@pytest.mark.promise("H2", "K11")
@virtual
async def test_a_wait_before_reconcile_is_no_longer_when_the_clock_is_set_back(room):
    room.verdict = UNKNOWN
    async with room.open() as scheduler:
        await begin(room, scheduler, mutate=fails(ValueError("lost")))
        assert calls(room, "reconcile") == 1, "and the next after 10 s"
        room.step(days=-1)
        await room.sleep("1m")
        assert calls(room, "reconcile") == 3, "after 10 s and 20 s more"
        room.verdict = None
        await room.sleep("2m")
        assert await room.events(scheduler) == {"a": "consumed"}


@pytest.mark.promise("H2", "K12")
@virtual
async def test_a_backoff_is_no_longer_when_the_clock_is_set_back(room):
    async with room.open() as scheduler:
        await begin(room, scheduler, prepare=fails(TransientError("busy"), 3))
        room.step(days=-1)
        await room.sleep("2m")
        assert room.ledger == ["a"], "after 10 s, 20 s and 40 s"


@pytest.mark.promise("H2", "K5")
@virtual
async def test_a_wake_time_is_no_further_away_when_the_clock_is_set_back(room):
    async with room.open() as scheduler:
        room.wake_at = (room.now + timedelta(hours=2)).isoformat()
        await begin(room, scheduler)
        before, room.wake_at = calls(room, "prepare"), None
        room.step(days=-1)
        await room.sleep("1m")
        handler = await room.handler(scheduler)
        ahead = handler.wake_at - room.scene.clock.now()
        assert timedelta(hours=1, minutes=57) < timedelta(milliseconds=ahead) < timedelta(hours=2)
        assert calls(room, "prepare") == before
        await room.sleep("2h")
        assert calls(room, "prepare") == before + 1


@pytest.mark.promise("H2", "K11")
@virtual
async def test_a_wait_is_no_longer_when_the_clock_was_set_back_while_nothing_ran(room):
    room.verdict = UNKNOWN
    async with room.open() as scheduler:
        await begin(room, scheduler, mutate=fails(ValueError("lost")))
        await room.crash(scheduler)
    room.step(days=-1)
    room.verdict = None
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("3m")  # when the process ended is known to the minute
        assert await room.events(scheduler) == {"a": "consumed"}
        assert room.ledger == ["a"]


@pytest.mark.promise("H2", "K5")
@virtual
async def test_a_wake_time_that_was_chosen_before_the_clock_was_set_back_is_within_a_day(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.wake_at = (room.now + timedelta(hours=20)).isoformat()
        room.act["mutate"] = lambda _: room.sleep("1m")
        await publish(scheduler, "a")
        await room.sleep("30s")
        room.step(days=-1)
        await room.sleep("1m")
        handler = await room.handler(scheduler)
        assert handler.wake_at is not None
        assert handler.wake_at - room.scene.clock.now() <= 86_400_000


@pytest.mark.promise("H2", "K11")
@virtual
async def test_a_wait_is_no_longer_when_the_clock_is_set_back_while_reconcile_is_called(room):
    room.verdict = UNKNOWN
    async with room.open() as scheduler:
        await begin(room, scheduler, mutate=fails(ValueError("lost")))

        async def step_back(ctx):
            room.step(days=-1)
            room.act.clear()

        room.act["reconcile"] = step_back
        await room.sleep("2m")
        assert calls(room, "reconcile") == 4, "after 10 s, 20 s and 40 s"
