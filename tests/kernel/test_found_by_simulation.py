"""Bugs that simulation and chaos found and no other test did, as small scenarios."""

from __future__ import annotations

import pytest

from tests.kernel.scene import START, at, failing, virtual
from wakeful import After, Every, Interval, Manual, Once, TransientError


@pytest.mark.promise("H13")
@virtual
async def test_a_one_shot_whose_last_retry_is_cancelled_is_over(scene):
    scene.act = failing("later", TransientError)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(START))
        await scheduler.start()
        await scene.sleep("1s")
        queued = (await scheduler.get_run_log("a"))[0]
        assert (queued.status, queued.reason) == ("queued", "retry")
        await scheduler.cancel_run(queued.id)
        await scene.sleep("1s")
        job = await scheduler.get_job("a")
        assert (job.status, job.next_run_at) == ("disabled", None)


@pytest.mark.promise("H8", "H17")
@pytest.mark.parametrize("meddle", ["resume", "edit"])
@virtual
async def test_a_start_by_hand_of_a_paused_job_outlives_waiting_for_a_handler(scene, meddle):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), kind="rare")
        await scheduler.start()
        await scheduler.pause_job("a")
        asked = await scheduler.run_job("a")
        await scene.sleep("1m")
        assert (await scheduler.get_job("a")).waiting_for == "kind:rare"
        if meddle == "resume":
            await scheduler.resume_job("a")
        else:
            await scheduler.update_job("a", trigger=Interval("20m"))
        scheduler.on_job_due("rare", scene.handle)
        await scene.sleep("2m")
        assert (await scheduler.get_run(asked)).outcome == "success"


@pytest.mark.promise("H5")
@virtual
async def test_a_job_added_while_a_turn_is_being_committed_is_noticed_at_once(scene, monkeypatch):
    """The answer of a turn that began before the job was stored must not cover it up."""
    async with scene.scheduler() as scheduler:
        write = scheduler._store.write

        async def slow(work, *, not_before=None):
            result = await write(work, not_before=not_before)
            await scene.sleep("2s")  # committed, but the answer takes its time
            return result

        await scheduler.add_job("far", Once(at(days=1)))
        await scheduler.start()
        await scene.sleep("10s")
        monkeypatch.setattr(scheduler._store, "write", slow)
        scheduler._engine.wake()
        await scene.sleep("1s")  # the turn is committed, its answer under way
        monkeypatch.setattr(scheduler._store, "write", write)
        await scheduler.add_job("now", Once(START))
        await scene.sleep("5s")
        assert [run.job for run in scene.runs] == ["now"]


@pytest.mark.promise("H15", "X14")
@virtual
async def test_a_run_that_was_cancelled_is_not_run_again_after_a_crash(scene):
    async def hang(run):
        await scene.sleep("1h")

    scene.act = hang
    first = scene.scheduler()
    await first.open()
    await first.add_job("a", Every("1d"), lanes={"one": 1})
    await first.start()
    asked = await first.run_job("a")
    await scene.sleep("1m")
    async with scene.scheduler() as other:  # another process cancels, and the server dies before it looks
        await other.cancel_run(asked)
    await scene.crash(first)
    async with scene.scheduler() as second:
        await second.start()
        await scene.sleep("1m")
        assert [run.id for run in scene.runs] == [asked]
        assert (await second.get_run(asked)).outcome == "cancelled"
        assert (await second.get_job("a")).status == "idle"


@pytest.mark.promise("X14")
@virtual
async def test_a_job_that_crashed_beside_the_one_it_follows_is_not_made_to_wait_for_its_own_recovery(scene):
    async def act(run):
        await scene.sleep("1h")

    scene.act = act
    first = scene.scheduler()
    await first.open()
    await first.add_job("upstream", Manual())
    await first.add_job("a", After("upstream", on="any"))
    await first.run_job("a")
    await first.start()
    await scene.sleep("5s")
    await scene.crash(first)
    second = scene.scheduler()
    await second.open()
    await second.start()
    cancelled = await second.run_job("upstream")
    await scene.sleep("5s")
    async with scene.scheduler() as other:
        await other.cancel_run(cancelled)
        await scene.crash(second)  # both: one was cancelled, and the other is run again, after a while this time
    scene.act = None
    async with scene.scheduler() as third:
        await third.start()
        await scene.sleep("5s")
        assert [run.reason for run in scene.of("a")] == ["manual", "recovery", "after"]
        await scene.sleep("5m")
        assert [run.reason for run in scene.of("a")] == ["manual", "recovery", "after", "recovery"]
