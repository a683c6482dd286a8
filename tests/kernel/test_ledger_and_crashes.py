"""What passed while nothing ran, when the run that was cut off is run again: covered by it, or missing."""

from __future__ import annotations

import asyncio

import pytest

from tests.kernel.scene import at, virtual
from tests.kernel.tallying import HOURLY, tally
from wakeful import Every, Once

CUTS = ("crash", "stop")


async def _cut_off(scene, scheduler, how):
    if how == "crash":
        await scene.crash(scheduler)
    else:
        await scheduler.stop(wait_for_jobs=False)
        await scheduler.close()


async def _through_an_outage(scene, how, catch_up, down="3h", **options):
    """A run of the slot at 1:00 is cut off at 1:30; a new life begins after the outage."""

    async def long(run):
        await asyncio.sleep(3600)

    scene.act = long
    first = scene.scheduler()
    await first.open()
    await first.add_job("a", HOURLY, catch_up=catch_up, **options)
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


@pytest.mark.promise("X25", "H4")
@virtual
async def test_slots_are_not_merged_into_a_run_that_waits_for_a_lane_and_never_starts(scene):
    """The run that recovers needs two lanes: it has found one free, waits for the other, and a person cancels it."""

    async def act(run):
        await asyncio.sleep({"short": 600, "long": 1_500}.get(run.job, 60))

    scene.act = act
    first = scene.scheduler()
    await first.open()
    await first.add_job("a", Every("1m", anchor=at(0)), lanes={"one": 1, "two": 1})
    await first.start()
    await scene.sleep("1m30s")
    await scene.crash(first)
    async with scene.scheduler() as scheduler:
        for name, lane in (("short", "one"), ("long", "two")):
            await scheduler.add_job(name, Once(at(0, 1)), lanes={lane: 1}, priority=1)
        await scheduler.start()
        await scene.until(at(0, 15))
        (waiting,) = [run for run in await scheduler.get_run_log("a") if run.status == "queued"]
        assert waiting.reason == "recovery"
        await scheduler.cancel_run(waiting.id)
        await scene.sleep("30s")
        found = await tally(scheduler)
        assert (found.unaccounted, found.merged) == (0, 0), found
        await scene.until(at(0, 27))
        started = [run.slot for run in scene.of("a") if run.attempt == 1]
        assert started[:2] == [at(0, 1), at(0, 26)], "what was missed meanwhile is caught up"
        assert (await tally(scheduler)).unaccounted == 0


@pytest.mark.promise("X25", "X9")
@pytest.mark.parametrize(("catch_up", "expected"), [("skip", (2, 0)), ("once", (0, 2))])
@virtual
async def test_what_came_before_a_second_crash_is_neither_run_late_nor_merged_where_nothing_is_caught_up(
    scene, catch_up, expected
):
    """The run that recovers is cut off as well, and waits for its backoff before it is tried a third time."""
    second = await _through_an_outage(scene, "crash", catch_up, down="1s", backoff=["10s"])

    async def long(_):
        await asyncio.sleep(10_800)

    scene.act = long
    await second.open()
    await second.start()
    await scene.until(at(3, 30))
    await scene.crash(second)
    scene.act = None
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("10m")
        assert [(run.slot, run.attempt) for run in scene.runs] == [(at(1), 1), (at(1), 2), (at(1), 3)]
        found = await tally(scheduler)
        assert (found.missing, found.merged) == expected
        await scene.until(at(4, 1))
        assert scene.runs[-1].slot == at(4)
