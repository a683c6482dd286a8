"""Errors of one-shot jobs, and retries of the same slot."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import Every, Once, ScheduleTriggerError, TransientError


@pytest.mark.promise("H13")
@pytest.mark.parametrize("when", [at(0, 30), at(-48), at(0)], ids=["ahead", "past", "now"])
@virtual
async def test_once_fires_one_time_and_is_then_done(scene, when):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(when))
        await scheduler.start()
        await scene.sleep("1d")
        job = await scheduler.get_job("a")
        assert scene.times == [max(when, at(0))]
        assert scene.slots == [when]
        assert (job.enabled, job.status, job.last_outcome, job.last_error) == (False, "done", "success", None)
        assert job.missed == 0


@pytest.mark.promise("H13")
@virtual
async def test_once_with_an_error_is_disabled_and_keeps_it(scene):
    scene.act = failing("no such table")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.sleep("2d")
        job = await scheduler.get_job("a")
        assert len(scene.runs) == 1
        assert (job.enabled, job.status, job.last_outcome, job.last_error) == (
            False, "disabled", "error", "no such table",
        )  # fmt: skip


@pytest.mark.promise("H13", "X9")
@virtual
async def test_once_retries_transient_failures_twice_and_then_is_disabled(scene):
    scene.act = failing("line down", TransientError)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.sleep("1d")
        assert scene.times == [at(1), at(1, 0, 30), at(1, 2, 30)]
        assert [(run.slot, run.attempt) for run in scene.runs] == [(at(1), 1), (at(1), 2), (at(1), 3)]
        assert [run.retry_of for run in scene.runs] == [None, scene.runs[0].id, scene.runs[1].id]
        job = await scheduler.get_job("a")
        assert (job.status, job.last_error) == ("disabled", "line down")


@pytest.mark.promise("H13")
@virtual
async def test_once_that_succeeds_on_its_retry_is_done(scene):
    async def act(run):
        if run.attempt == 1:
            raise TransientError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(1, 0, 10))
        assert (await scheduler.get_job("a")).enabled, "it is not over before its retries are"
        await scene.sleep("1d")
        job = await scheduler.get_job("a")
        assert (len(scene.runs), job.enabled, job.last_outcome, job.last_error) == (2, False, "success", None)


@pytest.mark.promise("H13")
@virtual
async def test_resuming_a_failed_once_tries_it_again_and_a_done_one_is_refused(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(2))
        scene.act = None
        await scheduler.resume_job("a")
        await scene.sleep("1m")
        job = await scheduler.get_job("a")
        assert (len(scene.runs), job.last_outcome, job.enabled) == (2, "success", False)
        with pytest.raises(ScheduleTriggerError, match="never run again"):
            await scheduler.resume_job("a")


@pytest.mark.promise("X9")
@virtual
async def test_a_retry_runs_the_same_slot_again_and_the_grid_stays(scene):
    async def act(run):
        if run.slot == at(1) and run.attempt < 3:
            raise RuntimeError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), retry={"delays": ["1m", "5m"], "on": "any"})
        await scheduler.start()
        await scene.until(at(2, 30))
        assert [(run.slot, run.attempt, run.reason) for run in scene.runs] == [
            (at(1), 1, "schedule"), (at(1), 2, "retry"), (at(1), 3, "retry"), (at(2), 1, "schedule"),
        ]  # fmt: skip
        assert scene.times == [at(1), at(1, 1), at(1, 6), at(2)]
        assert (await scheduler.get_job("a")).consecutive_errors == 0


@pytest.mark.promise("X9")
@virtual
async def test_a_retry_is_dropped_when_a_new_slot_comes_first(scene):
    scene.act = failing("down", TransientError)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"), retry=["50s", "2m"], backoff=["1s"], max_errors=0)
        await scheduler.start()
        await scene.until(at(0, 3, 30))
        assert [(run.slot, run.attempt) for run in scene.runs] == [
            (at(0, 1), 1), (at(0, 1), 2), (at(0, 2), 1), (at(0, 2), 2), (at(0, 3), 1),
        ]  # fmt: skip


@pytest.mark.promise("X9")
@virtual
async def test_only_transient_failures_are_retried_where_that_is_asked_for(scene):
    scene.act = failing("a bug")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), retry={"delays": ["1m"], "on": "transient"})
        await scheduler.start()
        await scene.until(at(1, 30))
        assert len(scene.runs) == 1
        assert (await scheduler.get_job("a")).consecutive_errors == 1


@pytest.mark.promise("X9", "H6")
@virtual
async def test_a_slot_counts_as_one_error_however_often_it_is_retried(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), retry=2)
        await scheduler.start()
        await scene.until(at(5, 30))
        job = await scheduler.get_job("a")
        assert (len(scene.runs), job.consecutive_errors, job.enabled) == (15, 5, False)


@virtual
async def test_a_retry_that_the_next_scheduled_time_overtakes_is_explained(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m", anchor=at()), retry=["10s", "5m"])
        await scheduler.start()
        await scene.sleep("1m11s")
        last, first = await scheduler.get_run_log("a", 2)
        assert any("tried again as" in sentence for sentence in (await scheduler.explain(first.id)).sentences)
        assert (await scheduler.explain(last.id)).sentences[-1] == (
            "It was not tried again: its next scheduled time, 2026-01-01 00:02:00 UTC, is no later than the retry "
            "would be, 2026-01-01 00:06:10 UTC."
        )
