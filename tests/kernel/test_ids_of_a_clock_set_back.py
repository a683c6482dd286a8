"""While the clock is behind, processes that share a store make ids of their own all the same."""

from __future__ import annotations

import pytest

from tests.kernel.scene import virtual
from wakeful import Every, Manual, Scheduler


@pytest.mark.promise("H2")
@virtual
async def test_what_other_processes_start_while_the_clock_is_behind_collides_with_nothing(scene, caplog):
    names = [f"asked-{number}" for number in range(10)]
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("tick", Every("10s"), kind="job")
        for name in names:
            await scheduler.add_job(name, Manual(), kind="job")
        await scheduler.start()
        await scene.sleep("1m")
        scene.step(hours=-1)
        await scene.sleep("11m")  # until that was noticed
        for number, name in enumerate(names):
            async with Scheduler(scene.url, clock=scene.clock, seed=100 + number, timezone="UTC") as other:
                await scene.sleep(5)
                await other.run_job(name)
                await scene.sleep(15)
        await scene.sleep("1m")
        assert [run.job for run in scene.runs if run.job != "tick"] == names
        await scheduler.stop()
    assert "failed" not in caplog.text
