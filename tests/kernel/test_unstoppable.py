"""Handlers that do not end when they are asked to: shown, alerted, and their job busy until they end."""

from __future__ import annotations

import asyncio

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Defer, Every, Manual, NewJob, Once, SchedulerShutdownError, Skip, Wait
from wakeful.kernel.loop.handlers import CANCEL_GRACE_S


def deaf(scene, end, ends="success"):
    """An act that goes on until `end`, however often it is cancelled."""

    async def act(run):
        while scene.now < end:
            try:
                await scene.until(end)
            except asyncio.CancelledError:
                continue
        if ends == "error":
            raise RuntimeError("too late")
        return "done"

    return act


async def stuck(scheduler):
    return [alert.message for alert in await scheduler.list_alerts() if alert.kind == "stuck"]


@pytest.mark.promise("H10", "H9")
@pytest.mark.parametrize("ends", ["success", "error"])
@virtual
async def test_a_handler_that_swallows_its_cancellation_is_shown_as_timed_out_and_keeps_its_job(scene, ends):
    scene.act = deaf(scene, at(3, 30), ends)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), timeout="10m")
        await scheduler.start()
        await scene.until(at(1, 10, 1))
        assert await stuck(scheduler) == [], "it was asked a second ago"
        await scene.until(at(1, 11))
        [run] = await scheduler.get_run_log("a")
        assert (run.status, run.phase, run.unstoppable) == ("active", "timeout", "is past its limit")
        [message] = await stuck(scheduler)
        assert "a is past its limit, and its handler cannot be stopped" in message
        for ref in ("a", run.id):
            assert "is past its limit and cannot be stopped" in str(await scheduler.explain(ref))
        await scene.until(at(3, 29))
        assert ((await scheduler.get_job("a")).status, scene.most_busy) == ("running", {"a": 1})
        scene.act = None
        await scene.until(at(3, 31))
        run, job = await scheduler.get_run(run.id), await scheduler.get_job("a")
        assert (run.status, run.outcome, run.finished_at) == ("done", "timeout", at(3, 30))
        assert (job.status, job.last_outcome, job.consecutive_errors) == ("idle", "timeout", 1)
        await scene.until(at(4, 1))
        assert (await scheduler.get_job("a")).last_outcome == "success"
        assert await stuck(scheduler) == []


@pytest.mark.promise("H10")
@pytest.mark.parametrize(
    "end",
    [
        lambda: "a value",
        lambda: RuntimeError("another error"),
        lambda: Skip("a skip"),
        Wait,
        lambda: Defer(at(9)),
    ],
    ids=["value", "error", "skip", "wait", "defer"],
)
@virtual
async def test_whatever_a_handler_makes_of_its_cancellation_it_has_timed_out(scene, end):
    async def act(run):
        try:
            await scene.sleep("10h")
        except asyncio.CancelledError:
            said = end()
            if isinstance(said, Exception):
                raise said from None
            return said

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)), timeout="1m", retry=0)
        await scheduler.start()
        await scene.until(at(2))
        [run] = await scheduler.get_run_log("a")
        assert (run.status, run.outcome, run.finished_at) == ("done", "timeout", at(1, 1))
        assert run.error == "still running after 1m"


@pytest.mark.promise("H10", "H16")
@virtual
async def test_a_cancelled_run_that_does_not_end_is_reported_and_ends_as_cancelled(scene):
    scene.act = deaf(scene, at(1, 30))
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(1, 5))
        [run] = await scheduler.get_run_log("a")
        await scheduler.cancel_run(run.id)
        await scene.until(at(1, 6))
        [message] = await stuck(scheduler)
        assert "was cancelled, and its handler cannot be stopped" in message
        assert "was cancelled and cannot be stopped" in str(await scheduler.explain("a"))
        await scene.until(at(1, 31))
        assert (await scheduler.get_run(run.id)).outcome == "cancelled"
        assert await stuck(scheduler) == [], "it has ended after all"


@pytest.mark.promise("H10", "X24")
@pytest.mark.parametrize("why", ["was cancelled", "is past its limit"])
@virtual
async def test_hundreds_of_short_runs_beside_a_run_that_does_not_end_hide_nothing(scene, why):
    lasting = deaf(scene, at(1, 30))

    async def act(run):
        return await lasting(run) if run.job == "a" else None

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)), timeout="5m" if why == "is past its limit" else "2h")
        await scheduler.add_jobs([NewJob(f"j{n}", Once(at(1, 5, 1 + n // 40)), timeout="2h") for n in range(200)])
        await scheduler.start()
        await scene.until(at(1, 5))
        [run] = await scheduler.get_run_log("a")
        if why == "was cancelled":
            await scheduler.cancel_run(run.id)
        await scene.until(at(1, 6))
        [message] = await stuck(scheduler)
        assert f"a {why}, and its handler cannot be stopped" in message


@pytest.mark.promise("H10", "H15")
@virtual
async def test_stop_waits_no_longer_than_its_limit_and_the_grace_for_a_handler_that_does_not_end(scene):
    scene.act = deaf(scene, at(5))
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)))
        await scheduler.start()
        await scene.sleep("5s")
        with pytest.raises(SchedulerShutdownError, match="1 job"):
            await scheduler.stop(timeout=10)
        assert scene.now <= at(0, 0, 15 + CANCEL_GRACE_S)
        [message] = await stuck(scheduler)
        assert "a was still running when the scheduler stopped" in message
        [run] = await scheduler.get_run_log("a")
        assert (run.status, run.phase) == ("active", "stopping")
        await scheduler.start()
        await scene.until(at(4, 59))
        assert scene.most_busy == {"a": 1}, "it still runs in this process, and is not started beside itself"
        await scene.until(at(5, 1))
        assert (await scheduler.get_run(run.id)).status == "done"
        assert await stuck(scheduler) == []


@pytest.mark.promise("H10", "H15")
@virtual
async def test_stop_does_not_wait_for_what_is_known_not_to_end(scene):
    scene.act = deaf(scene, at(5))
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)), timeout="1m")
        await scheduler.start()
        await scene.until(at(0, 2))
        await scheduler.stop(wait_for_jobs=False)
        assert scene.now == at(0, 2)
        await scene.until(at(5, 1))


@pytest.mark.promise("H10", "H11")
@virtual
async def test_a_run_that_was_past_its_limit_when_its_process_ended_is_recorded_as_timed_out(scene):
    scene.act = deaf(scene, at(2))
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("late", Once(at(0)), timeout="1m", retry=0), NewJob("fine", Once(at(0)))])
        await scheduler.start()
        await scene.until(at(0, 5))
        await scene.crash(scheduler)
    scene.act = None
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        [late] = await scheduler.get_run_log("late")
        assert (late.outcome, late.error) == ("timeout", "still running after 1m")
        assert [run.outcome for run in await scheduler.get_run_log("fine")] == ["success", "crashed"]
        assert await stuck(scheduler) == ["late ran past its limit: still running after 1m"]


@pytest.mark.promise("H10")
@virtual
async def test_a_run_in_this_process_alone_ends_at_its_limit_though_its_handler_does_not(scene):
    scene.act = deaf(scene, at(1))
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), timeout="1m")
        run = await scheduler.run_here("a")
        assert run.outcome == "timeout"
        assert scene.now <= at(0, 1, CANCEL_GRACE_S)
    await scene.until(at(1, 1))
