"""Fair lanes: equal jobs get equal shares, and a job that needs several lanes gets its turn."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Every, Manual, NewJob, Once
from wakeful.kernel.actions.pausing import disable_job
from wakeful.kernel.hooks import Refused
from wakeful.kernel.kinds import Kind

pytestmark = pytest.mark.promise("X31")


def lasting(scene, **lengths):
    """An act that takes as long as the job's name says, up to its first dash."""

    async def act(run):
        await scene.sleep(lengths[run.job.split("-")[0]])

    return act


def shares(scene, prefix):
    return Counter(run.job for run in scene.runs if run.job.startswith(prefix))


def fair(counts, jobs):
    """Whether so many jobs ran, and none twice as often as another."""
    return len(counts) == jobs and max(counts.values()) < 2 * min(counts.values())


@pytest.mark.promise("X22")
@pytest.mark.parametrize("priority", [0, 100])
@virtual
async def test_jobs_of_one_lane_have_equal_shares_while_one_that_needs_two_lanes_gets_its_turns(scene, priority):
    scene.act = lasting(scene, a="15s", b="70s", both="10s")
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(f"a-{n}", Every("10s"), lanes={"a": 1}, overlap="queue") for n in range(4)])
        await scheduler.add_jobs([NewJob(f"b-{n}", Every("10s"), lanes={"b": 1}) for n in range(2)])
        await scheduler.add_job("both", Every("10m"), lanes={"a": 1, "b": 1}, priority=priority)
        await scheduler.start()
        await scene.sleep("104m")
        assert fair(shares(scene, "a-"), 4), shares(scene, "a-")
        assert fair(shares(scene, "b-"), 2), shares(scene, "b-")
        assert len(scene.of("both")) == 10
        assert sum(shares(scene, "a-").values()) > 300, "the lane is reserved, not lost"


@pytest.mark.promise("X22")
@pytest.mark.parametrize(("jobs", "length"), [(2, "30m"), (2, "35m"), (3, "25m"), (4, "18m")])
@virtual
async def test_jobs_that_become_due_at_one_moment_take_turns_in_going_first(scene, jobs, length):
    scene.act = lasting(scene, a=length)
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(f"a-{n}", Every("1h", anchor=at(0)), lanes={"a": 1}) for n in range(jobs)])
        await scheduler.start()
        await scene.sleep("48h")
        counts = shares(scene, "a-")
        assert fair(counts, jobs), counts
        assert max(counts.values()) <= min(counts.values()) + 6, counts


@pytest.mark.parametrize("lanes", [("a", "b"), ("b", "a")])
@virtual
async def test_a_job_in_two_busy_lanes_starts_within_one_wait_of_each(scene, lanes):
    scene.act = lasting(scene, a="10s", b="10s", both="1s")
    async with scene.scheduler() as scheduler:
        for lane in ("a", "b"):
            await scheduler.add_jobs([NewJob(f"{lane}-{n}", Every("10s"), lanes={lane: 1}) for n in range(2)])
        await scheduler.start()
        await scene.sleep("5s")  # so that the two lanes are never free at one moment
        await scheduler.run_job("a-1")
        await scene.sleep("10m")
        began = scene.now
        await scheduler.add_job("both", Once(began), lanes=dict.fromkeys(lanes, 1))
        await scene.sleep("2m")
        (run,) = scene.of("both")
        waited = scene.times[scene.runs.index(run)] - began
        assert waited.total_seconds() <= 20


@pytest.mark.promise("X22")
@virtual
async def test_a_place_that_is_reserved_goes_to_a_higher_priority_all_the_same(scene):
    scene.act = lasting(scene, b="10m", both="1m", urgent="1m", plain="1m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("b", Once(at(0)), lanes={"b": 1})
        await scheduler.add_job("both", Once(at(0, 1)), lanes={"a": 1, "b": 1})
        await scheduler.add_job("plain", Once(at(0, 2)), lanes={"a": 1})
        await scheduler.add_job("urgent", Once(at(0, 3)), lanes={"a": 1}, priority=1)
        await scheduler.start()
        await scene.sleep("1h")
        assert list(zip([run.job for run in scene.runs], scene.times, strict=True)) == [
            ("b", at(0)),
            ("urgent", at(0, 3)),
            ("both", at(0, 10)),
            ("plain", at(0, 11)),
        ]


@pytest.mark.promise("X22")
@pytest.mark.parametrize("length", ["5s", "40s"])  # the lane of the one is the quicker, or the slower
@virtual
async def test_a_place_is_not_reserved_for_a_job_that_others_keep_from_its_other_lane(scene, length):
    scene.act = lasting(scene, busy="20s", both="5s", plain=length)
    async with scene.scheduler() as scheduler:
        jobs = [NewJob(f"busy-{n}", Every("15s"), lanes={"b": 1}, priority=100) for n in range(4)]
        await scheduler.add_jobs([*jobs, NewJob("both", Every("15s"), lanes={"a": 1, "b": 1})])
        await scheduler.add_job("plain", Every("1m"), lanes={"a": 1})
        await scheduler.start()
        await scene.sleep("30m")
        assert len(scene.of("plain")) >= 19, "nobody else wants the lane but one that may never start"
        for job in jobs:
            await scheduler.remove_job(job.name)
        await scene.sleep("10m")
        assert len(scene.of("both")) >= 9, "its turn comes once the others are gone"


@pytest.mark.parametrize("end", ["pause", "disable", "remove", "edit", "edit_once_more"])
@virtual
async def test_a_place_that_nobody_reserves_any_more_is_given_to_who_waits_for_it(scene, end):
    scene.act = lasting(scene, b="1h", both="1m", plain="1m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("b", Once(at(0)), lanes={"b": 1})
        await scheduler.add_job("both", Once(at(0, 1)), lanes={"a": 1, "b": 1})
        await scheduler.add_job("plain", Once(at(0, 2)), lanes={"a": 1})
        await scheduler.start()
        await scene.until(at(0, 5))
        assert [run.job for run in scene.runs] == ["b"]
        if end == "edit_once_more":
            await scheduler.update_job("both", lanes={"a": 1, "b": 1, "c": 1})
            await scene.sleep("1s")
            assert [run.job for run in scene.runs] == ["b"]
        await {
            "pause": lambda: scheduler.pause_job("both"),
            "disable": lambda: scheduler.transact(lambda tx, context: disable_job(tx, context, "both")),
            "remove": lambda: scheduler.remove_job("both"),
            "edit": lambda: scheduler.update_job("both", lanes={"b": 1}),
            "edit_once_more": lambda: scheduler.update_job("both", lanes={"b": 1}),
        }[end]()
        await scene.sleep("2s")
        assert [run.job for run in scene.runs] == ["b", "plain"]


@virtual
async def test_jobs_in_rings_of_lanes_all_start_and_none_waits_for_another_for_ever(scene):
    rings = {"ab": "ab", "bc": "bc", "ca": "ca", "abc": "abc", "a": "a", "b": "b", "c": "c"}
    scene.act = lasting(scene, **dict.fromkeys(rings, "20s"))
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs(
            [
                NewJob(f"{ring}-{n}", Every("10s"), lanes=dict.fromkeys(lanes, 1))
                for ring, lanes in rings.items()
                for n in range(2)
            ]
        )
        await scheduler.start()
        await scene.sleep("1h")
        for ring in rings:
            assert fair(shares(scene, f"{ring}-"), 2), (ring, shares(scene, f"{ring}-"))
        assert fair(shares(scene, ""), 14), shares(scene, "")


@virtual
async def test_max_running_is_shared_fairly_with_jobs_that_wait_for_a_lane_of_their_own(scene):
    scene.act = lasting(scene, free="10s", laned="10s")
    async with scene.scheduler(max_running=2) as scheduler:
        await scheduler.add_jobs([NewJob(f"free-{n}", Every("10s")) for n in range(5)])
        await scheduler.add_jobs([NewJob(f"laned-{n}", Every("10s"), lanes={"one": 1}) for n in range(3)])
        await scheduler.start()
        await scene.sleep("30m")
        assert fair(shares(scene, ""), 8), shares(scene, "")


@virtual
async def test_a_place_whose_first_in_line_is_refused_by_its_kind_goes_to_the_next_in_line(scene):
    picky = Kind("picky", admit=lambda tx, _context, _job, _state: Refused("not_now", None, tx.now + 1_000))
    scene.act = lasting(scene, a="15s")
    async with scene.scheduler("job", "picky", kinds=[picky]) as scheduler:
        jobs = [NewJob(f"a-{n}", Every("10s"), lanes={"a": 1}, overlap="queue") for n in range(4)]
        await scheduler.add_jobs(jobs)
        await scheduler.add_job("refused", Every("10s"), kind="picky", lanes={"a": 1})
        await scheduler.start()
        await scene.sleep("50m")
        assert scene.of("refused") == []
        assert fair(shares(scene, "a-"), 4), shares(scene, "a-")
        assert sum(shares(scene, "a-").values()) > 190


@virtual
async def test_a_start_that_is_no_longer_wanted_leaves_its_place_to_the_next_in_line(scene):
    scene.act = lasting(scene, a="1m", hand="1m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)), lanes={"a": 1})
        await scheduler.add_jobs([NewJob(f"hand-{n}", Manual(), lanes={"a": 1}) for n in range(3)])
        await scheduler.start()
        runs = [await scheduler.run_job(f"hand-{n}") for n in range(3)]
        await scheduler.cancel_run(runs[0])
        await scene.sleep("10m")
        assert [run.job for run in scene.runs] == ["a", "hand-1", "hand-2"]
        assert scene.times == [at(0), at(0, 1), at(0, 2)]


@pytest.mark.promise("H2")
@virtual
async def test_who_waits_keeps_its_place_in_the_line_when_the_clock_is_set_back(scene):
    scene.act = lasting(scene, first="1h", old="1m", older="1m", new="1m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(n, Manual(), lanes={"a": 1}) for n in ("new", "old", "older", "first")])
        await scheduler.start()
        for name in ("first", "older", "old"):
            await scheduler.run_job(name)
            await scene.sleep("1m")
        scene.step(hours=-12)
        await scene.sleep("5m")
        await scheduler.run_job("new")
        await scene.sleep("2h")
        assert [run.job for run in scene.runs] == ["first", "older", "old", "new"]
