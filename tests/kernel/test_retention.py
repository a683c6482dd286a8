"""History is kept by age and by number, and what is still needed is never deleted."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Every, Manual, Once, Retention, Wait


@pytest.mark.promise("X11")
@virtual
async def test_runs_older_than_kept_are_deleted_and_the_last_one_stays(scene):
    async with scene.scheduler(retention=Retention(days=2)) as scheduler:
        await scheduler.add_job("often", Every("6h"))
        await scheduler.add_job("rare", Every("1d", max_runs=1))
        await scheduler.start()
        await scene.sleep("10d")
        log = await scheduler.get_run_log("often", limit=1000)
        assert 8 <= len(log) <= 10
        assert len(await scheduler.get_run_log("rare")) == 1
        assert (await scheduler.get_job("rare")).last_run_at == at(days=1)


@pytest.mark.promise("X11")
@virtual
async def test_no_more_runs_are_kept_than_said(scene):
    async with scene.scheduler(retention=Retention(runs_per_job=10)) as scheduler:
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        await scene.sleep("5h")
        log = await scheduler.get_run_log("a", limit=1000)
        assert 10 <= len(log) <= 120
        assert log[0].slot == at(5)


@pytest.mark.promise("X11")
@virtual
async def test_waiting_and_open_runs_and_what_they_continue_are_kept(scene):
    async def act(run):
        if run.job == "waits":
            raise Wait
        if run.job == "retried":
            raise ConnectionError

    scene.act = act
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        await scheduler.add_job("waits", Once(at(0)))
        await scheduler.add_job("retried", Manual(), retry=["5d"])
        await scheduler.start()
        first = await scheduler.run_job("retried")
        await scene.sleep("4d")
        assert (await scheduler.get_run_log("waits"))[0].status == "waiting"
        assert (await scheduler.get_run(first)).outcome == "error"
        await scene.sleep("2d")
        assert [run.attempt for run in scene.of("retried")] == [1, 2]


@pytest.mark.promise("X11")
@virtual
async def test_finished_one_shot_jobs_and_removed_jobs_are_forgotten_in_time(scene):
    async with scene.scheduler(retention=Retention(days=3)) as scheduler:
        await scheduler.add_job("done", Once(at(1)))
        await scheduler.add_job("removed", Manual())
        await scheduler.add_job("later", Once(at(days=30)))
        await scheduler.start()
        await scheduler.run_job("removed")
        await scene.until(at(2))
        await scheduler.remove_job("removed")
        await scene.until(at(days=2))
        assert await scheduler.get_job("done") is not None
        assert len(await scheduler.get_run_log("removed")) == 1
        await scene.until(at(days=5))
        assert [job.name for job in await scheduler.list_jobs()] == ["later"]
        assert await scheduler.get_run_log(limit=1000) == []


@pytest.mark.promise("H2", "X11")
@virtual
async def test_pruning_does_not_let_a_slot_run_twice(scene):
    async with scene.scheduler(retention=Retention(days=1, runs_per_job=1)) as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("49h")
        assert len(await scheduler.get_run_log("a", limit=1000)) < 40
        scene.step(minutes=-30)
        await scene.sleep("3h")
        assert len(scene.slots) == len(set(scene.slots))
