"""A further attempt that waits: what ends it, and that nothing is started beside it after downtime."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import After, Defer, Every, Once, TransientError, Wait


async def _stopped_with_a_retry_pending(scene, trigger, **options):
    """The first run fails, its retry is due in ten minutes, and everything stops."""
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, retry={"delays": ["10m"], "on": "any"}, **options)
        await scheduler.start()
        await scene.until(at(1, 1))
        assert (await scheduler.get_job("a")).next_run_at == at(1, 10), "the retry is what comes next"
    scene.act = None


@pytest.mark.promise("H4", "X9")
@pytest.mark.parametrize(
    ("catch_up", "starts"),
    [("once", [(at(5), "catch_up")]), ("skip", []), ({"within": "10m"}, []), ({"within": "1h"}, [(at(5), "catch_up")])],
    ids=str,
)
@virtual
async def test_after_downtime_a_pending_retry_gives_way_to_the_jobs_policy(scene, catch_up, starts):
    await _stopped_with_a_retry_pending(scene, Every("1h"), catch_up=catch_up)
    await scene.until(at(5, 30))
    began = len(scene.runs)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(5, 59))
        assert [(run.slot, run.reason) for run in scene.runs[began:]] == starts
        dropped = [run for run in await scheduler.get_run_log("a") if run.reason == "retry"]
        assert [(run.outcome, run.error) for run in dropped] == [("cancelled", "a new slot came first")]


@pytest.mark.promise("H4", "X9")
@pytest.mark.parametrize(
    ("catch_up", "starts"),
    [("once", 1), ("skip", 0), ({"within": "2h"}, 1), ({"within": "85m"}, 0), ({"within": "1h"}, 0)],
)
@pytest.mark.parametrize("trigger", [Every("12h", anchor=at(1)), Once(at(1))], ids=["every", "once"])
@virtual
async def test_a_retry_that_nothing_overtook_obeys_catch_up_too(scene, trigger, catch_up, starts):
    await _stopped_with_a_retry_pending(scene, trigger, catch_up=catch_up)
    await scene.until(at(2, 30))
    began = len(scene.runs)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(4))
        assert [run.reason for run in scene.runs[began:]] == ["retry"] * starts


@pytest.mark.promise("X9")
@virtual
async def test_a_retry_that_waits_for_a_lane_is_dropped_when_its_slot_is_overtaken(scene):
    async def act(run):
        if run.job == "holder":
            await scene.sleep("3h")
        else:
            raise TransientError("no")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), retry=["10m"], lanes={"one": 1})
        await scheduler.add_job("holder", Once(at(1, 5)), lanes={"one": 1}, timeout="4h")
        await scheduler.start()
        await scene.until(at(4, 9))
        assert [(run.slot, run.attempt) for run in scene.of("a")] == [(at(1), 1), (at(4), 1)]


@pytest.mark.promise("H8")
@virtual
async def test_a_pause_ends_a_pending_retry_and_resume_takes_the_next_slot(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), retry={"delays": ["10m"], "on": "any"})
        await scheduler.start()
        await scene.until(at(1, 1))
        await scheduler.pause_job("a")
        last = (await scheduler.get_run_log("a"))[0]
        assert (last.reason, last.outcome, last.error) == ("retry", "cancelled", "the job was paused")
        await scene.until(at(days=3, minutes=30))
        scene.act = None
        await scheduler.resume_job("a")
        assert (await scheduler.get_job("a")).next_run_at == at(1, days=3)
        await scene.until(at(1, 1, days=3))
        assert [run.slot for run in scene.runs] == [at(1), at(1, days=3)]


@pytest.mark.promise("H8")
@virtual
async def test_what_was_cut_off_while_the_job_was_paused_is_not_run_by_resume(scene):
    async def act(run):
        await scene.sleep("30m")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("crashed", Every("1h"))
        await scheduler.add_job("stopped", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 1))
        await scheduler.pause_job("crashed")
        await scheduler.pause_job("stopped")
        await scene.crash(scheduler)
    scene.act = None
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(6, 30))
        await scheduler.resume_job("crashed")
        await scheduler.resume_job("stopped")
        await scene.until(at(7, 1))
        assert [run.slot for run in scene.of("crashed")] == [at(1), at(7)]
        assert [run.slot for run in scene.of("stopped")] == [at(1), at(7)]


@pytest.mark.promise("H8")
@virtual
async def test_a_paused_one_shot_with_a_retry_pending_runs_when_it_is_resumed(scene):
    scene.act = failing(kind=TransientError)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(1, seconds=10))
        await scheduler.pause_job("a")
        scene.act = None
        await scene.until(at(days=2))
        await scheduler.resume_job("a")
        await scene.sleep("1m")
        assert [(run.slot, run.attempt) for run in scene.runs] == [(at(1), 1), (at(1), 3)]
        assert (await scheduler.get_job("a")).last_outcome == "success"


@pytest.mark.promise("H8")
@virtual
async def test_a_start_after_another_job_that_waits_is_ended_by_a_pause(scene):
    async def act(run):
        if run.job == "after":
            await scene.sleep("2h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("first", Every("1h"))
        await scheduler.add_job("after", After("first"), timeout="3h")
        await scheduler.start()
        await scene.until(at(2, 1))  # it runs, and one more start waits
        await scheduler.pause_job("after")
        await scene.until(at(days=1))
        await scheduler.pause_job("first")
        await scheduler.resume_job("after")
        await scene.sleep("1m")
        assert len(scene.of("after")) == 1


@pytest.mark.promise("X9")
@pytest.mark.parametrize("overlap", ["skip", "queue", "cancel_other"])
@virtual
async def test_max_runs_holds_with_every_overlap(scene, overlap):
    async def act(run):
        await scene.sleep("150m")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", max_runs=1), overlap=overlap, timeout="5h")
        await scheduler.add_job("b", Every("1h", max_runs=3), overlap=overlap, timeout="5h")
        await scheduler.start()
        await scene.until(at(20))
        assert len(scene.of("a")) == 1
        assert len(scene.of("b")) == 3
        job = await scheduler.get_job("a")
        assert (job.enabled, job.next_run_at) == (False, None)


@pytest.mark.promise("H2", "C10")
@pytest.mark.parametrize("step", [{"days": 1}, {"days": 1, "back": True}, {"days": -1}], ids=str)
@virtual
async def test_a_stepped_clock_leaves_a_waiting_run_the_time_it_had_left(scene, step):
    async def act(run):
        return Wait(at(3))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)))
        await scheduler.start()
        await scene.until(at(1))
        scene.step(days=step["days"])
        await scene.sleep("61s")
        if step.get("back"):
            scene.step(days=-step["days"])
            await scene.sleep("61s")
        await scene.sleep("110m")
        assert (await scheduler.get_job("a")).status == "running", "its two hours are not over"
        await scene.sleep("12m")
        assert (await scheduler.get_job("a")).last_outcome == "unknown"


@pytest.mark.promise("X9")
@virtual
async def test_an_attempt_that_was_deferred_uses_no_retry(scene):
    async def act(run):
        if run.attempt <= 2:
            raise Defer(at(1, 10 * run.attempt))
        raise OSError("connection reset")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("6h", anchor=at(1)), retry=["5m", "1m"])
        await scheduler.start()
        await scene.until(at(3))
        began = [(run.attempt, run.started_at) for run in reversed(await scheduler.get_run_log("a"))]
        assert began == [(1, at(1)), (2, at(1, 10)), (3, at(1, 20)), (4, at(1, 25)), (5, at(1, 26))]


@pytest.mark.promise("X9")
@virtual
async def test_a_start_by_hand_that_was_deferred_beyond_the_last_slot_still_comes(scene):
    async def act(run):
        if run.reason == "manual":
            raise Defer(at(3))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", max_runs=1))
        await scheduler.start()
        await scheduler.run_job("a")
        await scene.until(at(2))
        assert not (await scheduler.get_job("a")).over, "a run of it waits"
        await scene.until(at(4))
        assert [(run.slot, run.reason) for run in scene.runs] == [
            (None, "manual"),
            (at(1), "schedule"),
            (None, "retry"),
        ]
        assert (await scheduler.get_job("a")).over


async def _failing_beside_a_full_lane(scene, scheduler, **options):
    """Every run fails, and its retry waits for a lane until the next slot has come."""

    async def act(run):
        if run.job == "other":
            await scene.sleep("285s")
        else:
            raise TransientError("no")

    scene.act = act
    await scheduler.add_job("a", Every("5m", anchor=at(0)), retry=["1m"], lanes={"one": 1}, priority=1, **options)
    await scheduler.add_job("other", Every("5m", anchor=at(0, 0, 30)), lanes={"one": 1})
    await scheduler.start()


@pytest.mark.promise("H7", "X9")
@virtual
async def test_a_failure_counts_whose_retry_is_dropped_for_the_next_slot(scene):
    async with scene.scheduler() as scheduler:
        await _failing_beside_a_full_lane(scene, scheduler, max_errors=0)
        await scene.until(at(0, 21))
        assert [run.attempt for run in scene.of("a")] == [1, 1, 1, 1], "each retry was dropped"
        job = await scheduler.get_job("a")
        assert (job.consecutive_errors, job.last_error) == (3, "no"), "the last one's retry still waits"
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["failing"]


@pytest.mark.promise("H7", "X9")
@virtual
async def test_failures_whose_retries_are_dropped_disable_the_job_like_any_others(scene):
    async with scene.scheduler() as scheduler:
        await _failing_beside_a_full_lane(scene, scheduler, backoff=["1s"])
        await scene.until(at(2))
        job = await scheduler.get_job("a")
        assert (job.enabled, job.consecutive_errors) == (False, 5)
        assert "disabled" in [alert.kind for alert in await scheduler.list_alerts()]
        assert len([run for run in scene.of("a") if run.attempt == 1]) == 5


@pytest.mark.promise("H6", "H7")
@virtual
async def test_a_failure_that_is_counted_late_delays_as_one_that_was_counted_at_once(scene):
    async with scene.scheduler() as scheduler:
        await _failing_beside_a_full_lane(scene, scheduler, max_errors=0, backoff=["30s", "7m"])
        await scene.until(at(0, 21))
        starts = [run.started_at for run in scene.of("a") if run.attempt == 1]
        assert starts[:2] == [at(0, 5, 15), at(0, 10, 15)], "the first error's half minute is long over"
        assert starts[2] >= at(0, 17, 15), "seven minutes after the second"


@pytest.mark.promise("H7")
@virtual
async def test_a_failure_counts_whose_retry_a_person_cancels(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), retry={"delays": ["10m"], "on": "any"})
        await scheduler.start()
        await scene.until(at(1, 1))
        [retry] = [run for run in await scheduler.get_run_log("a") if run.status == "queued"]
        await scheduler.cancel_run(retry.id)
        assert (await scheduler.get_job("a")).consecutive_errors == 1
