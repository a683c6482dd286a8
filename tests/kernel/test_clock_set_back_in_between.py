"""The clock is set back while something else goes on: nothing waits for the old time, and the verdict knows."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import After, Defer, Every, Once
from wakeful.kernel.context import Rights

pytestmark = pytest.mark.promise("H2", "X31")

ADA = Rights("ada", via="cli")


@virtual
async def test_what_starts_after_another_job_goes_on_within_its_minimum_interval(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("up", Every("2h", anchor=at(0)))
        await scheduler.add_job("down", After("up"), bounded=True)
        await scheduler.start()
        await scene.until(at(2, 1))
        scene.step(days=-30)
        before = len(await scheduler.get_run_log("down", 100))
        await scene.sleep("1d")
        assert len(await scheduler.get_run_log("down", 100)) - before == 12


@virtual
async def test_a_run_in_progress_that_defers_is_tried_again_at_the_time_it_asked_for(scene):
    calls = []

    async def defers(run):
        calls.append(scene.now)
        if len(calls) == 1:
            scene.step(days=-30)
            await scene.sleep(120)
            raise Defer(scene.now + (at(0, 5) - at(0)))

    async with scene.scheduler() as scheduler:
        scheduler.on_job_due("job", defers)
        await scheduler.add_job("a", Every("1h", anchor=at(0)))
        await scheduler.start()
        await scene.until(at(1))
        await scene.sleep("10m")
        assert [round((later - at(0)).total_seconds()) % 3600 for later in calls[1:2]] == [420]


@virtual
async def test_a_one_shot_of_the_past_that_waits_for_a_lane_starts_when_that_is_free(scene):
    async def works(run):
        await scene.sleep(600)

    async with scene.scheduler() as scheduler:
        scheduler.on_job_due("job", works)
        for name in "xy":
            await scheduler.add_job(name, Once(at(0) - (at(48) - at(0))), lanes={"l": 1})
        await scheduler.start()
        await scene.sleep(60)
        scene.step(days=-1)
        await scene.sleep("1h")
        assert [(await scheduler.get_job(name)).status for name in "xy"] == ["done", "done"]


@pytest.mark.promise("X26")
@virtual
async def test_the_verdict_is_not_unsure_for_as_long_as_the_step_was(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m", anchor=at(0)))
        await scheduler.start()
        await scene.until(at(3))
        scene.step(days=-30)
        await scene.sleep("30h")
        assert "Unsure" not in (await scheduler.get_verdict()).sentence


@pytest.mark.promise("H13", "X26")
@virtual
async def test_a_one_shot_that_a_crash_cut_off_and_that_is_not_run_again_is_an_alert(scene):
    async def hangs(run):
        await scene.sleep(3600)

    async with scene.scheduler() as scheduler:
        scheduler.on_job_due("job", hangs)
        await scheduler.add_job("a", Once(at(0, 1)), on_crash="skip")
        await scheduler.start()
        await scene.until(at(0, 2))
        await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep(60)
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["failed"]


@pytest.mark.promise("C7")
@virtual
async def test_a_hung_run_is_replaced_once_a_hold_is_over(scene):
    starts = []

    async def hangs(run):
        starts.append(scene.now)
        await scene.sleep(36_000)

    async with scene.scheduler() as scheduler:
        scheduler.on_job_due("job", hangs)
        await scheduler.add_job("a", Every("10m", anchor=at(0)), overlap="cancel_other")
        await scheduler.start()
        await scene.until(at(0, 15))
        await scheduler.server_side.hold_all(None, ADA)
        await scene.until(at(0, 25))
        await scheduler.server_side.release_all(ADA)
        await scene.until(at(0, 45))
        assert [start.minute for start in starts] == [10, 30, 40]
