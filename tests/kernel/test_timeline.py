"""The timeline: what ran and what is to come, with the times in which nothing could run."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Every
from wakeful.kernel.views.timeline import timeline

pytestmark = pytest.mark.promise("X28")
HOUR = 3_600_000


@virtual
async def test_a_time_the_machine_slept_is_a_band_where_no_other_node_could_run(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"))
        await scheduler.start()
        await scene.until(at(1))
        scene.clock.elapse(3 * HOUR / 1000)
        await scene.sleep(60)
        found = await scheduler.read(lambda tx: timeline(tx, 12 * HOUR, 12 * HOUR))
        slept = [band for band in found.bands if band.asleep]
        if "postgres" in scene.url:
            assert slept == []
            return
        (band,) = slept
        assert 2.9 * HOUR < band.end - band.begin < 3.2 * HOUR


@virtual
async def test_what_ran_is_on_the_left_and_what_is_to_come_on_the_right(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.add_job("b", Cron("0 0 1 1 *", tz="UTC"))
        await scheduler.start()
        await scene.until(at(3, 30))
        found = await scheduler.read(lambda tx: timeline(tx, 12 * HOUR, 12 * HOUR))
        row = next(row for row in found.rows if row.job.name == "a")
        assert [mark.what for mark in row.marks] == ["success"] * 3
        assert all(mark.at <= found.now < ahead for mark in row.marks for ahead in row.ahead)
        assert len(row.ahead) == 12
        assert not any(band.asleep for band in found.bands)
