"""What only SQLite promises, or what can only be seen there; everything else in this folder holds on both stores."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Every, Interval, NewJob, Once


@pytest.fixture
def scene(sqlite_scene):
    return sqlite_scene


# Counted in SQLite's own machine steps; on PostgreSQL the plans of the same statements are looked at instead
# (tests/store/test_postgres.py).
@pytest.mark.promise("H11")
@virtual
async def test_the_start_costs_the_same_with_many_idle_jobs(scene):
    async def statements(jobs):
        async with scene.scheduler() as scheduler:
            await scheduler.add_jobs([NewJob(f"idle{jobs}-{n}", Once(at(days=300))) for n in range(jobs)])
        scheduler = scene.scheduler()
        await scheduler.open()
        seen = []
        scheduler._store._writer.set_trace_callback(seen.append)
        steps = [0]
        scheduler._store._writer.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 100)
        await scheduler.start()
        await scene.sleep("1s")
        scheduler._store._writer.set_trace_callback(None)
        scheduler._store._writer.set_progress_handler(None, 0)
        await scheduler.close()
        return len(seen), steps[0]

    few, few_steps = await statements(2)
    many, many_steps = await statements(3000)
    assert many == few
    assert many_steps <= few_steps + 20, "hundreds of machine steps more: something walks over idle jobs"


# One process runs a SQLite store, so what it noted last is the time of everybody; nodes that share PostgreSQL go by the
# server's clock, and no node looks back at it yet.
@pytest.mark.promise("H2")
@virtual
async def test_a_clock_set_back_while_nothing_runs_is_noticed_at_the_next_start(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
        await scheduler.add_job("b", Interval("1h"))
        await scheduler.start()
        await scene.until(at(5, 10))
    scene.step(days=-1)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("150m")
        assert any(alert.kind == "clock" for alert in await scheduler.list_alerts())
        assert len([run for run in scene.of("a") if run.slot < at(1)]) >= 2, "silent for a day"
        assert len([run for run in scene.of("b") if run.slot < at(1)]) >= 1, "silent for a day"
