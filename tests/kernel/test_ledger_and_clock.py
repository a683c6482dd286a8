"""Every slot is accounted for, and once, when the clock is set while jobs run."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from tests.kernel.tallying import HOURLY, tally
from wakeful import Cron, Every, Retention


@pytest.mark.promise("X25")
@virtual
async def test_a_clock_that_goes_forward_and_back_leaves_no_slot_without_a_record(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.sleep("2h30m")
        scene.step(hours=10)
        await scene.sleep("2h")
        await tally(scheduler)
        scene.step(hours=-10)
        for _ in range(14):
            await scene.sleep("1h")
            await tally(scheduler)


@pytest.mark.promise("X25")
@virtual
async def test_times_that_are_given_after_the_clock_went_back_count_from_then_on(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Cron("30 2 * * *"))
        await scheduler.start()
        await scene.sleep("12h10m")
        await scheduler.update_job("a", trigger=Cron("40 2 * * *"))
        scene.step(hours=-8)
        await scene.sleep("2m")
        await scheduler.update_job("a", trigger=HOURLY)
        await scene.sleep("1h")
    await scene.sleep("3h")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        found = await tally(scheduler)
        assert (found.due, found.ran, found.merged) == (5, 3, 2)


@pytest.mark.promise("X25")
@virtual
async def test_a_slot_that_was_run_does_not_pass_as_well_when_its_time_comes_again(scene):
    """After the clock went back, a failure makes a job wait past slots of which some were run before."""
    async with scene.scheduler(retention=Retention(runs_per_job=1)) as scheduler:
        await scheduler.add_job("a", Every("3s", anchor=at()))
        await scheduler.start()
        await scene.sleep("29s")
        scene.act = failing()
        scene.step(hours=-1)
        await scene.sleep("1h1m")
        found = await tally(scheduler)
        assert found.ran > 4
