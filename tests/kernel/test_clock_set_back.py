"""The clock is set back while a job runs or waits: it goes on at its own pace, not when the old time returns."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, settled_slots, virtual
from wakeful import ApprovalNeeded, Cron, Every, Interval, Manual, Once, TransientError, Wait
from wakeful.kernel.context import Rights

ADA = Rights("ada", via="cli")
HOURLY = {
    "every": Every("1h", anchor=at(days=-30)),
    "cron": Cron("0 * * * *"),
    "interval": Interval("1h"),
}


async def by_hand(scene, scheduler):
    """A start by hand takes ten minutes."""
    await scheduler.run_job("a")


async def tried_again(scene, scheduler):
    """What was started by hand failed, and is tried again."""
    scene.first = TransientError("not yet")
    await scheduler.run_job("a")
    await scene.sleep("2m")


async def asking(scene, scheduler):
    """What was started by hand asks a person."""
    scene.first = ApprovalNeeded("May I?")
    await scheduler.run_job("a")
    await scene.sleep("2m")


async def reporting(scene, scheduler):
    """What was started by hand waits for a report from elsewhere."""
    scene.first = Wait(at(3))
    await scheduler.run_job("a")
    await scene.sleep("2m")


BUSY = {busy.__name__: busy for busy in (by_hand, tried_again, asking, reporting)}


def acting(scene):
    scene.first = None

    async def act(run):
        error, scene.first = scene.first, None
        if error is not None:
            raise error
        if run.reason != "schedule":
            await scene.sleep("10m")

    return act


@pytest.mark.promise("H2", "X31")
@pytest.mark.parametrize("busy", BUSY.values(), ids=BUSY)
@pytest.mark.parametrize("trigger", HOURLY.values(), ids=HOURLY)
@virtual
async def test_a_job_with_another_run_in_progress_keeps_its_pace(scene, trigger, busy):
    scene.act = acting(scene)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, retry=["2m"])
        await scheduler.start()
        await scene.until(at(2, 30))
        await busy(scene, scheduler)
        await scene.sleep("1m")
        scene.step(days=-1)
        before = len(scene.runs)
        await scene.sleep("3m")
        for run in [run for run in await scheduler.get_run_log("a") if run.status == "waiting"]:
            await (scheduler.approve_run(run.id, by="ada") if busy is asking else scheduler.complete_run(run.id))
        await scene.sleep("1d")
        started = [run for run in scene.runs[before:] if run.reason == "schedule"]
        assert len(started) >= 22, "silent until the old time returns"
        assert len(settled_slots(scene.runs)) == len(set(settled_slots(scene.runs)))


@pytest.mark.promise("H2", "X31")
@pytest.mark.parametrize("trigger", HOURLY.values(), ids=HOURLY)
@virtual
async def test_a_job_that_waits_for_a_lane_keeps_its_pace(scene, trigger):
    async def act(run):
        await scene.sleep("90m" if run.job == "holder" else "1m")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, lanes={"press": 1})
        await scheduler.add_job("holder", Once(at(1, 30)), lanes={"press": 1}, timeout="3h")
        await scheduler.start()
        await scene.until(at(2, 30))
        before = len(scene.of("a"))
        scene.step(days=-1)
        await scene.sleep("1d")
        assert len(scene.of("a")) - before >= 22
        assert len(settled_slots(scene.runs)) == len(set(settled_slots(scene.runs)))


@pytest.mark.promise("H2", "X22", "X31")
@virtual
async def test_what_waited_for_a_lane_before_the_clock_was_set_back_keeps_its_place_in_the_line(scene):
    async def act(run):
        await scene.sleep("50m")

    scene.act = act
    async with scene.scheduler() as scheduler:
        for name in ("holder", "first", "second"):
            await scheduler.add_job(name, Manual(), lanes={"press": 1})
        for number in range(6):
            await scheduler.add_job(f"later-{number}", Manual(), lanes={"press": 1})
        await scheduler.start()
        for name in ("holder", "second", "first"):
            await scheduler.run_job(name)
            await scene.sleep("1m")
        scene.step(days=-1)
        await scene.sleep("2m")
        for number in range(6):
            await scheduler.run_job(f"later-{number}")
        await scene.sleep("3h")
        assert [run.job for run in scene.runs][:4] == ["holder", "second", "first", "later-0"]


@pytest.mark.promise("H2", "X31")
@virtual
async def test_a_job_whose_start_by_hand_was_cut_off_keeps_its_pace_when_the_clock_was_set_back_meanwhile(scene):
    async def act(run):
        await scene.sleep("10m")

    scene.act = act
    scheduler = scene.scheduler()
    await scheduler.open()
    await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
    await scheduler.start()
    await scene.until(at(2, 30))
    await scheduler.run_job("a")
    await scene.sleep("1m")
    await scene.crash(scheduler)
    scene.step(days=-1)
    before = len(scene.runs)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1d")
        assert len([run for run in scene.runs[before:] if run.reason == "schedule"]) >= 22


@pytest.mark.promise("H2", "X31")
@virtual
async def test_a_job_that_was_held_keeps_its_pace(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
        await scheduler.start()
        await scene.until(at(2, 30))
        await scheduler.server_side.hold_all(None, ADA)
        await scene.until(at(3, 30))
        scene.step(days=-1)
        await scene.sleep("5m")
        await scheduler.server_side.release_all(ADA)
        before = len(scene.runs)
        await scene.sleep("1d")
        assert len(scene.runs) - before >= 22
