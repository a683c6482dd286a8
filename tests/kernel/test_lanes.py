"""Lanes: how many at once, who waits, and that no job is forgotten."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import Every, Manual, NewJob, Once, Wait


class Crowd:
    """A handler that takes its time and counts how many are inside, per lane."""

    def __init__(self, scene, lanes, length="1m"):
        self.scene, self.lanes, self.length = scene, lanes, length
        self.inside, self.most = {}, {}

    async def __call__(self, run):
        for lane in self.lanes(run):
            self.inside[lane] = self.inside.get(lane, 0) + 1
            self.most[lane] = max(self.most.get(lane, 0), self.inside[lane])
        await self.scene.sleep(self.length)
        for lane in self.lanes(run):
            self.inside[lane] -= 1


@pytest.mark.promise("D6")
@virtual
async def test_a_lane_holds_for_scheduled_and_manual_starts_together(scene):
    scene.act = crowd = Crowd(scene, lambda run: ["gpu"])
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(f"timed{n}", Once(at(0, 1)), lanes={"gpu": 3}) for n in range(6)])
        await scheduler.add_jobs([NewJob(f"hand{n}", Manual(), lanes={"gpu": 3}) for n in range(6)])
        await scheduler.start()
        await scene.until(at(0, 1))
        for n in range(6):
            await scheduler.run_job(f"hand{n}")
        await scene.sleep("10m")
        assert crowd.most == {"gpu": 3}
        assert len({run.job for run in scene.runs}) == len(scene.runs) == 12


@pytest.mark.promise("C3", "D6")
@pytest.mark.parametrize("most", [1, 2, 5])
@virtual
async def test_max_running_holds_for_everything(scene, most):
    scene.act = crowd = Crowd(scene, lambda run: ["all"])
    async with scene.scheduler(max_running=most) as scheduler:
        await scheduler.add_jobs([NewJob(f"j{n}", Once(at(0, 1))) for n in range(10)])
        await scheduler.start()
        await scene.sleep("15m")
        assert (crowd.most, len(scene.runs)) == ({"all": most}, 10)


@pytest.mark.promise("D5", "D6")
@virtual
async def test_the_oldest_waits_shortest_and_waiting_is_no_miss(scene):
    scene.act = Crowd(scene, lambda run: [], "10m")
    async with scene.scheduler() as scheduler:
        for n in (3, 1, 4, 2, 0):
            await scheduler.add_job(f"j{n}", Once(at(0, n)), lanes={"one": 1})
        await scheduler.start()
        await scene.until(at(0, 5))
        job = await scheduler.get_job("j3")
        assert (job.waiting_for, job.status) == ("one", "idle")
        skips = {skip["reason"]: skip["count"] for skip in (await scheduler.explain("j3")).facts["skips"]}
        assert skips == {"at_capacity": 1}
        await scene.sleep("2h")
        assert [run.job for run in scene.runs] == ["j0", "j1", "j2", "j3", "j4"]
        assert scene.times == [at(0, 0), at(0, 10), at(0, 20), at(0, 30), at(0, 40)]
        assert {job.missed for job in await scheduler.list_jobs()} == {0}
        skips = {skip["reason"]: skip["count"] for skip in (await scheduler.explain("j4")).facts["skips"]}
        assert skips == {"at_capacity": 1}, "once per slot, however often it was looked at"


@pytest.mark.promise("D6")
@virtual
async def test_a_job_that_became_due_just_now_does_not_overtake_one_that_waits(scene):
    scene.act = Crowd(scene, lambda run: [], "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("newcomer", Once(at(0, 10)), lanes={"one": 1})
        await scheduler.add_job("first", Once(at(0)), lanes={"one": 1})
        await scheduler.add_job("patient", Once(at(0, 1)), lanes={"one": 1})
        await scheduler.start()
        await scene.sleep("1h")
        assert [run.job for run in scene.runs] == ["first", "patient", "newcomer"]


@pytest.mark.promise("D6")
@virtual
async def test_recurring_jobs_share_a_lane_without_starving_anybody(scene):
    scene.act = Crowd(scene, lambda run: [], "30s")
    async with scene.scheduler() as scheduler:
        names = [f"j{n}" for n in range(6)]
        await scheduler.add_jobs([NewJob(name, Every("20s"), lanes={"two": 2}, overlap="queue") for name in names])
        await scheduler.start()
        await scene.sleep("20m")
        counts = sorted(len(scene.of(name)) for name in names)
        assert counts[0] >= counts[-1] - 3, counts


@pytest.mark.promise("D6")
@virtual
async def test_jobs_in_several_lanes_never_lose_a_wake_up(scene):
    wanted = {
        **{f"ab{n}": {"a": 1, "b": 1} for n in range(4)},
        **{f"bc{n}": {"b": 1, "c": 1} for n in range(4)},
        **{f"ca{n}": {"c": 1, "a": 1} for n in range(4)},
        **{f"abc{n}": {"a": 1, "b": 1, "c": 1} for n in range(3)},
        **{f"a{n}": {"a": 1} for n in range(3)},
    }
    scene.act = crowd = Crowd(scene, lambda run: list(wanted[run.job]), "10s")
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(name, Once(at(0)), lanes=lanes) for name, lanes in wanted.items()])
        await scheduler.start()
        await scene.sleep("4m")
        assert sorted(run.job for run in scene.runs) == sorted(wanted)
        assert crowd.most == {"a": 1, "b": 1, "c": 1}
        assert (await scheduler.get_summary()).parked == {}


@pytest.mark.promise("D6")
@pytest.mark.parametrize("end", ["error", "timeout", "cancel", "wait", "removed"])
@virtual
async def test_a_lane_is_free_however_its_run_ended(scene, end):
    async def act(run):
        if run.job == "second":
            return
        if end == "error":
            raise RuntimeError
        if end == "wait":
            raise Wait
        await scene.sleep("5h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("first", Once(at(0)), lanes={"one": 1}, timeout="1m" if end == "timeout" else "2m")
        await scheduler.add_job("second", Once(at(0, 0, 1)), lanes={"one": 1})
        await scheduler.start()
        await scene.sleep("5s")
        if end == "cancel":
            await scheduler.cancel_run(scene.runs[0].id)
        if end == "removed":
            await scheduler.remove_job("first")
        await scene.sleep("3m")
        assert [run.job for run in scene.runs] == ["first", "second"]


@pytest.mark.promise("D6")
@virtual
async def test_a_slot_that_waits_for_a_lane_is_not_lost_to_a_manual_start(scene):
    scene.act = Crowd(scene, lambda run: [], "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("busy", Once(at(1)), lanes={"one": 1})
        await scheduler.add_job("a", Every("1h", anchor=at(1, 1)), lanes={"one": 1})
        await scheduler.start()
        await scene.until(at(1, 2))
        assert (await scheduler.get_job("a")).waiting_for == "one"
        await scheduler.run_job("a")
        await scene.until(at(1, 50))
        assert sorted(run.reason for run in scene.of("a")) == ["manual", "schedule"]
        assert (await scheduler.get_job("a")).missed == 0


@pytest.mark.promise("D6", "H4")
@virtual
async def test_slots_that_pass_while_waiting_for_a_lane_are_merged_into_one_and_counted(scene):
    scene.act = Crowd(scene, lambda run: [], "5s")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("busy", Manual(), lanes={"one": 1}, kind="slow")
        scheduler.on_job_due("slow", Crowd(scene, lambda run: [], "45m"))
        await scheduler.add_job("a", Every("10m"), lanes={"one": 1})
        await scheduler.start()
        await scheduler.run_job("busy")
        await scene.until(at(0, 48))
        job = await scheduler.get_job("a")
        assert scene.times == [at(0, 45)]
        assert (scene.slots, job.missed) == ([at(0, 40)], 3)


@pytest.mark.promise("D6", "H6")
@virtual
async def test_lanes_stay_counted_right_over_errors_retries_and_restarts(scene):
    scene.act = failing()
    for _ in range(3):
        async with scene.scheduler() as scheduler:
            await scheduler.add_jobs(
                [NewJob(f"j{n}", Every("30s"), lanes={"two": 2}, retry=1, max_errors=0) for n in range(5)],
                if_exists="keep",
            )
            await scheduler.start()
            await scene.sleep("10m")
            used = await scheduler._store.read(lambda tx: tx.lanes.all())
            assert used.get("two", 0) == 0


@pytest.mark.promise("D6")
@virtual
async def test_a_place_that_its_next_cannot_use_is_offered_on_at_once(scene):
    async def act(run):
        await scene.sleep({"holder": "10m", "other": "2h"}.get(run.job, "1m"))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("holder", Once(at(0)), lanes={"one": 1})
        await scheduler.add_job("other", Once(at(0)), lanes={"two": 1})
        await scheduler.add_job("both", Once(at(0, 1)), lanes={"one": 1, "two": 1})
        await scheduler.add_job("last", Once(at(0, 2)), lanes={"one": 1})
        await scheduler.start()
        await scene.until(at(0, 10, 2))
        assert [run.job for run in scene.runs] == ["holder", "other", "last"]
        assert (await scheduler.get_job("both")).waiting_for == "two"


@pytest.mark.promise("D6")
@virtual
async def test_a_job_whose_waiting_start_is_cancelled_leaves_the_line(scene):
    scene.act = Crowd(scene, lambda run: ["one"], length="1h")
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(name, Manual(), lanes={"one": 1}, timeout="2h") for name in ("holder", "a")])
        await scheduler.start()
        await scheduler.run_job("holder")
        await scene.sleep("1s")
        waiting = await scheduler.run_job("a")
        await scene.sleep("1s")
        assert (await scheduler.get_summary()).parked == {"one": 1}
        await scheduler.cancel_run(waiting)
        await scene.sleep("1s")
        assert (await scheduler.get_summary()).parked == {}
