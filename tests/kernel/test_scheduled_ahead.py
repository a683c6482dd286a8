"""A schedule before it is stored: when it would start, and what a person should know about it."""

from __future__ import annotations

import pytest

from tests.kernel.scene import virtual
from wakeful import Cron, Every
from wakeful.kernel.views.history import Lately
from wakeful.kernel.views.scheduled_ahead import look_ahead
from wakeful.store.runs import Ended

pytestmark = pytest.mark.promise("X28")


async def ahead(scene, trigger, zone="UTC", last=None):
    async with scene.scheduler() as scheduler:
        return await scheduler.read(lambda tx: look_ahead(tx, trigger, zone, last))


@virtual
async def test_the_next_five_times_are_those_the_job_would_have(scene):
    found = await ahead(scene, Cron("0 9 * * *", tz="Europe/Berlin"))
    assert len(found.times) == 5
    assert found.words == "every day at 09:00, Europe/Berlin"


@virtual
async def test_runs_that_take_longer_than_the_smallest_gap_are_warned_of(scene):
    slow = Lately((Ended(1, 1, "done", "success", 0, 20 * 60_000),))
    found = await ahead(scene, Every("15m"), last=slow)
    assert "take up to 20 minutes" in found.warnings[0]
    assert (await ahead(scene, Every("1h"), last=slow)).warnings == []


@virtual
async def test_a_start_that_a_change_of_the_clocks_takes_or_doubles_is_warned_of(scene):
    doubled = await ahead(scene, Cron("*/30 2 * * *", tz="Europe/Berlin"))
    assert any("the clocks of Europe/Berlin change" in warning for warning in doubled.warnings)
    assert (await ahead(scene, Cron("0 9 * * *", tz="Europe/Berlin"))).warnings == []
    assert (await ahead(scene, Every("1h"))).warnings == []
