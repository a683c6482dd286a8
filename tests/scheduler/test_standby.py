"""Standing by: several processes with the same scheduler on one SQLite file, of which one runs the jobs."""

from __future__ import annotations

import pytest

from tests.kernel.scene import Scene, at, virtual
from tests.store.sqlite_template import lay_out
from wakeful import Every, Manual, SchedulerNotOpen, StoreLocked, sync

pytestmark = pytest.mark.promise("H9")


@pytest.fixture
def scene(tmp_path):
    return Scene(lay_out(tmp_path / "wakeful.db"))


@virtual
async def test_who_stands_by_starts_nothing_and_takes_part_in_everything_else(scene):
    async with scene.scheduler() as one, scene.scheduler() as two:
        await one.start(standby=True)
        await two.start(standby=True)
        assert (one.get_status(), two.get_status()) == ("running", "standby")
        assert (one.is_running(), two.is_running()) == (True, False)
        await two.add_job("a", Every("1h"))
        await scene.until(at(3, 30))
        assert scene.slots == [at(1), at(2), at(3)]
        assert {run.node for run in await two.get_run_log("a")} == {"here"}
        with pytest.raises(StoreLocked):
            async with scene.scheduler() as third:
                await third.start()


@pytest.mark.parametrize("end", ["stop", "crash"])
@virtual
async def test_who_stands_by_takes_over_within_seconds_when_the_other_is_gone(scene, end):
    async with scene.scheduler() as two:
        one = scene.scheduler()
        await one.open()
        await one.start(standby=True)
        await two.start(standby=True)
        await two.add_job("a", Every("1h"))
        await scene.until(at(1, 30))
        await (one.stop() if end == "stop" else scene.crash(one))
        await scene.sleep("3s")
        assert two.get_status() == "running"
        assert two.get_state().started_at is not None
        await scene.until(at(3, 30))
        assert scene.slots == [at(1), at(2), at(3)], "each slot once, and none is lost"
        if end == "stop":
            await one.start(standby=True)
            assert one.get_status() == "standby"
            await one.close()


@virtual
async def test_who_stands_by_can_be_stopped_and_started_again(scene):
    async with scene.scheduler() as one, scene.scheduler() as two:
        await one.start()
        await two.start(standby=True)
        await two.start(standby=True)
        await two.stop()
        assert two.get_status() == "stopped"
        await one.stop()
        await scene.sleep("1m")
        assert two.get_status() == "stopped", "it waits no more"
        await two.start(standby=True)
        assert two.get_status() == "running"


@virtual
async def test_closing_ends_the_wait(scene):
    async with scene.scheduler() as one:
        await one.start()
        async with scene.scheduler() as two:
            await two.start(standby=True)
        assert two.get_status() == "stopped"
        with pytest.raises(SchedulerNotOpen):
            await two.list_jobs()


@virtual
async def test_jobs_declared_in_code_are_stored_by_who_takes_over(scene):
    one, two = scene.scheduler(), scene.scheduler()
    two.job(Every("1h"), name="declared")(scene.handle)
    async with one, two:
        await one.start(standby=True)
        await two.start(standby=True)
        assert await two.list_jobs() == []
        await one.stop()
        await scene.sleep("3s")
        assert [job.name for job in await two.list_jobs()] == ["declared"]


def test_without_await_it_is_the_same(tmp_path):
    file = lay_out(tmp_path / "wakeful.db")
    with sync.Scheduler(file) as one, sync.Scheduler(file) as two:
        one.start(standby=True)
        two.start(standby=True)
        two.add_job("a", Manual())
        assert (one.get_status(), two.get_status()) == ("running", "standby")
        assert one.get_job("a").name == "a"
