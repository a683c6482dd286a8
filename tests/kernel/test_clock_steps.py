"""The clock is set: no slot twice, no job lost, no storm, and an alert."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kernel.scene import at, settled_slots, virtual
from tests.kernel.stepping import HOURLY, STEPS, clock_steps, live_through, step_through
from wakeful import Every, Interval, Manual, Once, StoreUnreachable, Wait


@pytest.mark.promise("H2")
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("trigger", HOURLY.values(), ids=HOURLY)
@virtual
async def test_a_stepped_clock_repeats_no_slot_loses_no_job_and_starts_no_storm(scene, trigger, steps):
    await step_through(scene, trigger, steps, "3h")


@pytest.mark.promise("H2")
@virtual
async def test_within_one_period_the_job_is_silent_until_its_last_slot_has_passed(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(3, 5))
        scene.step(minutes=-10)
        await scene.sleep("1m")
        assert (await scheduler.get_job("a")).next_run_at == at(4)
        await scene.until(at(4, 1))
        assert scene.slots == [at(1), at(2), at(3), at(4)]


@pytest.mark.promise("H2")
@pytest.mark.parametrize("stay", ["29m", "149m", "5h"])
@virtual
async def test_after_a_day_forward_and_back_every_slot_runs_once_and_recorded_ones_are_left_out(scene, stay):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(2, 30))
        scene.step(days=1)
        await scene.sleep(stay)
        scene.step(days=-1)
        await scene.until(at(34))
        slots = settled_slots(scene.runs)
        assert len(slots) == len(set(slots))
        job = await scheduler.get_job("a")
        assert (job.status, job.last_error, job.notes) == ("idle", None, [])
        spent = {"29m": 29, "149m": 149, "5h": 300}[stay]
        first = -(-(150 + spent) // 60)  # the first hour after the clock went back
        expected = {at(hour) for hour in range(first, 35)}
        assert expected - set(slots) == set(), "slots that were never run"


@pytest.mark.promise("H2", "H13")
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@virtual
async def test_once_fires_one_time_whatever_the_clock_does(scene, steps):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("before", Once(at(0, 30)))
        await scheduler.add_job("between", Once(at(2)))
        await scheduler.start()
        await live_through(scene, scheduler, steps, "1h")
        await scene.sleep("50h")
        assert sorted(run.job for run in scene.runs) == ["before", "between"]


@pytest.mark.promise("H2", "H4")
@virtual
async def test_a_step_forward_is_caught_up_once_and_counted_as_missed(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 30))
        scene.step(days=1)
        await scene.sleep("2m")
        assert [(run.slot, run.reason) for run in scene.runs[1:]] == [(at(25), "catch_up")]
        assert (await scheduler.get_job("a")).missed == 23


@pytest.mark.promise("H2", "H6")
@virtual
async def test_a_pause_after_an_error_keeps_its_length_when_the_clock_is_set_back(scene):
    async def act(run):
        if len(scene.runs) == 1:
            raise RuntimeError("once")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10s", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("11s")
        scene.step(hours=-5)
        await scene.sleep("2m")
        second = scene.times[1] + timedelta(hours=5)
        assert at(seconds=40) <= second <= at(seconds=71), "the step itself may go unnoticed for a sleep of the loop"


@pytest.mark.promise("H2", "H6")
@pytest.mark.parametrize("trigger", [Once(at(0)), Every("1d", anchor=at(0))], ids=lambda trigger: trigger.type)
@virtual
async def test_a_retry_that_waits_comes_after_the_time_it_was_given_when_the_clock_is_set_back(scene, trigger):
    async def act(run):
        if run.attempt == 1:
            raise RuntimeError("once")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, retry={"delays": ["10m"]})
        await scheduler.start()
        await scene.until(at(0, 1) if trigger.type == "once" else at(0, 1, days=1))
        began = scene.times[0]
        scene.step(hours=-5)
        await scene.sleep("12m")
        assert [(run.reason, run.attempt) for run in scene.runs] == [("schedule", 1), ("retry", 2)]
        waited = scene.times[1] + timedelta(hours=5) - began
        assert timedelta(minutes=10) <= waited <= timedelta(minutes=11, seconds=1)


@pytest.mark.promise("H2", "H10")
@virtual
async def test_a_stepped_clock_neither_ends_nor_prolongs_a_run(scene):
    async def act(run):
        await scene.sleep("3h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)), timeout="1h")
        await scheduler.start()
        await scene.sleep("10m")
        scene.step(days=1)
        await scene.sleep("10m")
        assert (await scheduler.get_job("a")).status == "running"
        scene.step(days=-2)
        await scene.sleep("41m")
        assert (await scheduler.get_job("a")).last_outcome == "timeout"


@pytest.mark.promise("H2")
@virtual
async def test_slewing_of_less_than_a_second_is_no_step(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        for _ in range(5):
            await scene.sleep("1m")
            scene.step(milliseconds=-400)
        assert await scheduler.list_alerts() == []
        assert len(scene.slots) == len(set(scene.slots))
        assert all(time >= slot for time, slot in zip(scene.times, scene.slots, strict=True))


@pytest.mark.promise("H2")
@virtual
async def test_a_clock_set_back_while_nothing_runs_is_noticed_at_the_next_start(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
        await scheduler.add_job("b", Interval("1h"))
        await scheduler.start()
        await scene.until(at(5, 10))
    scene.step(days=-1)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("150m")
        assert any(alert.kind == "clock" for alert in await scheduler.list_alerts())
        assert len([run for run in scene.of("a") if run.slot < at(1)]) >= 2, "silent for a day"
        assert len([run for run in scene.of("b") if run.slot < at(1)]) >= 1, "silent for a day"


@pytest.mark.promise("H2")
@virtual
async def test_a_step_forward_just_before_a_restart_cuts_no_waiting_run_short(scene):
    scene.act = waiting(scene, minutes=60)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        run_id = await scheduler.run_job("a")
        await scene.sleep("10m")
        scene.step(days=3)
        await scheduler.stop(wait_for_jobs=False)
        await scheduler.start()
        await scene.sleep("45m")
        assert (await scheduler.get_run(run_id)).status == "waiting"
        await scene.sleep("6m")
        assert (await scheduler.get_run(run_id)).outcome == "unknown"
        assert await clock_steps(scheduler) == 1


@pytest.mark.promise("H2")
@virtual
async def test_a_step_back_just_before_a_restart_silences_no_job(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
        await scheduler.start()
        await scene.until(at(5, 10))
        scene.step(days=-1)
        await scheduler.stop(wait_for_jobs=False)
        await scheduler.start()
        await scene.sleep("150m")
        assert len([run for run in scene.runs if run.slot < at(1)]) >= 2, "silent for a day"
        assert await clock_steps(scheduler) == 1


@pytest.mark.promise("H2")
@pytest.mark.parametrize("step", [{"days": 3}, {"days": -3}], ids=["forward", "back"])
@virtual
async def test_a_step_while_the_store_is_out_of_reach_is_recorded_when_it_is_back(scene, step):
    scene.act = waiting(scene, minutes=40)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
        await scheduler.start()
        await scene.until(at(1, 5))
        write, back_at = scheduler._store.write, scene.clock.boot() + 30_000

        async def out_of_reach(work, *, not_before=None):
            if scene.clock.boot() < back_at:
                raise StoreUnreachable("The server went away.")
            return await write(work, not_before=not_before)

        scheduler._store.write = out_of_reach
        scene.step(**step)
        scheduler._engine._wake()
        await scene.sleep("30m")
        assert [run.status for run in await scheduler.get_run_log("a")] == ["waiting"]
        await scene.sleep("90m")
        assert len(scene.runs) >= 2, "silent until the old time returns"
        assert await clock_steps(scheduler) == 1


def waiting(scene, minutes):
    async def act(run):
        raise Wait(until=scene.now + timedelta(minutes=minutes))

    return act


@pytest.mark.parametrize(
    ("step", "words"),
    [({"seconds": 3}, "forward by 3s"), ({"hours": -27}, "back by 1d 3h"), ({"days": -9000}, "back by 9000d")],
)
@virtual
async def test_the_alert_about_a_set_clock_says_by_how_much_in_words(scene, step, words):
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        scene.step(**step)
        await scene.sleep("2m")
        (alert,) = await scheduler.list_alerts()
        assert f"The clock was set {words}, to " in alert.message
