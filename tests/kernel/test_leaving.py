"""A scheduler that stops while its store is out of reach: what it could not record is found by the next one."""

from __future__ import annotations

import pytest

from tests.kernel.scene import virtual
from wakeful import Every, StoreUnreachable


@pytest.mark.promise("H11", "X14")
@virtual
async def test_what_a_stop_could_not_record_is_recovered_by_the_next_start(scene):
    """The server is away just long enough for the runs not to be settled, and back for the node to say it left."""

    async def act(run):
        await scene.sleep("1h" if len(scene.runs) == 1 else "1s")

    scene.act = act
    scheduler = scene.scheduler()
    async with scheduler:
        await scheduler.add_job("a", Every("1d"))
        await scheduler.start()
        asked = await scheduler.run_job("a")
        await scene.sleep("1m")
        write, back_at = scheduler._store.write, scene.clock.boot() + 8_500

        async def out_of_reach(work, *, not_before=None):
            if scene.clock.boot() < back_at:
                raise StoreUnreachable("The server went away.")
            return await write(work, not_before=not_before)

        scheduler._store.write = out_of_reach
        scheduler._engine._wake()
        await scheduler.stop(wait_for_jobs=False)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("10m")
        again, cut_off = await scheduler.get_run_log("a")
        assert (cut_off.id, cut_off.outcome) == (asked, "crashed")
        assert (again.reason, again.outcome, again.retry_of) == ("recovery", "success", asked)
