"""`Defer(until)`: the same slot is tried again at that time, whatever slots come before it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Defer, Every


@pytest.mark.promise("X9")
@pytest.mark.parametrize("trigger", [Every("1h", anchor=at(0)), Cron("0 * * * *")], ids=lambda trigger: trigger.type)
@virtual
async def test_a_run_deferred_beyond_the_next_slot_runs_again_at_its_time_and_the_slots_go_on(scene, trigger):
    async def act(run):
        if run.slot == at(1) and run.attempt == 1:
            raise Defer(at(3, 30), "rate limit")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger)
        await scheduler.start()
        await scene.until(at(4, 1))
        began = [(run.slot, run.attempt, time) for run, time in zip(scene.runs, scene.times, strict=True)]
        assert began == [
            (at(1), 1, at(1)),
            (at(2), 1, at(2)),
            (at(3), 1, at(3)),
            (at(1), 2, at(3, 30)),
            (at(4), 1, at(4)),
        ]


@pytest.mark.promise("X9")
@virtual
async def test_every_slot_that_is_deferred_is_tried_again_once_however_long_that_goes_on(scene):
    async def act(run):
        raise Defer(scene.now + timedelta(minutes=90), "busy")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(0)))
        await scheduler.start()
        await scene.until(at(days=1, minutes=5))
        again = [run.slot for run in scene.runs if run.attempt == 2]
        assert again == [at(hour) for hour in range(1, 23)]
        assert len(scene.runs) <= 2 * 24 + 2, "further attempts pile up"
        log = await scheduler.get_run_log("a", limit=200)
        assert len([run for run in log if run.status == "queued"]) <= 2
        assert any(run.error and "a later scheduled time was deferred too" in run.error for run in log)


@pytest.mark.promise("X9")
@virtual
async def test_slots_that_are_deferred_to_the_same_moment_run_again_as_one(scene):
    async def act(run):
        if scene.now < at(5, 30):
            raise Defer(at(5, 30), "rate limit")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(0)))
        await scheduler.start()
        await scene.until(at(5, 59))
        assert scene.times == [at(1), at(2), at(3), at(4), at(5), at(5, 30)]
        log = await scheduler.get_run_log("a")
        assert Counter(run.outcome for run in log) == {"success": 1, "deferred": 5}
        assert len([run for run in log if run.error and "deferred to the same time" in run.error]) == 4


@pytest.mark.promise("X9", "H12")
@virtual
async def test_a_deferred_run_survives_a_restart(scene):
    async def act(run):
        if run.slot == at(1) and run.attempt == 1:
            raise Defer(at(3, 30))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(0)))
        await scheduler.start()
        await scene.until(at(2, 30))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(3, 31))
        assert (scene.runs[-1].slot, scene.runs[-1].attempt, scene.times[-1]) == (at(1), 2, at(3, 30))
