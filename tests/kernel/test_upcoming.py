"""What is shown is what will fire: `upcoming` against what a scheduler then does."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Every, Interval, Manual, Once
from wakeful.surfaces.cli.times import merged_starts

HOURS = {"start": "09:00", "end": "12:00", "timezone": "UTC"}


@pytest.mark.promise("H3", "H4")
@pytest.mark.parametrize(
    ("trigger", "options"),
    [
        (Every("3s"), {}),
        (Every("7s", max_runs=3), {}),
        (Every("10s", until=at(0, 2)), {}),
        (Cron("*/4 * * * * *", tz="UTC"), {}),
        (Cron("*/25 * * * * *", tz="UTC"), {}),  # 0, 25, 50 and 0 again
        (Every("1m", stagger="50s"), {}),
        (Every("30s", stagger="5m"), {}),
        (Interval("3s"), {}),
        (Interval("45s", max_runs=4), {}),
        (Every("20m", active_hours=HOURS), {}),
        (Every("1h"), {"bounded": True}),
        (Every("30m"), {"bounded": True}),
        (Once(at(0, 30)), {}),
        (Manual(), {}),
    ],
    ids=lambda value: str(value)[:60],
)
@virtual
async def test_what_is_shown_is_what_fires(scene, trigger, options):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, **options)
        await scheduler.start()
        await scene.sleep(0.001)
        seen = len(scene.times)
        job = await scheduler.get_job("a")
        shown = job.upcoming(12)
        assert [job.upcoming(n) for n in (0, 1, 5)] == [shown[:n] for n in (0, 1, 5)]
        assert [ms for _, ms in merged_starts([job], 12)] == [int(one.timestamp() * 1000) for one in shown]
        await scene.until(shown[-1] if shown else at(10))
        assert scene.times[seen:] == shown
        if len(shown) < 12:
            await scene.sleep("1d")
            assert scene.times[seen:] == shown


@pytest.mark.promise("H4", "H8")
@pytest.mark.parametrize("catch_up", ["once", "skip", {"within": "1h"}], ids=str)
@virtual
async def test_what_is_shown_of_a_store_that_slept_is_what_fires_when_it_wakes(scene, catch_up):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("4h"), catch_up=catch_up)
        await scene.until(at(9, 30))
        shown = (await scheduler.get_job("a")).upcoming(4)
        await scheduler.start()
        await scene.until(shown[-1])
        late = [at(9, 30)] if catch_up == "once" else []
        assert scene.times == late + [moment for moment in shown if moment > at(9, 30)]
        assert len(shown) == 4


@pytest.mark.promise("H8")
@virtual
async def test_nothing_is_shown_while_a_job_is_stopped_and_what_comes_after_it_while_it_runs(scene):
    async def act(run):
        await scene.sleep("5s")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("3s"))
        await scheduler.start()
        await scene.until(at(0, 0, 4))
        job = await scheduler.get_job("a")
        assert job.status == "running"
        shown = job.upcoming(3)
        await scene.until(shown[0])
        assert scene.times[-1] == shown[0] == at(0, 0, 15)
        await scheduler.pause_job("a")
        assert (await scheduler.get_job("a")).upcoming(3) == []


@pytest.mark.promise("C5")
@virtual
async def test_the_minimum_interval_shown_is_the_one_of_the_node_that_runs_the_jobs(scene):
    async with scene.scheduler(min_interval="10m") as scheduler:
        await scheduler.add_job("a", Every("30m"), bounded=True)
        await scheduler.start()
        async with scene.scheduler() as reader:  # whose own minimum is an hour
            assert (await reader.get_job("a")).upcoming(2) == [at(0, 30), at(1)]
            assert [job.upcoming(1) for job in await reader.list_jobs()] == [[at(0, 30)]]
