"""`overlap: cancel_other`: the next slot replaces the run in progress; the run of a job that was changed finishes."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Every
from wakeful.kernel.context import Rights

GRIDS = {"every": Every("10m", anchor=at(0)), "cron": Cron("*/10 * * * *")}


def taking(scene, length):
    async def act(run):
        await scene.sleep(length)

    return act


async def paused(scheduler):
    await scheduler.pause_job("a")


async def removed(scheduler):
    await scheduler.remove_job("a")


async def disabled(scheduler):
    await scheduler.update_job("a", enabled=False)


async def skipping(scheduler):
    await scheduler.update_job("a", overlap="skip")


async def queueing(scheduler):
    await scheduler.update_job("a", overlap="queue")


async def retimed(scheduler):
    await scheduler.update_job("a", trigger=Every("1h", anchor=at(0)))


async def made_quicker(scheduler):
    await scheduler.update_job("a", trigger=Every("1m", anchor=at(0)))


async def held(scheduler):
    await scheduler.server_side.hold_all(None, Rights("ada", via="cli"))


async def paused_and_resumed(scheduler):
    await scheduler.pause_job("a")
    await scheduler.resume_job("a")


CHANGES = (
    *(paused, removed, disabled, skipping, queueing, retimed, made_quicker),
    *(held, paused_and_resumed),
)


@pytest.mark.promise("C7", "H8", "X9")
@pytest.mark.parametrize("by_hand", [False, True], ids=["its slot's run", "a run by hand"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@virtual
async def test_a_run_finishes_whose_job_was_changed_meanwhile(scene, change, by_hand):
    scene.act = taking(scene, "25m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m", anchor=at(0)), overlap="cancel_other")
        await scheduler.start()
        if by_hand:
            await scene.until(at(0, 5))
            await scheduler.run_job("a")
            await scene.until(at(0, 8))
        else:
            await scene.until(at(0, 12))
        run_id = scene.runs[0].id
        await change(scheduler)
        await scene.until(at(0, 59))
        assert (await scheduler.get_run(run_id)).outcome == "success"


@pytest.mark.promise("C7", "X9")
@virtual
async def test_an_edit_of_something_else_leaves_the_next_slot_to_replace_the_run(scene):
    scene.act = taking(scene, "25m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m", anchor=at(0)), overlap="cancel_other")
        await scheduler.start()
        await scene.until(at(0, 12))
        await scheduler.update_job("a", payload={"other": True})
        await scene.until(at(0, 25))
        assert scene.times == [at(0, 10), at(0, 20)]
        assert (await scheduler.get_run(scene.runs[0].id)).outcome == "cancelled"


@pytest.mark.promise("H2", "C7", "X9")
@pytest.mark.parametrize("trigger", GRIDS.values(), ids=GRIDS)
@virtual
async def test_a_clock_that_goes_back_and_forward_ends_no_run_before_the_next_slot(scene, trigger):
    scene.act = taking(scene, "25m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, overlap="cancel_other")
        await scheduler.start()
        await scene.until(at(0, 12))
        scene.step(days=-1)
        await scene.sleep("2m")
        scene.step(days=1)
        await scene.sleep("2m")
        assert (await scheduler.get_run(scene.runs[0].id)).status == "active"
        await scene.until(at(0, 21))
        assert [run.slot for run in scene.runs] == [at(0, 10), at(0, 20)], "the next slot replaces it"
        assert (await scheduler.get_run(scene.runs[0].id)).outcome == "cancelled"


@pytest.mark.promise("H2", "X9", "X31")
@virtual
async def test_after_a_step_back_the_next_slot_of_the_new_time_replaces_the_run(scene):
    scene.act = taking(scene, "25m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m", anchor=at(days=-30)), overlap="cancel_other")
        await scheduler.start()
        await scene.until(at(0, 12))
        scene.step(days=-1)
        await scene.sleep("10m")
        assert [run.slot for run in scene.runs] == [at(0, 10), at(0, 20, days=-1)]


@pytest.mark.promise("X9", "X14")
@pytest.mark.parametrize("on_crash", ["recover", "skip"])
@virtual
async def test_a_run_that_was_to_be_replaced_is_recovered_like_any_other(scene, on_crash):
    scene.act = taking(scene, "8m")
    scheduler = scene.scheduler()
    await scheduler.open()
    options = {"on_crash": "skip"} if on_crash == "skip" else {}
    await scheduler.add_job("a", Every("10m", anchor=at(0)), overlap="cancel_other", **options)
    await scheduler.start()
    await scene.until(at(0, 12))
    await scene.crash(scheduler)
    await scene.until(at(1, 5))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(1, 11))
        again = [] if on_crash == "skip" else [(at(0, 10), "recovery")]
        assert [(run.slot, run.reason) for run in scene.runs[1:]] == [*again, (at(1, 10), "schedule")]


@pytest.mark.promise("H8", "X9")
@virtual
async def test_a_run_by_hand_of_a_paused_job_finishes(scene):
    scene.act = taking(scene, "25m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m", anchor=at(0)), overlap="cancel_other")
        await scheduler.pause_job("a")
        await scheduler.start()
        await scene.until(at(0, 5))
        run_id = await scheduler.run_job("a")
        await scene.until(at(0, 40))
        assert (await scheduler.get_run(run_id)).outcome == "success"
