"""The event bus: in order, without gaps, and unable to change anything."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import Every, JobExists, Manual, NewJob, Once, Wait


@pytest.mark.promise("A7")
@virtual
async def test_each_stream_has_its_own_sequence_without_gaps_over_restarts(scene):
    heard = []
    for _ in range(3):
        scheduler = scene.scheduler()
        scheduler.subscribe(heard.append)
        async with scheduler:
            await scheduler.add_jobs([NewJob(f"j{n}", Every("1m")) for n in range(3)], if_exists="keep")
            with pytest.raises(JobExists):
                await scheduler.add_job("j1", Manual())
            await scheduler.start()
            await scene.sleep("10m")
            await scheduler.update_job("j0", payload=scene.lives)
            await scheduler.pause_job("j1")
            await scheduler.resume_job("j1")
    streams = {event.stream for event in heard}
    assert streams >= {"run", "job"}
    for stream in streams:
        numbers = [event.seq for event in heard if event.stream == stream]
        assert numbers == list(range(1, len(numbers) + 1)), stream
    groups = [event.id for event in heard]
    assert groups == sorted(groups)


@pytest.mark.promise("A7")
@virtual
async def test_a_run_is_told_as_started_and_finished_in_that_order(scene):
    heard = []
    async with scene.scheduler() as scheduler:
        scheduler.subscribe(heard.append, "run")
        job_id = await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(2))
        run = scene.runs[0].id
        assert [(event.type, event.data) for event in heard] == [
            ("started", {"run": run, "job_id": job_id, "job": "a", "reason": "schedule"}),
            ("finished", {"run": run, "job_id": job_id, "job": "a", "outcome": "success"}),
        ]
        assert [event.at for event in heard] == [at(1), at(1)]


@pytest.mark.promise("A7")
@virtual
async def test_a_run_that_only_waits_is_not_told_as_finished(scene):
    async def act(run):
        raise Wait

    scene.act = act
    heard = []
    async with scene.scheduler() as scheduler:
        scheduler.subscribe(heard.append, "run")
        await scheduler.add_job("a", Once(at(0)))
        await scheduler.start()
        await scene.sleep("1m")
        assert [event.type for event in heard] == ["started", "waiting"]
        await scheduler.complete_run(scene.runs[0].id)
        assert [event.type for event in heard] == ["started", "waiting", "finished"]


@pytest.mark.promise("A7")
@virtual
async def test_jobs_and_alerts_are_told_and_a_subscription_ends(scene):
    heard, alerts = [], []
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        leave = scheduler.subscribe(lambda event: heard.append((event.type, event.data["job"])), "job")
        scheduler.subscribe(lambda event: alerts.append((event.type, event.data["kind"], event.data["job"])), "alert")
        await scheduler.add_job("a", Every("10s"), max_errors=1)
        await scheduler.update_job("a", payload=1)
        await scheduler.pause_job("a")
        await scheduler.resume_job("a")
        await scheduler.start()
        await scene.sleep("1m")
        await scheduler.resume_job("a")
        await scheduler.remove_job("a")
        assert heard == [(what, "a") for what in ("added", "changed", "paused", "resumed", "resumed", "removed")]
        assert alerts == [("opened", "disabled", "a"), ("closed", "disabled", "a")]
        leave()
        leave()
        await scheduler.add_job("b", Every("10s"))
        assert len(heard) == 6


@pytest.mark.promise("A7")
@pytest.mark.parametrize("error", [RuntimeError("deaf"), KeyError("x"), AssertionError()], ids=repr)
@virtual
async def test_a_failing_subscriber_changes_nothing(scene, error, caplog):
    heard = []

    def listener(event):
        raise error

    async with scene.scheduler() as scheduler:
        scheduler.subscribe(listener)
        scheduler.subscribe(heard.append)
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        await scene.sleep("5m")
        assert [run.outcome for run in await scheduler.get_run_log("a")] == ["success"] * 5
        assert len(heard) == 11


@pytest.mark.promise("A7")
@virtual
async def test_what_was_undone_is_not_told(scene):
    heard = []
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"))
        scheduler.subscribe(heard.append)
        with pytest.raises(JobExists):
            await scheduler.add_jobs([NewJob("b", Manual()), NewJob("a", Manual())])
        assert heard == []
