"""Applying files to a store: ownership, what is left alone, and several nodes with files of their own."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from tests.kernel.scene import at, failing, virtual
from tests.store.postgres_server import emptied_url
from wakeful import Every, JobExists, Scheduler
from wakeful.domains.files.applying import Fleet, TooMuchRemoved, apply_fleet, plan_fleet
from wakeful.domains.files.planning import DesiredJob, PlanContext
from wakeful.domains.files.tables import Fleets
from wakeful.kernel.actions.drafts import NewJob
from wakeful.triggers import After, Cron, Manual, Once, Ping

HOURLY = Every("1h")


def fleet(scheduler, *jobs, name="main", file_hash="1", place="here:/wakeful.yaml"):
    """A file with these jobs: a name, or a name with its trigger and what else differs."""
    wanted = []
    for job in jobs:
        job_name, trigger, options = (job, HOURLY, {}) if isinstance(job, str) else (*job, {})[:3]
        options = dict(options)
        said = (options.pop("enabled", True), options.pop("notes", None))
        wanted.append(DesiredJob(scheduler.host.draft(NewJob(job_name, trigger, **options), "file", {}), *said))
    return Fleet(name, tuple(wanted), file_hash, ("${TOKEN}",), place)


async def apply(scheduler, made, *, confirmed=False, unless_applied=False):
    terms = PlanContext(scheduler.clock.now(), "UTC")
    return await scheduler.transact(
        lambda tx, context: apply_fleet(tx, context, made, terms, confirmed=confirmed, unless_applied=unless_applied)
    )


async def names(scheduler):
    return [job.name for job in await scheduler.list_jobs()]


@pytest.mark.promise("X15")
@virtual
async def test_a_job_that_its_file_switches_off_later_starts_no_more(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a"))
        await scheduler.start()
        await apply(scheduler, fleet(scheduler, ("a", HOURLY, {"enabled": False}), file_hash="2"))
        await scene.sleep("3h")
        assert ((await scheduler.get_job("a")).status, scene.runs) == ("disabled", [])
        await scheduler.stop()


@pytest.mark.promise("X15")
@virtual
async def test_a_file_touches_only_what_it_made(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("mine", HOURLY, source="cli")
        await apply(scheduler, fleet(scheduler, "a", "b", "c"))
        await apply(scheduler, fleet(scheduler, "other", name="second", place="there:/wakeful.yaml"))
        await apply(scheduler, fleet(scheduler, "a", "b", file_hash="2"))
        assert await names(scheduler) == ["a", "b", "mine", "other"]
        assert (await scheduler.get_job("a")).source == "file"
        for taken in ("mine", "other"):
            with pytest.raises(JobExists, match="a file changes only its own"):
                await apply(scheduler, fleet(scheduler, "a", "b", "new", taken, file_hash="3"))
        assert await names(scheduler) == ["a", "b", "mine", "other"]  # all or nothing


@pytest.mark.promise("X15")
@virtual
async def test_a_job_that_was_replaced_elsewhere_no_longer_belongs_to_the_file(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a", "b", "c"))
        await scheduler.add_job("c", Every("9h"), source="cli", if_exists="update")
        with pytest.raises(JobExists, match="was made by wakeful add"):
            await apply(scheduler, fleet(scheduler, "a", "b", "c", file_hash="2"))
        await apply(scheduler, fleet(scheduler, "a", "b", file_hash="3"))
        assert await names(scheduler) == ["a", "b", "c"]


@virtual
async def test_a_plan_only_reads(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a", "b"))
        made, terms = fleet(scheduler, ("a", Every("2h")), "b", "c"), PlanContext(scene.clock.now(), "UTC")
        plan = await scheduler.read(lambda tx: plan_fleet(tx, made, terms))
        assert (len(plan.create), len(plan.update), plan.remove, plan.unchanged) == (1, 1, [], 1)
        assert await names(scheduler) == ["a", "b"]


@pytest.mark.promise("X15")
def test_nodes_that_apply_at_the_same_time_take_turns(tmp_path, monkeypatch):
    """In real time: the second one waits for the first, and makes of what that left what its own file says."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = emptied_url()
    inside = threading.Barrier(2, timeout=1)

    async def both():
        async with Scheduler(url, node="one") as one, Scheduler(url, node="two") as two:
            files = fleet(one, "a", place="one:/f"), fleet(two, "b", file_hash="2", place="two:/f")
            plans = await asyncio.gather(meeting(one, files[0]), meeting(two, files[1]))
            return sorted(len(plan.remove) for plan in plans), await names(one)

    async def meeting(scheduler, made):
        terms = PlanContext(scheduler.clock.now(), "UTC")

        def work(tx, context):
            plan = apply_fleet(tx, context, made, terms, confirmed=True)
            with contextlib.suppress(threading.BrokenBarrierError):
                inside.wait()  # who holds the turn waits here in vain
            return plan

        return await scheduler.transact(work)

    removed, left = asyncio.run(both())
    assert (removed, len(left)) == ([0, 1], 1)


@pytest.mark.promise("X15")
@virtual
async def test_applying_the_same_again_moves_nothing(scene):
    async with scene.scheduler() as scheduler:
        jobs = ["a", ("b", Cron("0 5 * * *", tz="UTC")), ("c", After("a")), ("d", Once(at(hours=9)))]
        await apply(scheduler, fleet(scheduler, *jobs))
        before = [(job.name, job.next_run_at, job.revision) for job in await scheduler.list_jobs()]
        await scene.sleep(1_000)
        plan = await apply(scheduler, fleet(scheduler, *jobs, file_hash="2"))
        assert (plan.is_empty, plan.unchanged) == (True, 4)
        assert [(job.name, job.next_run_at, job.revision) for job in await scheduler.list_jobs()] == before


@pytest.mark.promise("X15")
@virtual
async def test_a_pause_stays_whatever_the_file_says(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a"))
        await scheduler.pause_job("a")
        await apply(scheduler, fleet(scheduler, ("a", Every("2h"), {"enabled": False}), file_hash="2"))
        await apply(scheduler, fleet(scheduler, ("a", Every("3h")), file_hash="3"))
        job = await scheduler.get_job("a")
        assert (job.status, job.enabled, job.next_run_at) == ("paused", True, None)
        await scheduler.resume_job("a")
        assert (await scheduler.get_job("a")).next_run_at is not None


@pytest.mark.promise("X15")
@virtual
async def test_a_slot_that_is_due_is_run_though_its_schedule_moved(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a"))
        await scene.sleep(2 * 3600 + 60)  # due while nothing runs
        await apply(scheduler, fleet(scheduler, ("a", Every("5h")), file_hash="2"))
        await scheduler.start()
        await scene.sleep(1)
        assert scene.times == [at(hours=2, minutes=1)]
        assert (await scheduler.get_job("a")).next_run_at == at(hours=7, minutes=1)


@virtual
async def test_a_job_that_was_disabled_for_its_errors_stays_so(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, ("a", HOURLY, {"max_errors": 1})))
        await scheduler.start()
        await scene.sleep(3700)
        assert (await scheduler.get_job("a")).status == "disabled"
        await apply(scheduler, fleet(scheduler, ("a", Every("2h"), {"max_errors": 1}), file_hash="2"))
        assert (await scheduler.get_job("a")).status == "disabled"


@virtual
async def test_a_one_shot_that_is_done_runs_again_at_a_new_time_only(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, ("a", Once(at(hours=1)))))
        await scheduler.start()
        await scene.sleep(2 * 3600)
        await apply(scheduler, fleet(scheduler, ("a", Once(at(hours=1))), file_hash="2"))
        await scene.sleep(3600)
        assert len(scene.runs) == 1
        await apply(scheduler, fleet(scheduler, ("a", Once(at(hours=5))), file_hash="3"))
        await scene.sleep(3 * 3600)
        assert scene.slots == [at(hours=1), at(hours=5)]


@virtual
async def test_enabled_false_stops_a_job_and_true_lets_it_go_on(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, ("a", HOURLY, {"enabled": False, "notes": "not yet"})))
        job = await scheduler.get_job("a")
        assert (job.status, job.next_run_at, list(job.notes)) == ("disabled", None, ["not yet"])
        await apply(scheduler, fleet(scheduler, "a", file_hash="2"))
        assert (await scheduler.get_job("a")).next_run_at is not None


@pytest.mark.promise("X15")
@virtual
async def test_an_edit_that_removes_more_than_half_waits_for_a_person(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a", "b", "c"))
        with pytest.raises(TooMuchRemoved, match="would remove 2 of its 3 jobs"):
            await apply(scheduler, fleet(scheduler, "a", "new", file_hash="2"))
        assert await names(scheduler) == ["a", "b", "c"]
        await apply(scheduler, fleet(scheduler, "a", "new", file_hash="2"), confirmed=True)
        assert await names(scheduler) == ["a", "new"]


@pytest.mark.promise("X15")
@virtual
async def test_nodes_whose_files_differ_do_not_undo_each_other(scene):
    async with scene.scheduler() as scheduler:
        old = fleet(scheduler, "a", place="one:/wakeful.yaml")
        new = fleet(scheduler, "a", "b", file_hash="2", place="two:/wakeful.yaml")
        assert await apply(scheduler, old, unless_applied=True) is not None
        assert await apply(scheduler, new, unless_applied=True) is not None
        assert await apply(scheduler, old, unless_applied=True) is None  # it starts again, with the file it had
        assert await names(scheduler) == ["a", "b"]
        assert await scheduler.read(lambda tx: tx.of(Fleets).applied("main")) == ("2", ["${TOKEN}"])


@virtual
async def test_what_dies_in_the_middle_of_it_leaves_nothing(scene):
    class Died(Exception):
        pass

    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a", "b", "c"))
        made, terms = (
            fleet(scheduler, ("a", Every("9h")), "b", "new", file_hash="2"),
            PlanContext(scene.clock.now(), "UTC"),
        )

        def die(tx, context):
            apply_fleet(tx, context, made, terms, confirmed=False)
            raise Died

        with pytest.raises(Died):
            await scheduler.transact(die)
        assert await names(scheduler) == ["a", "b", "c"]
        assert (await scheduler.get_job("a")).trigger.interval_ms == 3_600_000
        assert (await apply(scheduler, made, unless_applied=True)).is_empty is False


@virtual
async def test_two_jobs_can_change_places_in_a_chain(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a", ("b", After("a"))))
        await apply(scheduler, fleet(scheduler, ("a", After("b")), "b", file_hash="2"))
        assert (await scheduler.get_job("a")).trigger == After("b")


@pytest.mark.promise("X27")
@virtual
async def test_what_a_file_removed_is_restored_by_an_undo_and_stays_the_files_own(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a", "b", "c"))
        await apply(scheduler, fleet(scheduler, "a", "b", file_hash="2"))
        (action,) = await scheduler.list_actions()
        assert (action.what, action.name, action.via, action.actor) == ("remove", "c", "file", "here:/wakeful.yaml")
        assert (await scheduler.undo(action.id)).restored == ["c"]
        assert await names(scheduler) == ["a", "b", "c"]
        plan = await apply(scheduler, fleet(scheduler, "a", "b", file_hash="3"))
        assert [one.job.name for one in plan.remove] == ["c"], "the file still says so"


@pytest.mark.promise("X27", "X15")
@virtual
async def test_a_pause_is_undone_though_the_file_has_only_enabled_the_job_since(scene):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, ("a", HOURLY, {"enabled": False})))
        await scheduler.pause_job("a", "a look first")
        pause = (await scheduler.list_actions())[0]
        await apply(scheduler, fleet(scheduler, ("a", HOURLY), file_hash="2"))
        job = await scheduler.get_job("a")
        assert (job.status, job.enabled) == ("paused", True)
        done = await scheduler.undo(pause.id)
        assert (done.restored, done.kept) == (["a"], {})
        job = await scheduler.get_job("a")
        assert (job.status, job.enabled, job.next_run_at is not None) == ("idle", True, True)


@pytest.mark.promise("X15", "H13")
@pytest.mark.parametrize("later", [Once(at(5)), Manual(), After("other"), Ping(Every("5h"))])
@pytest.mark.parametrize("before", [Once(at(1)), HOURLY])
@virtual
async def test_what_was_due_does_not_start_where_the_file_says_another_time_for_it_or_none(scene, before, later):
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, ("other", Manual()), ("a", before)))
        await scene.until(at(2, 30))  # due while nothing runs
        await apply(scheduler, fleet(scheduler, ("other", Manual()), ("a", later), file_hash="2"), confirmed=True)
        scene.times.clear()
        await scheduler.start()
        await scene.until(at(2, 40))
        assert [run.job for run in scene.runs if run.job == "a"] == []
        await scene.until(at(5, 30))
        assert [run.slot for run in scene.runs if run.job == "a"] == ([at(5)] if later.type == "once" else [])
        await scheduler.stop()
