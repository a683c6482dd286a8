"""A turn that was stored and whose answer never came: what it claimed is neither lost nor left node_lease."""

from __future__ import annotations

import pytest

from tests.kernel.scene import virtual
from wakeful import Every, Manual, NewJob, StoreUnreachable, Wait


class Forgetful:
    """Makes a scheduler's store report, a given number of times, that it cannot be reached, though it has stored."""

    def __init__(self, scheduler):
        self.silent = 0
        self._write = scheduler._store.write
        scheduler._store.write = self._forget

    async def _forget(self, work, *, not_before=None):
        result = await self._write(work, not_before=not_before)
        if self.silent:
            self.silent -= 1
            raise StoreUnreachable("The server went away while storing.")
        return result


@pytest.mark.promise("H11", "X2")
@pytest.mark.parametrize("answers_lost", [1, 2, 5])
@virtual
async def test_what_a_turn_claimed_is_started_after_its_answer_was_lost(scene, answers_lost):
    scheduler = scene.scheduler()
    store = Forgetful(scheduler)
    async with scheduler:
        await scheduler.start()
        await scheduler.add_job("a", Every("1m"))
        await scene.sleep("59s")
        assert scheduler.get_state().trouble is None
        store.silent = answers_lost
        await scene.sleep(1.5)
        assert scheduler.get_state().trouble == "The server went away while storing."
        await scene.sleep("30s")
        assert scheduler.get_state().trouble is None
        assert [(run.slot, run.attempt) for run in scene.runs] == [(scene.runs[0].slot, 1)]
        await scene.sleep("1m")
        assert [run.outcome for run in await scheduler.get_run_log("a")] == ["success", "success"]
        assert [run.attempt for run in scene.runs] == [1, 1]


@pytest.mark.promise("H11")
@virtual
async def test_trouble_with_the_store_is_said_once_and_so_is_its_end(scene, caplog):
    scheduler = scene.scheduler()
    store = Forgetful(scheduler)
    async with scheduler:
        await scheduler.start()
        await scheduler.add_job("a", Every("1m"))
        store.silent = 20
        await scene.sleep("5m")
        said = [record.message for record in caplog.records if record.message.startswith("database")]
        assert [message.partition(":")[0] for message in said] == [
            "database unavailable, retrying",
            "database available again",
        ]


@pytest.mark.promise("D6", "H11")
@virtual
async def test_a_run_that_waits_gives_its_lane_back_once_though_the_answer_was_lost(scene):
    scheduler = scene.scheduler()
    store = Forgetful(scheduler)

    async def act(run):
        if run.job == "waits":
            await scene.sleep("1s")
            store.silent = 1  # the turn that records the waiting is stored, and its answer is lost
            return Wait()
        await scene.sleep("1h")
        return None

    scene.act = act
    async with scheduler:
        await scheduler.start()
        await scheduler.add_jobs([NewJob(name, Manual(), lanes={"pair": 2}) for name in ("waits", "works")])
        for name in ("works", "waits"):
            await scheduler.run_job(name)
        await scene.sleep("1m")
        assert [run.status for run in await scheduler.get_run_log("waits")] == ["waiting"]
        assert await scheduler._store.read(lambda tx: tx.lanes.all()) == {"pair": 1}
