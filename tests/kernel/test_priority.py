"""Priority: of what is due, and of what waits for a lane, the higher starts first, then who has waited longest."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import Every, InvalidJob, Manual, NewJob, Once

pytestmark = pytest.mark.promise("X22")


def busy_for(scene, length):
    async def act(run):
        await scene.sleep(length)

    return act


def started(scene):
    return [run.job for run in scene.runs]


@virtual
async def test_who_waits_for_a_full_lane_goes_by_priority_and_then_by_waiting_time(scene):
    scene.act = busy_for(scene, "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("holder", Once(at(0)), lanes={"one": 1}, priority=-100)
        waiting = [
            ("low", 1, -5),
            ("plain-2", 3, 0),
            ("plain-1", 2, 0),
            ("high", 5, 5),
            ("higher", 6, 50),
            ("low-2", 4, -5),
        ]
        for name, minute, priority in waiting:
            await scheduler.add_job(name, Once(at(0, minute)), lanes={"one": 1}, priority=priority)
        await scheduler.start()
        await scene.sleep("2h")
        assert started(scene) == ["holder", "higher", "high", "plain-1", "plain-2", "low", "low-2"]
        assert {job.missed for job in await scheduler.list_jobs()} == {0}


@virtual
async def test_max_running_is_given_to_the_highest_priority_first(scene):
    scene.act = busy_for(scene, "10m")
    async with scene.scheduler(max_running=2) as scheduler:
        await scheduler.add_jobs([NewJob(f"j{n}", Once(at(0, 1)), priority=n) for n in range(-3, 4)])
        await scheduler.start()
        await scene.sleep("2h")
        assert started(scene) == ["j3", "j2", "j1", "j0", "j-1", "j-2", "j-3"]


@virtual
async def test_a_newcomer_of_higher_priority_goes_before_those_who_wait(scene):
    scene.act = busy_for(scene, "10m")
    async with scene.scheduler() as scheduler:
        for name in ("first", "second", "third"):
            await scheduler.add_job(name, Once(at(0)), lanes={"one": 1})
        await scheduler.start()
        await scene.until(at(0, 5))
        await scheduler.add_job("urgent", Once(at(0, 5)), lanes={"one": 1}, priority=1)
        await scene.sleep("1h")
        assert started(scene) == ["first", "urgent", "second", "third"]


@virtual
async def test_of_a_burst_larger_than_a_batch_the_high_ones_start_first_though_they_were_added_last(scene):
    scene.tuning = scene.tuning._replace(batch=20)
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(f"low-{n}", Once(at(0, 1)), priority=-1) for n in range(30)])
        await scheduler.add_jobs([NewJob(f"plain-{n}", Once(at(0, 1))) for n in range(30)])
        await scheduler.add_jobs([NewJob(f"high-{n}", Once(at(0, 2)), priority=9) for n in range(30)])
    scene.clock.step(at(0, 3) - at(0))  # all have come due by the next look
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        names = [f"{sort}-{n}" for sort in ("high", "plain", "low") for n in range(30)]
        assert started(scene) == names


@virtual
async def test_the_same_priority_goes_by_how_long_it_has_been_due(scene):
    scene.tuning = scene.tuning._replace(batch=2)
    async with scene.scheduler() as scheduler:
        for n in (4, 1, 3, 0, 2):
            await scheduler.add_job(f"j{n}", Once(at(0, n)), priority=7)
    scene.clock.step(at(1) - at(0))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert started(scene) == ["j0", "j1", "j2", "j3", "j4"]


@virtual
async def test_starts_by_hand_and_retries_go_with_the_priority_of_their_job(scene):
    scene.tuning = scene.tuning._replace(batch=1)
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        for name, priority in (("low", -1), ("plain", 0), ("high", 1)):
            await scheduler.add_job(name, Manual(), priority=priority, retry={"delays": ["1m"], "on": "any"})
            await scheduler.run_job(name)
        await scheduler.start()
        await scene.sleep("5s")
        assert started(scene) == ["high", "plain", "low"]
        await scheduler.stop()
        await scene.sleep("2m")  # all three attempts have come
        scene.runs.clear()
        await scheduler.start()
        await scene.sleep("5s")
        assert [(run.job, run.reason) for run in scene.runs] == [
            ("high", "retry"), ("plain", "retry"), ("low", "retry"),
        ]  # fmt: skip


@virtual
async def test_a_new_priority_counts_at_once_also_for_a_job_that_waits(scene):
    scene.act = busy_for(scene, "10m")
    async with scene.scheduler() as scheduler:
        for name in ("first", "second", "third", "fourth"):
            await scheduler.add_job(name, Once(at(0)), lanes={"one": 1})
        await scheduler.start()
        await scene.until(at(0, 1))
        await scheduler.update_job("fourth", priority=3)
        await scheduler.update_job("second", priority=-3)
        await scene.sleep("1s")
        assert (await scheduler.get_job("fourth")).waiting_for == "one"
        await scene.sleep("1h")
        assert started(scene) == ["first", "fourth", "third", "second"]


@virtual
async def test_a_low_priority_waits_for_as_long_as_higher_ones_keep_the_lane_busy(scene):
    scene.act = busy_for(scene, "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("greedy", Every("1m"), lanes={"one": 1}, priority=1, overlap="queue")
        await scheduler.add_job("greedy-2", Every("1m"), lanes={"one": 1}, priority=1, overlap="queue")
        await scheduler.add_job("patient", Once(at(0, 2)), lanes={"one": 1})
        await scheduler.start()
        await scene.sleep("1d")
        assert "patient" not in started(scene)
        assert (await scheduler.get_job("patient")).waiting_for == "one"
        await scheduler.remove_job("greedy")
        await scheduler.remove_job("greedy-2")
        await scene.sleep("30m")
        assert scene.runs[-1].job == "patient"
        assert scene.runs[-1].slot == at(0, 2)


@virtual
async def test_a_priority_is_kept_with_the_job_and_0_is_what_it_has_without_one(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), priority=5)
        assert (await scheduler.get_job("a")).options == {"priority": 5}
        assert (await scheduler.update_job("a", timeout="1h")).options == {"priority": 5, "timeout": "1h"}
        assert (await scheduler.update_job("a", priority=None)).options == {"timeout": "1h"}
        await scheduler.add_job("b", Manual(), priority=0)
        assert (await scheduler.get_job("b")).options == {}


@pytest.mark.parametrize("priority", [-101, 101, 1.5, "5", True, [], 10**30])
@virtual
async def test_what_is_no_priority_is_refused_and_changes_nothing(scene, priority):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), priority=100)
        for refused in (
            scheduler.add_job("b", Manual(), priority=priority),
            scheduler.update_job("a", priority=priority),
        ):
            with pytest.raises(InvalidJob, match="priority is a whole number from -100 to 100, not "):
                await refused
        assert [(job.name, job.options) for job in await scheduler.list_jobs()] == [("a", {"priority": 100})]


@virtual
async def test_a_crash_forgets_no_priority(scene):
    scene.tuning = scene.tuning._replace(batch=1)
    scene.act = busy_for(scene, "10m")
    scheduler = scene.scheduler()
    await scheduler.open()
    await scheduler.add_jobs([NewJob(f"j{n}", Once(at(0, 1)), priority=n) for n in range(4)])
    await scheduler.start()
    await scene.until(at(0, 2))
    await scene.crash(scheduler)
    scene.runs.clear()
    async with scene.scheduler() as again:
        await again.start()
        await scene.sleep("30m")
        assert [(run.job, run.reason) for run in scene.runs] == [(f"j{n}", "recovery") for n in (3, 2, 1, 0)]
