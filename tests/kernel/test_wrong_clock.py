"""A clock that is wrong for a while: nothing is deleted by it, and what was stored by it goes on when it is right."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, settled_slots, virtual
from tests.kernel.stepping import clock_steps
from wakeful import Defer, Every, Interval, Manual, Once, Retention


@pytest.mark.promise("H2", "X11")
@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted meanwhile"])
@virtual
async def test_a_clock_that_is_ahead_for_a_while_deletes_no_history(scene, restart):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(days=10, minutes=1))
        scene.step(days=60)
        if restart:
            await scheduler.stop(wait_for_jobs=False)
            await scheduler.start()
        await scene.sleep("3h")
        scene.step(days=-60)
        await scene.sleep("3m")
        log = await scheduler.get_run_log("a", limit=1000)
        assert len([run for run in log if run.slot <= at(days=10)]) == 240


@pytest.mark.promise("H2", "X11")
@virtual
async def test_a_clock_that_was_ahead_when_the_machine_came_up_deletes_no_history(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(days=10, minutes=1))
    scene.step(days=60)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1h")
        assert len(await scheduler.get_run_log("a", limit=1000)) >= 240


@pytest.mark.promise("X11")
@virtual
async def test_once_the_clock_is_steady_history_is_deleted_by_age_again(scene):
    async with scene.scheduler(retention=Retention(days=2)) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(days=5, minutes=1))
        scene.step(minutes=5)
        await scene.sleep("1d")
        assert len(await scheduler.get_run_log("a", limit=1000)) <= 50


@pytest.mark.promise("X11")
@virtual
async def test_after_a_long_time_without_a_server_history_is_deleted_where_the_clock_was_not_set(
    scene, minutely_sweeps
):
    async with scene.scheduler(retention=Retention(days=2)) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(days=2))
    await scene.until(at(days=20))
    async with scene.scheduler(retention=Retention(days=2)) as scheduler:
        await scheduler.start()
        await scene.sleep("10m")
        assert len(await scheduler.get_run_log("a", limit=1000)) <= 2


@pytest.mark.promise("H2", "X11")
@virtual
async def test_more_than_a_year_ahead_and_back_runs_no_slot_twice(scene):
    async with scene.scheduler(retention=Retention(runs_per_job=10, check_every=5)) as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
        await scheduler.start()
        await scene.until(at(days=6, minutes=1))
        scene.step(days=400)
        await scene.sleep("90m")
        scene.step(days=-406)
        await scene.sleep("7d")
        slots = settled_slots(scene.runs)
        assert len(slots) == len(set(slots))


@pytest.mark.promise("H2", "X31")
@pytest.mark.parametrize("running", [True, False], ids=["seen by the engine", "while none ran"])
@pytest.mark.parametrize("interval", ["1h", "7h"])
@virtual
async def test_a_job_that_was_stored_while_the_clock_was_ahead_runs_once_it_is_right(scene, interval, running):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("other", Manual())
        await scheduler.start()
        await scene.until(at(0, 7))
        if not running:
            await scheduler.stop()
        scene.step(days=20)
        await scheduler.add_job("a", Every(interval))
        await scheduler.add_job("b", Every(interval, anchor=at(0)))
        await scheduler.update_job("other", trigger=Every(interval))
        await scheduler.update_job("other", payload={"n": 1})
        await scene.sleep("3m")
        scene.step(days=-20)
        if not running:
            await scheduler.start()
        began = len(scene.runs)
        await scene.sleep("1d")
        expected = 23 if interval == "1h" else 3
        for name in ("a", "b", "other"):
            assert len([run for run in scene.runs[began:] if run.job == name]) >= expected, name
        await scheduler.stop()
        await scheduler.start()
        assert await clock_steps(scheduler) == (2 if running else 1), "each is noticed once"
        tally = (await scheduler.get_ledger(since=at(days=-1))).total
        assert tally.unaccounted == 0
        assert len({(run.job, run.slot) for run in scene.runs}) == len(scene.runs)


@pytest.mark.promise("H2", "X31")
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
@virtual
async def test_a_job_keeps_its_pace_however_often_the_clock_is_set_back(scene, restarted):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"))
        await scheduler.add_job("b", Interval("10m", start=at(0, 10)))
        await scheduler.start()
        for _ in range(3):
            await scene.sleep("5m")
            scene.step(days=-4, seconds=-7)
            if restarted:
                await scheduler.stop()
                await scheduler.start()
            began = len(scene.runs)
            await scene.sleep("6h")
            for name in "ab":
                assert len([run for run in scene.runs[began:] if run.job == name]) >= 35, name
        tally = (await scheduler.get_ledger(since=at(days=-20))).total
        assert tally.unaccounted == 0
        assert len({(run.job, run.slot) for run in scene.runs}) == len(scene.runs)


@pytest.mark.promise("H2")
@pytest.mark.parametrize("retimed", [False, True], ids=["as it was added", "with another trigger"])
@virtual
async def test_a_job_that_is_edited_just_after_the_clock_was_set_back_runs_on(scene, retimed):
    async with scene.scheduler() as scheduler:
        if not retimed:
            scene.step(days=60)
        await scheduler.add_job("a", Every("2h" if retimed else "1h"))
        await scheduler.start()
        if retimed:
            scene.step(days=60)
            await scene.sleep("2m")
            await scheduler.update_job("a", trigger=Every("1h"))
        await scene.sleep("90m")
        scene.step(days=-59)
        await scheduler.update_job("a", timeout="30m")  # before the step is noticed
        before = len(scene.runs)
        await scene.sleep("5h30m")
        assert len(scene.runs) - before == 6
        assert len({run.slot for run in scene.runs}) == len(scene.runs)


@pytest.mark.promise("H2")
@virtual
async def test_a_deferred_run_that_stands_for_what_passed_hides_no_slot_that_was_run_before_the_clock_went_back(scene):
    async def put_off(run):
        return Defer(at(34)) if run.slot == at(8, 20) and run.attempt == 1 else None

    scene.act = put_off
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("20m", anchor=at(0)))
        await scheduler.start()
        await scene.until(at(28, 1))
        scene.step(hours=-25)
        await scene.sleep("5m")
        scene.step(hours=18)
        await scene.sleep("9h")
        assert [run.attempt for run in scene.of("a") if run.slot == at(8, 20)] == [1, 2]
        assert (await scheduler.get_job("a")).enabled
        assert [alert.kind for alert in await scheduler.list_alerts() if alert.kind != "clock"] == []
        slots = settled_slots(scene.runs)
        assert len(set(slots)) == len(slots)
        assert at(30) in slots, "it goes on where it was"
        assert (await scheduler.get_ledger(since=at(days=-1))).total.unaccounted == 0


@pytest.mark.promise("H2")
@virtual
async def test_an_anchor_that_a_person_gave_is_waited_for_also_after_the_clock_passed_it_by_mistake(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(days=5)))
        await scheduler.add_job("once", Once(at(days=5)))
        await scheduler.start()
        scene.step(days=4)
        await scene.sleep("2m")
        scene.step(days=-4)
        await scene.until(at(days=1))
        assert scene.runs == []
        await scene.until(at(3, 1, days=5))
        assert [run.slot for run in scene.of("a")] == [at(hour, days=5) for hour in range(4)]
