"""Kinds that are part of the machinery: not counted by `max_running`, and in no listing or count unless asked for."""

from __future__ import annotations

from tests.kernel.scene import at, virtual
from wakeful import Every, Manual, NewJob, Once, Wait
from wakeful.kernel.kinds import Kind
from wakeful.store.jobs import JobFilter
from wakeful.surfaces.cli.doctor import _look as doctor_look
from wakeful.surfaces.cli.times import next_starts

POST = Kind("post", internal=True)


@virtual
async def test_an_internal_job_takes_no_place_of_max_running(scene):
    async def act(run):
        await scene.sleep("30m")

    scene.act = act
    async with scene.scheduler("job", "post", kinds=[POST], max_running=1) as scheduler:
        jobs = [NewJob(f"post{n}", Once(at(1)), kind="post") for n in range(3)]
        await scheduler.add_jobs([*jobs, NewJob("a", Once(at(1))), NewJob("b", Once(at(1)))])
        await scheduler.start()
        await scene.until(at(1, 1))
        assert len(scene.runs) == 4, "all three, and one of the others"
        assert scheduler.running_count() == 1


@virtual
async def test_internal_jobs_and_their_runs_are_in_no_listing_and_no_count(scene):
    async def act(run):
        if run.job == "posts now":
            await scene.sleep("10h")
        return Wait(at(9)) if run.job == "post waits" else None

    scene.act = act
    async with scene.scheduler("job", "post", kinds=[POST]) as scheduler:
        await scheduler.add_jobs(
            [
                NewJob("posts", Every("10m"), kind="post"),
                NewJob("posts now", Once(at(1)), kind="post"),
                NewJob("post waits", Once(at(1)), kind="post"),
                NewJob("post stopped", Manual(), kind="post"),
                NewJob("post parked", Once(at(1)), kind="post", labels=["far away"]),
                NewJob("a", Every("1h")),
            ]
        )
        await scheduler.pause_job("post stopped")
        await scheduler.start()
        await scene.until(at(1, 5))
        assert [job.name for job in await scheduler.list_jobs()] == ["a"]
        assert len(await scheduler.list_jobs(internal=True)) == 6
        assert {run.job for run in await scheduler.get_run_log()} == {"a"}
        assert {run.job for run in await scheduler.get_run_log("posts")} == {"posts"}, "asked for by name"
        summary = await scheduler.get_summary()
        assert (summary.jobs, summary.parked, summary.open_runs) == ({"idle": 1}, {}, 0)
        figures = await scheduler.server_side.get_figures()
        assert (figures.jobs, figures.parked, figures.open_runs, figures.overdue) == ({"idle": 1}, {}, {}, 0)
        assert figures.runs_day == figures.runs_week == {"success": 1}
        assert figures.lateness.starts == 1
        assert [job.name for job, _ in await next_starts(scheduler, 3)] == ["a"] * 3
        assert (await scheduler.read(lambda tx: tx.jobs.armed(100, scheduler.host.hidden_kinds))) == 1
        found = await doctor_look(scheduler)
        assert (found.jobs, found.waiting) == (1, 1)
        everything = await scheduler.read(lambda tx: (tx.jobs.count(JobFilter()), tx.jobs.armed(100)))
        assert everything == (6, 3), "the hourly one, the one every ten minutes, and the one that is parked"
