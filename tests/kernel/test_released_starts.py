"""A start that was released before its handler was called, and that is not wanted any more: its job goes on."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Every, Interval, Once
from wakeful.kernel.actions.runs import release_runs

TIMED = {
    "every": Every("1h", anchor=at(0)),
    "cron": Cron("0 * * * *"),
    "interval": Interval("1h", start=at(1)),
}


async def released(scene, trigger, **options):
    """The start of 1:00 is on record and was given back, as by a stop; nothing runs after that."""

    async def act(run):
        if len(scene.runs) == 1:
            await scene.sleep("40m")

    scene.act = act
    scheduler = scene.scheduler()
    await scheduler.open()
    await scheduler.add_job("a", trigger, **options)
    await scheduler.start()
    await scene.until(at(1, 5))

    def release(tx, context):
        release_runs(tx, context, tx.runs.of_nodes([context.id]))

    await scheduler.transact(release, wakes=False)
    await scene.crash(scheduler)


@pytest.mark.promise("H2", "H4", "X9", "X31")
@pytest.mark.parametrize("catch_up", ["skip", {"within": "10m"}], ids=["skip", "within"])
@pytest.mark.parametrize("trigger", TIMED.values(), ids=TIMED)
@virtual
async def test_a_job_goes_on_whose_released_start_catch_up_lets_go(scene, trigger, catch_up):
    await released(scene, trigger, catch_up=catch_up)
    await scene.until(at(3, 30))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(8))
        assert (await scheduler.get_job("a")).status in ("idle", "running")
        assert len(scene.runs) - 1 >= 4
        tally = (await scheduler.get_ledger("a", since=at(0))).total
        assert (tally.merged, tally.unaccounted) == (0, 0)
        if not trigger.relative:
            assert tally.missing == 3, "of 1:00, 2:00 and 3:00"


@pytest.mark.promise("H2", "H4", "X31")
@pytest.mark.parametrize("trigger", [TIMED["every"], TIMED["cron"]], ids=["every", "cron"])
@virtual
async def test_a_job_goes_on_whose_released_start_is_cancelled_and_catches_up_once(scene, trigger):
    await released(scene, trigger)
    async with scene.scheduler() as scheduler:
        (waiting,) = [run for run in await scheduler.get_run_log("a") if run.status == "queued"]
        await scheduler.cancel_run(waiting.id)
    await scene.until(at(3, 30))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(5, 1))
        assert [(run.slot, run.reason) for run in scene.runs[1:]] == [
            (at(3), "catch_up"),
            (at(4), "schedule"),
            (at(5), "schedule"),
        ]
        assert (await scheduler.get_ledger("a", since=at(0))).total.unaccounted == 0


@pytest.mark.promise("H13")
@virtual
async def test_a_one_shot_is_over_whose_released_start_is_cancelled(scene):
    await released(scene, Once(at(1)))
    async with scene.scheduler() as scheduler:
        (waiting,) = [run for run in await scheduler.get_run_log("a") if run.status == "queued"]
        await scheduler.cancel_run(waiting.id)
        await scheduler.start()
        await scene.until(at(5))
        assert len(scene.runs) == 1
        assert (await scheduler.get_job("a")).status == "disabled"
