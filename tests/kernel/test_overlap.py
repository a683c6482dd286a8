"""A job never runs beside itself; what happens to the starts that would have made it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.kernel.scene import at, failing, settled_slots, virtual
from wakeful import Cron, Every, Interval, Manual, NewJob, Once, ScheduleTriggerError


def taking(scene, length):
    async def act(run):
        await scene.sleep(length)

    return act


@pytest.mark.promise("H9", "X9")
@virtual
async def test_slots_that_come_during_the_jobs_own_run_are_skipped_and_counted(scene):
    scene.act = taking(scene, "25m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"))
        await scheduler.start()
        await scene.until(at(1, 25))
        job = await scheduler.get_job("a")
        skips = {skip["reason"]: skip["count"] for skip in (await scheduler.explain("a")).facts["skips"]}
        assert scene.times == [at(0, 10), at(0, 40), at(1, 10)]
        assert (job.missed, skips["already_running"]) == (4, 4)
        assert scene.most_busy["a"] == 1


@pytest.mark.promise("H9", "X9")
@virtual
async def test_overlap_queue_keeps_the_latest_slot_and_runs_it_when_the_run_ends(scene):
    scene.act = taking(scene, "25m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"), overlap="queue")
        await scheduler.start()
        await scene.until(at(1, 26))
        assert scene.times == [at(0, 10), at(0, 35), at(1), at(1, 25)]
        assert scene.slots == [at(0, 10), at(0, 30), at(1), at(1, 20)]
        assert (await scheduler.get_job("a")).missed == 1 + 2 + 1
        assert scene.most_busy["a"] == 1


@pytest.mark.promise("H9", "X9")
@virtual
async def test_overlap_cancel_other_ends_the_run_for_the_new_slot(scene):
    scene.act = taking(scene, "25m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"), overlap="cancel_other")
        await scheduler.start()
        await scene.until(at(0, 35))
        assert scene.times == [at(0, 10), at(0, 20), at(0, 30)]
        assert [run.outcome for run in await scheduler.get_run_log("a")] == [None, "cancelled", "cancelled"]
        job = await scheduler.get_job("a")
        assert (job.missed, job.consecutive_errors, scene.most_busy["a"]) == (0, 0, 1)


@pytest.mark.promise("X9")
@pytest.mark.parametrize("trigger", [Interval("10m"), Once(at(0, 1))], ids=lambda trigger: trigger.type)
@virtual
async def test_cancel_other_never_cancels_a_run_for_itself(scene, trigger):
    scene.act = taking(scene, "5m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, overlap="cancel_other")
        await scheduler.start()
        await scene.sleep("14m")
        assert [run.outcome for run in await scheduler.get_run_log("a")] == ["success"]


@pytest.mark.promise("H9")
@virtual
async def test_a_manual_start_of_a_running_job_is_refused_with_the_reason(scene):
    scene.act = taking(scene, "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)))
        await scheduler.start()
        await scene.sleep("1m")
        with pytest.raises(ScheduleTriggerError) as refused:
            await scheduler.run_job("a")
        context = refused.value.context
        assert (context["job"], context["reason"], context["run"]) == ("a", "already_running", scene.runs[0].id)
        assert len(await scheduler.get_run_log("a")) == 1


@pytest.mark.promise("H9")
@virtual
async def test_asking_twice_before_it_starts_is_one_start(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.run_job("a")
        with pytest.raises(ScheduleTriggerError) as refused:
            await scheduler.run_job("a")
        assert refused.value.context["reason"] == "already_running"
        await scheduler.start()
        await scene.sleep("1m")
        assert len(scene.runs) == 1


@pytest.mark.promise("H9")
@virtual
async def test_scheduled_manual_retry_and_recovery_starts_at_one_moment_run_one_after_the_other(scene):
    scene.act = taking(scene, "10m")
    scheduler = scene.scheduler()
    await scheduler.open()
    await scheduler.add_job("a", Every("1h"), retry={"delays": ["50m"], "on": "any"})
    await scheduler.start()
    await scene.until(at(1, 5))
    await scene.crash(scheduler)
    await scene.until(at(2))
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scheduler.run_job("a")  # the recovery, the manual start and the slot of 02:00 are due together
        await scene.sleep("1s")
        scene.act = taking(scene, "10m")
        await scene.until(at(5, 30))
        assert scene.most_busy["a"] == 1
        assert {run.reason for run in scene.runs} >= {"schedule", "manual", "recovery"}
        log = await scheduler.get_run_log("a")
        assert len(settled_slots(log)) == len(set(settled_slots(log)))
        spans = sorted((run.started_at, run.finished_at) for run in log if run.started_at and run.finished_at)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


@pytest.mark.promise("H9")
@virtual
async def test_a_slot_during_a_manual_run_is_an_overlap_like_any_other(scene):
    scene.act = taking(scene, "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Cron("0 * * * *"))
        await scheduler.start()
        await scene.until(at(0, 55))
        await scheduler.run_job("a")
        await scene.until(at(2, 1))
        assert [(run.reason, run.slot) for run in scene.runs] == [("manual", None), ("schedule", at(2))]
        assert (await scheduler.get_job("a")).missed == 1


@pytest.mark.promise("H9", "H16")
@virtual
async def test_a_manual_run_leaves_the_grid_alone(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(0, 30))
        await scheduler.run_job("a")
        await scene.until(at(1, 30))
        assert [(run.reason, run.slot) for run in scene.runs] == [("manual", None), ("schedule", at(1))]


@pytest.mark.promise("H9")
@virtual
async def test_nothing_overlaps_itself_in_a_crowd(scene):
    async def act(run):
        await scene.sleep(20 + len(run.job) * 7)

    scene.act = act
    async with scene.scheduler(max_running=5) as scheduler:
        names = ["a" * n for n in range(1, 13)]
        await scheduler.add_jobs([NewJob(name, Every(f"{20 + len(name)}s"), overlap="queue") for name in names])
        await scheduler.start()
        refused = 0
        for turn in range(60):
            await scene.sleep("7s")
            try:
                await scheduler.run_job(names[turn % len(names)])
            except ScheduleTriggerError:
                refused += 1
        assert set(scene.most_busy.values()) == {1}
        assert set(scene.most_busy) == set(names), "no job starves"
        assert refused
