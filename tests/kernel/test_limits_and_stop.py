"""Runs past their limit, and stopping: nothing fires after it, nothing is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Every, Interval, Manual, NewJob, Once, SchedulerError, SchedulerShutdownError


def taking(scene, length):
    async def act(run):
        await scene.sleep(length)

    return act


@pytest.mark.promise("H10")
@pytest.mark.parametrize(
    ("options", "ended"), [({}, at(3)), ({"timeout": "10m"}, at(1, 10)), ({"timeout": 5}, at(1, 0, 5))]
)
@virtual
async def test_a_run_past_its_limit_is_cancelled_recorded_and_the_job_eligible_again(scene, options, ended):
    cancelled = []

    async def act(run):
        try:
            await scene.sleep("10h")
        except asyncio.CancelledError:
            cancelled.append(scene.now)
            raise

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), **options)
        await scheduler.start()
        await scene.until(ended)
        await scene.sleep("1s")
        run = (await scheduler.get_run_log("a"))[-1]
        job = await scheduler.get_job("a")
        assert (run.outcome, run.finished_at, cancelled) == ("timeout", ended, [ended])
        assert (job.status, job.last_outcome, job.consecutive_errors) == ("idle", "timeout", 1)
        assert "still running after" in job.last_error
        assert any(alert.kind == "stuck" for alert in await scheduler.list_alerts())
        await scene.sleep("2h")
        assert len(scene.runs) >= 2


@pytest.mark.promise("H10")
@virtual
async def test_a_handler_that_swallows_its_cancellation_is_timed_out_all_the_same(scene):
    async def act(run):
        try:
            await scene.sleep("10h")
        except asyncio.CancelledError:
            return "fine"

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)), timeout="1m")
        await scheduler.start()
        await scene.until(at(2))
        assert (await scheduler.get_job("a")).last_outcome == "timeout"


@pytest.mark.promise("H10")
@virtual
async def test_a_handler_that_cancels_itself_harms_no_other_job(scene):
    async def act(run):
        raise asyncio.CancelledError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(3, 30))
        assert [run.outcome for run in await scheduler.get_run_log("a")] == ["cancelled"] * 3


@pytest.mark.promise("H10", "H16")
@virtual
async def test_cancelling_a_run_ends_it_without_counting_an_error(scene):
    scene.act = taking(scene, "30m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), max_errors=1)
        await scheduler.start()
        await scene.until(at(1, 5))
        await scheduler.cancel_run(scene.runs[0].id)
        await scene.sleep("1s")
        job = await scheduler.get_job("a")
        assert (job.status, job.enabled, job.last_outcome, job.next_run_at) == ("idle", True, "cancelled", at(2))
        assert (await scheduler.get_run(scene.runs[0].id)).finished_at == at(1, 5)


@pytest.mark.promise("H15")
@virtual
async def test_nothing_fires_after_stop(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        await scene.sleep("150s")
        await scheduler.stop()
        assert (scheduler.get_status(), scheduler.is_running()) == ("stopped", False)
        await scheduler.add_job("b", Once(at(0)))
        await scheduler.run_job("a")
        await scene.sleep("1h")
        assert len(scene.runs) == 2
        await scheduler.start()
        await scene.sleep("1s")
        assert {run.job for run in scene.runs[2:]} == {"a", "b"}


@pytest.mark.promise("H15", "D12")
@virtual
async def test_stop_waits_for_what_runs_and_starts_nothing_meanwhile(scene):
    scene.act = taking(scene, "20s")
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("a", Once(at(0))), NewJob("b", Once(at(0, 0, 10)))])
        await scheduler.start()
        await scene.sleep("5s")
        stopping = asyncio.create_task(scheduler.stop(wait_for_jobs=True, timeout=30))
        await scene.sleep("2s")
        assert scheduler.get_status() == "stopping"
        await stopping
        assert scene.now == at(0, 0, 20)
        assert [run.job for run in scene.runs] == ["a"]
        assert (await scheduler.get_job("a")).last_outcome == "success"


@pytest.mark.promise("H15", "D12", "D13")
@virtual
async def test_stop_at_its_timeout_cancels_records_and_says_how_many_still_ran(scene):
    scene.act = taking(scene, "5h")
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(f"j{n}", Once(at(0))) for n in range(3)])
        await scheduler.start()
        await scene.sleep("5s")
        with pytest.raises(SchedulerShutdownError, match="3 job") as error:
            await scheduler.stop(timeout=10)
        assert error.value.context == {"timed_out": True, "running_count": 3}
        assert scene.now == at(0, 0, 15)
        assert scheduler.get_status() == "stopped"
        for job in await scheduler.list_jobs():
            last = [run for run in await scheduler.get_run_log(job.name) if run.status == "done"]
            assert [run.outcome for run in last] == ["cancelled"]
            assert job.status == "idle"


@pytest.mark.promise("H15")
@pytest.mark.parametrize("trigger", [Every("1h"), Once(at(1)), Interval("30m")], ids=lambda trigger: trigger.type)
@virtual
async def test_a_slot_cut_off_by_stop_is_run_again_at_the_next_start(scene, trigger):
    scene.act = taking(scene, "30m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, max_errors=1)
        await scheduler.start()
        await scene.until(at(1, 5))
        cut = scene.runs[-1]
        await scheduler.stop(wait_for_jobs=False)
    await scene.sleep("10m")
    scene.runs.clear()
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1s")
        [again] = scene.runs
        assert (again.slot, again.attempt, again.retry_of, again.reason) == (cut.slot, 2, cut.id, "recovery")
        assert (await scheduler.get_job("a")).consecutive_errors == 0


@pytest.mark.promise("H15")
@pytest.mark.parametrize("asked", [False, True], ids=["due", "asked for"])
@virtual
async def test_a_run_claimed_and_not_begun_is_given_back_without_an_attempt(scene, asked):
    names = [f"j{n}" for n in range(20)]
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(name, Manual() if asked else Once(at(0)), lanes={"l": 30}) for name in names])
        for name in names if asked else ():
            await scheduler.run_job(name)
        await scheduler.start()
        while not scheduler._engine.active:  # noqa: ASYNC110 - the moment between claim and call is one step of the loop
            await asyncio.sleep(0)
        await scheduler.stop()
        assert scene.runs == [], "no handler was called, though all were claimed"
        log = await scheduler.get_run_log(limit=100)
        assert {(run.status, run.started_at, run.attempt) for run in log} == {("queued", None, 1)}
        assert len(log) == len(names)
        assert await scheduler._store.read(lambda tx: tx.lanes.used(["l"])) == {"l": 0}
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert sorted(run.job for run in scene.runs) == sorted(names)
        log = await scheduler.get_run_log(limit=100)
        assert {(run.outcome, run.attempt, run.reason) for run in log} == {
            ("success", 1, "manual" if asked else "schedule")
        }


@pytest.mark.promise("H15")
@virtual
async def test_stop_and_start_may_be_called_twice(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.stop()
        await scheduler.start()
        await scheduler.start()
        await scheduler.add_job("a", Once(at(0)))
        await scene.sleep("1s")
        await scheduler.stop()
        await scheduler.stop()
        assert len(scene.runs) == 1


@pytest.mark.promise("H15")
@virtual
async def test_run_forever_returns_when_stopped_and_stops_when_cancelled(scene):
    async with scene.scheduler() as scheduler:
        task = asyncio.create_task(scheduler.run_forever())
        await scene.sleep("1m")
        assert scheduler.is_running()
        await scheduler.stop()
        await task
        task = asyncio.create_task(scheduler.run_forever())
        await scene.sleep("1m")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert scheduler.get_status() == "stopped"


@pytest.mark.promise("D11")
@virtual
async def test_status_counts_and_times_are_reported(scene):
    scene.act = taking(scene, "10m")
    async with scene.scheduler() as scheduler:
        state = scheduler.get_state()
        assert (state.status, state.started_at, state.check_count, state.trigger_count) == ("stopped", None, 0, 0)
        assert state.last_check_at is None
        await scene.sleep("1m")
        await scheduler.start()
        await scheduler.add_job("a", Once(at(0)), owner="ada")
        await scheduler.add_job("b", Once(at(0)), owner="ada")
        await scheduler.add_job("c", Once(at(0)), owner="bob")
        await scheduler.add_job("d", Manual(), owner="bob")
        await scene.sleep("1m")
        state = scheduler.get_state()
        assert (state.status, state.started_at, state.trigger_count) == ("running", at(0, 1), 3)
        assert state.check_count >= 1
        assert [scheduler.running_count(), scheduler.running_count("ada"), scheduler.running_count("bob")] == [3, 2, 1]
        assert scheduler.running_count("nobody") == 0


@pytest.mark.promise("D14")
@virtual
async def test_an_error_in_one_check_is_logged_and_the_loop_goes_on(scene, caplog):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        await scene.sleep("90s")
        await scheduler._store.write(lambda tx: tx.lanes._session.execute("ALTER TABLE job_state RENAME TO hidden"))
        await scene.sleep("2m")
        await scheduler._store.write(lambda tx: tx.lanes._session.execute("ALTER TABLE hidden RENAME TO job_state"))
        await scene.sleep("2m")
        assert scheduler.is_running()
        assert scene.times[-1] > at(0, 4)
        assert caplog.records
        assert len(caplog.records) < 100, "said, not shouted"


@pytest.mark.promise("D14")
@virtual
async def test_a_row_that_cannot_be_read_disables_its_job_alone(scene, caplog):
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("good", Every("1m")), NewJob("bad", Every("1m")), NewJob("fine", Every("1m"))])
        await scheduler._store.write(
            lambda tx: tx.lanes._session.execute(
                "UPDATE jobs SET trigger = '{\"type\": \"sundial\"}' WHERE name = 'bad'"
            )
        )
        await scheduler.start()
        await scene.sleep("5m")
        assert len(scene.of("good")) == len(scene.of("fine")) == 5
        assert any(alert.kind == "disabled" and "bad" in alert.message for alert in await scheduler.list_alerts())


@pytest.mark.promise("H16")
@virtual
async def test_a_scheduler_that_is_not_open_says_so(scene):
    scheduler = scene.scheduler()
    with pytest.raises(SchedulerError, match="async with"):
        await scheduler.add_job("a", Every("1h"))
    with pytest.raises(SchedulerError, match="async with"):
        await scheduler.list_jobs()


@pytest.mark.promise("H15")
@virtual
async def test_a_handler_that_ends_well_when_the_scheduler_stops_has_ended_and_is_not_run_again(scene):
    async def act(run):
        try:
            await scene.sleep("10h")
        except asyncio.CancelledError:
            return "saved"

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)))
        await scheduler.start()
        await scene.sleep("5s")
        with pytest.raises(SchedulerShutdownError):
            await scheduler.stop(timeout=1)
        [run] = await scheduler.get_run_log("a")
        assert (run.status, run.outcome, run.output) == ("done", "success", "saved")
        await scheduler.start()
        await scene.sleep("1m")
        assert len(scene.runs) == 1
