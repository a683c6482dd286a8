"""Every slot is accounted for, and once, when the clock is set while jobs run."""

from __future__ import annotations

import asyncio

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


EDITS = {
    "edited after the clock went back": ("step", "edit"),
    "edited before the clock went back": ("edit", "step"),
    "edited before and after": ("edit", "step", "edit"),
}


@pytest.mark.promise("X25", "H2")
@pytest.mark.parametrize("course", EDITS.values(), ids=EDITS)
@virtual
async def test_slots_of_two_triggers_in_one_time_stay_accounted_for_once_their_runs_are_pruned(scene, course):
    """The slots that ran before the clock went back lie off the grid of the trigger whose time it is now."""
    triggers = iter([Every("7m", anchor=at(days=-30)), Every("4m", anchor=at(days=-30))])
    scene.tuning = scene.tuning._replace(sweep_ms=60_000)
    async with scene.scheduler(retention=Retention(runs_per_job=3, check_every=3)) as scheduler:
        await scheduler.add_job("a", Every("10m", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("4h")
        for what in course:
            if what == "edit":
                await scheduler.update_job("a", trigger=next(triggers))
            else:
                scene.step(hours=-2)
            await scene.sleep("20m")
        for _ in range(4):
            await scene.sleep("50m")
            await tally(scheduler)
        slots = [run.slot for run in scene.runs]
        assert len(slots) == len(set(slots))
        for slot in slots:
            assert (await scheduler.get_slot("a", slot)).fate == "ran"


@pytest.mark.promise("X25", "H2")
@virtual
async def test_slots_that_came_while_a_run_from_before_the_clock_went_back_went_on_are_accounted_for(scene):
    async def long(run):
        await asyncio.sleep(5400)

    async with scene.scheduler() as scheduler:
        scene.act = long
        await scheduler.add_job("a", HOURLY, timeout="9h")
        await scheduler.start()
        await scene.sleep("1d5m")
        scene.step(hours=-20)
        await scheduler.update_job("a", trigger=Every("10m", anchor=at(days=-30)))
        scene.act = None
        for _ in range(4):
            await scene.sleep("40m")
            found = await tally(scheduler)
        assert found.passed_over["already_running"] >= 5


@pytest.mark.promise("X25", "H3")
@virtual
async def test_a_slot_of_a_new_trigger_just_after_one_that_was_run_is_accounted_for(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("1h1m")
        scene.step(minutes=-40)
        await scheduler.update_job("a", trigger=Every("3m", anchor=at(days=-30, seconds=3)))
        for _ in range(4):
            await scene.sleep("20m")
            found = await tally(scheduler)
        assert found.passed_over == {"below_floor": 1}
