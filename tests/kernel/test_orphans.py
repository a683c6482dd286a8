"""Jobs that code declared under a name it no longer uses are named, and never touched."""

from __future__ import annotations

import logging

import pytest

from tests.kernel.scene import virtual
from wakeful import Every
from wakeful.kernel.views.orphans import orphans
from wakeful.store.records import NodeRow


def named(caplog):
    return [record.getMessage().split()[1] for record in caplog.records if "wakeful remove" in record.getMessage()]


@pytest.mark.promise("H17")
@virtual
async def test_a_job_that_was_renamed_in_code_is_named_at_the_start_and_stays(scene, caplog):
    async with scene.scheduler() as scheduler:
        scheduler.job(Every("1h"), name="old")(scene.handle)
        scheduler.job(Every("1h"), name="kept")(scene.handle)
        await scheduler.add_job("added", Every("1h"), kind="elsewhere")
        await scheduler.start()
        assert named(caplog) == []
    async with scene.scheduler() as scheduler:
        scheduler.job(Every("1h"), name="new")(scene.handle)
        scheduler.job(Every("1h"), name="kept")(scene.handle)
        with caplog.at_level(logging.WARNING, "wakeful"):
            await scheduler.start()
        assert named(caplog) == ["old"]
        job = await scheduler.get_job("old")
        assert (job.enabled, job.status) == (True, "idle"), "only a person knows whether it is wanted"
        await scheduler.remove_job("old")
        assert await scheduler.read(orphans) == []


@virtual
async def test_what_a_living_node_handles_is_no_orphan_and_a_program_without_jobs_names_none(scene, caplog):
    async with scene.scheduler() as scheduler:
        scheduler.job(Every("1h"), name="theirs")(scene.handle)
        scheduler.job(Every("1h"), name="off")(scene.handle)
        await scheduler.start()
        await scheduler.update_job("off", enabled=False)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        assert named(caplog) == []
        assert await scheduler.read(orphans) == ["theirs"]
        assert await scheduler.read(lambda tx: orphans(tx, ["theirs"])) == []
        now = scheduler.clock.now()
        other = NodeRow(7, "other", now, now, None, '{"kinds": ["theirs"]}')
        await scheduler.transact(lambda tx, _: tx.members.join(other))
        assert await scheduler.read(orphans) == []
