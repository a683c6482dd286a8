"""What passed while nothing ran, when the run that was cut off is run again: covered by it, or missing."""

from __future__ import annotations

import asyncio

import pytest

from tests.kernel.scene import at, virtual
from tests.kernel.tallying import HOURLY, tally

CUTS = ("crash", "stop")


async def _cut_off(scene, scheduler, how):
    if how == "crash":
        await scene.crash(scheduler)
    else:
        await scheduler.stop(wait_for_jobs=False)
        await scheduler.close()


async def _through_an_outage(scene, how, catch_up, down="3h"):
    """A run of the slot at 1:00 is cut off at 1:30; a new life begins after the outage."""

    async def long(run):
        await asyncio.sleep(3600)

    scene.act = long
    first = scene.scheduler()
    await first.open()
    await first.add_job("a", HOURLY, catch_up=catch_up)
    await first.start()
    await scene.sleep("1h30m")
    await _cut_off(scene, first, how)
    scene.act = None
    await scene.sleep(down)
    return scene.scheduler()


@pytest.mark.promise("X25", "X9")
@pytest.mark.parametrize("how", CUTS)
@virtual
async def test_slots_that_are_not_caught_up_are_not_merged_into_the_run_that_recovers(scene, how):
    async with await _through_an_outage(scene, how, "skip") as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        found = await tally(scheduler)
        assert [run.slot for run in scene.runs] == [at(1), at(1)]
        assert (found.due, found.ran, found.missing, found.merged) == (4, 1, 3, 0)
        assert (await scheduler.get_slot("a", at(2))).sentence.endswith(
            "is missing: its time passed while nothing could run, and it was not caught up."
        )


@pytest.mark.promise("X25", "X14")
@pytest.mark.parametrize("how", CUTS)
@virtual
async def test_slots_that_the_run_that_recovers_covers_say_that_it_was_that_one(scene, how):
    async with await _through_an_outage(scene, how, "once") as scheduler:
        await scheduler.start()
        await scene.sleep("31m")
        found = await tally(scheduler)
        assert [run.slot for run in scene.runs] == [at(1), at(1), at(5)]
        assert (found.due, found.ran, found.missing, found.merged) == (5, 2, 0, 3)
        assert (await scheduler.get_slot("a", at(2))).merged_into == at(1)


@pytest.mark.promise("X25", "X9")
@pytest.mark.parametrize(("down", "expected"), [("35m", (0, 1)), ("3h", (3, 0))])
@pytest.mark.parametrize("how", CUTS)
@virtual
async def test_what_is_caught_up_within_a_time_is_covered_within_it_and_missing_after(scene, how, down, expected):
    async with await _through_an_outage(scene, how, {"within": "10m"}, down) as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        found = await tally(scheduler)
        assert (found.missing, found.merged) == expected
