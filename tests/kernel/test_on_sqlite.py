"""What only SQLite promises, or what can only be seen there; everything else in this folder holds on both stores."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from tests.kernel.stepping import HOURLY, MINUTELY, STEPS, step_through
from wakeful import Every, NewJob, Once
from wakeful.kernel.views.timeline import timeline

HOUR_MS = 3_600_000


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


# The quicker store sees what both would say: minutes instead of hours, and the steps at another moment.
@pytest.mark.promise("H2")
@pytest.mark.parametrize("wait", ["185m", "3h"])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("trigger", {**HOURLY, **MINUTELY}.values(), ids={**HOURLY, **MINUTELY})
@virtual
async def test_a_stepped_clock_repeats_no_slot_loses_no_job_and_starts_no_storm(scene, trigger, steps, wait):
    await step_through(scene, trigger, steps, wait)


# Nodes of PostgreSQL send heartbeats, and by the clock of the database.
@pytest.mark.promise("X28")
@virtual
async def test_a_server_that_was_killed_ran_until_it_was_last_heard_of(scene):
    killed = scene.scheduler()
    await killed.open()
    await killed.add_job("a", Every("10m"))
    await killed.start()
    await scene.until(at(3))
    await scene.crash(killed)
    await scene.until(at(5))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        found = await scheduler.read(lambda tx: timeline(tx, 12 * HOUR_MS, 12 * HOUR_MS))
        (band,) = [band for band in found.bands if not band.asleep]
        assert 1.7 * HOUR_MS < band.end - band.begin < 2.1 * HOUR_MS, "it was away for two hours, not for five"
