"""How wide a lane is: as wide as the smallest size among its jobs, no matter who stored them and when they run."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from tests.kernel.test_lanes import Crowd
from wakeful import Every, Manual, NewJob, Once, Retention
from wakeful.kernel.engine.lines import FACT


async def size_of(scheduler, lane):
    return (await scheduler._store.read(lambda tx: tx.lanes.loads([lane])))[lane].size


def wide(number, when, size=5):
    return [NewJob(f"wide{n}", Once(when), lanes={"l": size}) for n in range(number)]


@pytest.mark.promise("D6")
@pytest.mark.parametrize("first", ["wide", "narrow"])
@virtual
async def test_the_smallest_size_of_a_lane_holds_where_jobs_disagree(scene, first):
    scene.act = crowd = Crowd(scene, lambda run: ["l"])
    narrow = [NewJob(f"narrow{n}", Once(at(0)), lanes={"l": 1}) for n in range(3)]
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([*wide(3, at(0)), *narrow] if first == "wide" else [*narrow, *wide(3, at(0))])
        await scheduler.start()
        await scene.sleep("10m")
        assert len(scene.runs) == 6
        assert crowd.most["l"] == 1


@pytest.mark.promise("D6")
@virtual
async def test_a_job_cannot_widen_a_lane_that_an_idle_one_bounds(scene):
    """The one that bounds it is not in the same batch, not due, and has never run."""
    scene.act = crowd = Crowd(scene, lambda run: ["l"])
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("narrow", Manual(), lanes={"l": 2})
        await scheduler.start()
        await scheduler.add_jobs(wide(6, at(0, 1)))
        await scene.until(at(0, 1, 30))
        assert "l holds 2" in str(await scheduler.explain("wide5"))
        await scene.until(at(0, 20))
        assert (len(scene.runs), crowd.most) == (6, {"l": 2})


@pytest.mark.promise("D6")
@pytest.mark.parametrize("how", ["removed", "widened", "elsewhere", "without"])
@virtual
async def test_who_waits_starts_when_the_job_that_bounded_the_lane_is_removed_or_changed(scene, how):
    scene.act = crowd = Crowd(scene, lambda run: ["l"], "1h")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("narrow", Manual(), lanes={"l": 1})
        await scheduler.add_jobs(wide(6, at(0, 1)))
        await scheduler.start()
        await scene.until(at(0, 2))
        assert len(scene.runs) == 1
        if how == "removed":
            await scheduler.remove_job("narrow")
        else:
            lanes = {"widened": {"l": 4}, "elsewhere": {"other": 1}, "without": None}[how]
            await scheduler.update_job("narrow", lanes=lanes)
        expected = 4 if how == "widened" else 5
        assert await size_of(scheduler, "l") == expected
        await scene.sleep("5s")
        assert (len(scene.runs), crowd.most) == (expected, {"l": expected})


@pytest.mark.promise("D6")
@virtual
async def test_a_lane_that_becomes_narrower_admits_no_job_until_enough_have_left(scene):
    scene.act = crowd = Crowd(scene, lambda run: ["l"], "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs(wide(8, at(0, 1), size=4))
        await scheduler.start()
        await scene.until(at(0, 2))
        assert crowd.inside == {"l": 4}
        await scheduler.add_job("narrow", Manual(), lanes={"l": 1})
        for minute, inside in ((12, 1), (22, 1), (32, 1)):
            await scene.until(at(0, minute))
            assert crowd.inside == {"l": inside}
        await scene.until(at(1))
        assert len(scene.runs) == 8


@pytest.mark.promise("D6")
@virtual
async def test_the_size_follows_every_edit_and_nothing_is_left_of_a_lane_without_jobs(scene):
    async with scene.scheduler() as scheduler:
        for name, size in (("a", 5), ("b", 3), ("c", 4)):
            await scheduler.add_job(name, Manual(), lanes={"l": size})
        assert await size_of(scheduler, "l") == 3
        await scheduler.add_job("b", Manual(), lanes={"l": 9}, if_exists="update")
        assert await size_of(scheduler, "l") == 4
        await scheduler.remove_job("c")
        assert await size_of(scheduler, "l") == 5
        await scheduler.update_job("a", timeout="5m")
        assert await size_of(scheduler, "l") == 5
        await scheduler.remove_job("a")
        assert await size_of(scheduler, "l") == 9
        await scheduler.remove_job("b")
        assert await scheduler._store.read(lambda tx: tx.lanes.all()) == {}


@pytest.mark.promise("D6", "X11")
@virtual
async def test_a_forgotten_job_bounds_nothing(scene):
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        await scheduler.add_job("narrow", Once(at(0)), lanes={"l": 1})
        await scheduler.add_job("wide", Every("1h"), lanes={"l": 3})
        await scheduler.start()
        await scene.sleep("1h")
        assert await size_of(scheduler, "l") == 1
        await scene.sleep("3d")
        assert await scheduler.get_job("narrow") is None
        assert await size_of(scheduler, "l") == 3


@pytest.mark.promise("D6", "H11")
@virtual
async def test_sizes_outlive_restarts_and_are_found_for_jobs_stored_before_there_were_any(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("narrow", Manual(), lanes={"l": 2}), *wide(4, at(0, 1))])
        await scheduler.start()
        await scheduler.stop()
        assert await size_of(scheduler, "l") == 2

        def forget(tx):
            for sql in ("DELETE FROM lane_sizes", "UPDATE lanes SET size = NULL"):
                tx.lanes._session.execute(sql)
            tx.lanes._session.execute("DELETE FROM meta WHERE key = ?", (FACT,))

        await scheduler._store.write(forget)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        assert await size_of(scheduler, "l") == 2
        await scheduler.remove_job("narrow")
        assert await size_of(scheduler, "l") == 5
