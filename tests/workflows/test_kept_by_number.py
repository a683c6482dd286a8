"""Of what a busy workflow leaves behind a number is kept, and what it still needs."""

from __future__ import annotations

import pytest

from tests.workflows.mailroom import publish, virtual
from wakeful import Retention

TABLES = ("workflow_events", "workflow_runs", "workflow_actions", "events")


@pytest.mark.promise("X11", "X24")
@virtual
async def test_events_attempts_and_actions_are_kept_by_number(room):
    room.scene.tuning = room.scene.tuning._replace(sweep_ms=60_000)
    scheduler = room.scene.scheduler(retention=Retention(runs_per_job=5, check_every=5, events=30, records=10))
    scheduler.add_workflow(room.workflow())
    async with scheduler:
        await scheduler.start()
        for number in range(60):
            await publish(scheduler, f"m{number}")
            await room.scene.sleep("5s")
        await room.scene.sleep("10m")

        def count(tx):
            return {name: tx.tables.count(name) for name in TABLES}

        found = await scheduler.read(count)
        assert found["workflow_events"] <= 12, "of 120"
        assert found["workflow_runs"] <= 30, "with their runs, of which each handler keeps a few"
        assert found["workflow_actions"] == 10
        assert found["events"] <= 40
        assert not (await publish(scheduler, "m1")).new, "its event is gone, its message id is not"
        await room.scene.sleep("1m")
        assert (await room.row(scheduler)).issue is None
