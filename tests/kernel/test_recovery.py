"""What a start finds: runs cut off by a crash, jobs that are overdue, and a poison job among innocent ones."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.kernel.scene import at, settled_slots, virtual
from wakeful import Cron, Every, Manual, NewJob, Once, TransientError


async def opened(scene, *kinds, **options):
    scheduler = scene.scheduler(*kinds, **options)
    await scheduler.open()
    return scheduler


def long_first_run(scene, length="1h"):
    async def act(run):
        if len(scene.runs) == 1:
            await scene.sleep(length)

    return act


@pytest.mark.promise("H11", "X14")
@pytest.mark.parametrize("trigger", [Every("1h"), Cron("0 * * * *"), Once(at(1))], ids=lambda trigger: trigger.type)
@virtual
async def test_a_run_cut_off_by_a_crash_is_recorded_and_its_slot_runs_again_at_once(scene, trigger):
    scene.act = long_first_run(scene)
    scheduler = await opened(scene)
    await scheduler.add_job("a", trigger)
    await scheduler.start()
    await scene.until(at(1, 10))
    await scene.crash(scheduler)
    await scene.sleep("5m")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1s")
        again, first = await scheduler.get_run_log("a")
        assert (first.outcome, first.slot, first.attempt, first.finished_at) == ("crashed", at(1), 1, at(1, 15))
        assert "ended while it ran" in first.error
        assert (again.outcome, again.slot, again.attempt, again.reason) == ("success", at(1), 2, "recovery")
        assert (again.retry_of, again.started_at) == (first.id, at(1, 15))
        await scene.until(at(1, 59))
        assert len(scene.runs) == 2


@pytest.mark.promise("H11", "H7")
@virtual
async def test_a_job_that_merely_ran_beside_a_crash_has_no_error_counted(scene):
    async def act(run):
        await scene.sleep("1h")

    scene.act = act
    for crashes in range(1, 4):
        scheduler = await opened(scene)
        await scheduler.add_jobs([NewJob(name, Every("1d", anchor=at(0))) for name in "abc"], if_exists="keep")
        if crashes == 1:
            for name in "abc":
                await scheduler.run_job(name)
        await scheduler.start()
        await scene.sleep("5m")
        assert len(scheduler._engine.active) == (3 if crashes < 3 else 1), "suspects run one at a time"
        await scene.crash(scheduler)
        async with scene.scheduler("nobody") as reader:
            await reader.start()
            jobs = await reader.list_jobs()
            assert sum(job.consecutive_errors for job in jobs) == (1 if crashes == 3 else 0), "the one that ran alone"
            assert all(job.last_outcome == "crashed" for job in jobs)


@pytest.mark.promise("H11")
@virtual
async def test_recovery_replaces_catch_up(scene):
    scene.act = long_first_run(scene)
    scheduler = await opened(scene)
    await scheduler.add_job("a", Every("1h"))
    await scheduler.start()
    await scene.until(at(1, 10))
    await scene.crash(scheduler)
    await scene.until(at(50, 30))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("10m")
        assert [(run.slot, run.reason) for run in scene.runs] == [(at(1), "schedule"), (at(1), "recovery")]
        assert (await scheduler.get_job("a")).next_run_at == at(51)


@pytest.mark.promise("H11")
@virtual
async def test_a_crash_is_not_the_error_of_a_once_job(scene):
    scene.act = long_first_run(scene)
    scheduler = await opened(scene)
    await scheduler.add_job("a", Once(at(1)))
    await scheduler.start()
    await scene.until(at(1, 10))
    await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        job = await scheduler.get_job("a")
        assert (job.last_outcome, job.last_error, job.enabled) == ("success", None, False)


@pytest.mark.promise("H11", "X9")
@virtual
async def test_on_crash_skip_lets_the_slot_go(scene):
    scene.act = long_first_run(scene)
    scheduler = await opened(scene)
    await scheduler.add_job("a", Every("1h"), on_crash="skip")
    await scheduler.start()
    await scene.until(at(1, 10))
    await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(2, 30))
        assert [(run.slot, run.reason) for run in scene.runs] == [(at(1), "schedule"), (at(2), "schedule")]
        assert [run.outcome for run in await scheduler.get_run_log("a")] == ["success", "crashed"]


@pytest.mark.promise("H11")
@virtual
async def test_a_manual_run_cut_off_by_a_crash_is_recovered_with_its_payload(scene):
    scene.act = long_first_run(scene)
    scheduler = await opened(scene)
    await scheduler.add_job("a", Manual(), payload={"n": 1})
    await scheduler.start()
    await scheduler.run_job("a", payload={"n": 2})
    await scene.sleep("1m")
    await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert [(run.reason, run.payload, run.slot) for run in scene.runs] == [
            ("manual", {"n": 2}, None), ("recovery", {"n": 2}, None),
        ]  # fmt: skip


@pytest.mark.promise("X9")
@virtual
async def test_a_retry_of_a_manual_run_has_its_payload(scene):
    async def act(run):
        if len(scene.runs) == 1:
            raise TransientError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), payload={"n": 1}, retry=["10s"])
        await scheduler.start()
        await scheduler.run_job("a", payload={"n": 2})
        await scene.sleep("1m")
        assert [(run.attempt, run.payload) for run in scene.runs] == [(1, {"n": 2}), (2, {"n": 2})]


@pytest.mark.promise("H11", "H15")
@virtual
async def test_a_run_asked_for_and_not_started_survives_a_crash(scene):
    async def act(run):
        await scene.sleep("1h")

    scene.act = act
    scheduler = await opened(scene)
    await scheduler.add_job("busy", Once(at(0)), lanes={"one": 1})
    await scheduler.add_job("asked", Manual(), lanes={"one": 1})
    await scheduler.start()
    await scene.sleep("1s")
    asked = await scheduler.run_job("asked")
    await scene.sleep("1s")
    assert [run.job for run in scene.runs] == ["busy"]
    await scene.crash(scheduler)
    scene.act = None
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert (await scheduler.get_run(asked)).outcome == "success"
        assert [run.id for run in scene.of("asked")] == [asked]


@pytest.mark.promise("H11")
@virtual
async def test_lanes_are_free_again_after_a_crash(scene):
    async def act(run):
        await scene.sleep("10m")

    scene.act = act
    scheduler = await opened(scene)
    await scheduler.add_jobs([NewJob(f"j{n}", Once(at(0)), lanes={"pair": 2}) for n in range(6)])
    await scheduler.start()
    await scene.sleep("1m")
    assert len(scene.runs) == 2
    await scene.crash(scheduler)
    scene.runs.clear()
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("5m")
        assert len(scene.runs) == 2, "the lane holds after the restart too"
        await scene.sleep("50m")
        assert sorted(run.job for run in scene.runs) == [f"j{n}" for n in range(6)]


@pytest.mark.promise("X14")
@virtual
async def test_a_job_that_crashes_its_process_backs_off_by_the_ladder_and_is_disabled(scene):
    async def act(run):
        await scene.sleep("1d")

    scene.act = act
    lives, starts = 0, []
    while lives < 30:
        scheduler = await opened(scene)
        if not lives:
            await scheduler.add_job("poison", Every("1h"))
        await scheduler.start()
        await scene.sleep("1s")
        job = await scheduler.get_job("poison")
        if not job.enabled:
            await scheduler.close()
            break
        while job.status != "running":
            await scene.sleep("10s")
            job = await scheduler.get_job("poison")
        starts.append(scene.times[-1])
        lives += 1
        await scene.crash(scheduler)
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(starts)]
    assert lives == 5
    assert gaps[0] < 30, "the first time at once"
    assert all(gap >= rung for gap, rung in zip(gaps[1:], (30, 60, 300), strict=True)), gaps
    async with scene.scheduler() as scheduler:
        job = await scheduler.get_job("poison")
        assert (job.status, job.enabled, job.last_outcome) == ("disabled", False, "crashed")
        assert any(alert.kind == "disabled" for alert in await scheduler.list_alerts())
        log = await scheduler.get_run_log("poison")
        assert settled_slots(log) == [at(1)]
        assert [run.retry_of for run in log] == [*[run.id for run in log[1:]], None]


@pytest.mark.promise("X14")
@virtual
async def test_innocent_jobs_beside_a_poison_job_are_not_disabled_and_all_run(scene):
    poisoned = []

    async def act(run):
        if run.job == "poison":
            poisoned.append(scene.now)
        await scene.sleep("20s")

    scene.act = act
    names = [f"good{n}" for n in range(4)]
    for life in range(40):
        scheduler = await opened(scene)
        if not life:
            await scheduler.add_jobs([NewJob(name, Every("5m"), max_errors=5) for name in [*names, "poison"]])
        await scheduler.start()
        before = len(poisoned)
        for _ in range(1000):
            await scene.sleep("5s")
            if len(poisoned) > before or not (await scheduler.get_job("poison")).enabled:
                break
        if not (await scheduler.get_job("poison")).enabled:
            await scheduler.close()
            break
        await scene.crash(scheduler)
    else:
        pytest.fail("the poison job was never found")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1h")
        for name in names:
            job = await scheduler.get_job(name)
            assert (job.enabled, job.last_outcome, job.consecutive_errors) == (True, "success", 0), name
        assert (await scheduler.get_job("poison")).status == "disabled"
        assert len(poisoned) <= 8


@pytest.mark.promise("H9", "H11")
@virtual
async def test_no_slot_is_run_twice_over_many_crashes(scene):
    async def act(run):
        await scene.sleep("40s")

    scene.act = act
    scheduler = await opened(scene)
    await scheduler.add_jobs([NewJob("a", Every("1m")), NewJob("b", Cron("*/2 * * * *")), NewJob("c", Every("7m"))])
    for life in range(25):
        await scheduler.start()
        await scene.sleep(f"{45 + 17 * life}s")
        await scene.crash(scheduler)
        scheduler = await opened(scene)
    await scheduler.start()
    await scene.sleep("1h")
    for name in "abc":
        log = await scheduler.get_run_log(name, limit=1000)
        slots = settled_slots(log)
        assert len(slots) == len(set(slots))
        done = [run.slot for run in log if run.outcome == "success" and run.slot is not None]
        assert len(done) == len(set(done)), "a slot succeeded twice"
        assert all(run.outcome is not None or run.status in ("active", "queued") for run in log)
        assert scene.most_busy[name] == 1
    await scheduler.close()
