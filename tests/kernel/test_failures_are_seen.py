"""A handler that raises is seen: in the log with its trace, and in the run's own record."""

from __future__ import annotations

import logging

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import Every, Once, Skip, TransientError
from wakeful.kernel.kinds import Kind


def broken(run):
    raise ValueError("no such file")


@pytest.mark.parametrize("in_a_thread", [False, True])
@virtual
async def test_an_error_is_logged_with_job_run_and_trace(scene, caplog, in_a_thread):
    async def broken_async(run):
        broken(run)

    scheduler = scene.scheduler()
    scheduler.on_job_due("job", broken if in_a_thread else broken_async)
    with caplog.at_level(logging.ERROR, "wakeful.runs"):
        async with scheduler:
            await scheduler.add_job("a", Every("1h"))
            await scheduler.start()
            await scene.until(at(1, 1))
            (run,) = await scheduler.get_run_log("a")
    (record,) = [record for record in caplog.records if record.name == "wakeful.runs"]
    first, *trace = record.getMessage().splitlines()
    assert first == f"{run.id} of a failed: ValueError: no such file"
    assert any("in broken" in line for line in trace)
    assert (run.error_type, run.error) == ("ValueError", "no such file")
    assert "in broken" in run.trace


@virtual
async def test_what_is_no_error_is_not_logged_as_one(scene, caplog):
    async def act(run):
        raise Skip("closed")

    scene.act = act
    with caplog.at_level(logging.ERROR, "wakeful.runs"):
        async with scene.scheduler() as scheduler:
            await scheduler.add_job("a", Every("1h"))
            await scheduler.start()
            await scene.until(at(2, 1))
    assert [record for record in caplog.records if record.name == "wakeful.runs"] == []


@pytest.mark.promise("X9")
@pytest.mark.parametrize("retry", [2, ["30s", "2m"], {"delays": ["30s", "2m"]}, {"times": 2}], ids=str)
@pytest.mark.parametrize("error", [ValueError("x"), TransientError("x")], ids=["error", "transient"])
@virtual
async def test_every_way_to_write_a_retry_means_the_same(scene, retry, error):
    async def act(run):
        raise error

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)), retry=retry)
        await scheduler.start()
        await scene.until(at(1))
    assert scene.times == [at(0), at(seconds=30), at(seconds=150)]


@virtual
async def test_a_one_shot_that_fails_for_good_raises_an_alert_that_success_closes(scene):
    async def act(run):
        raise ValueError("no such file")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)))
        await scheduler.start()
        await scene.sleep("10m")
        (alert,) = await scheduler.list_alerts()
        assert (alert.kind, alert.message) == ("failed", "a failed and will not run again: no such file")
        scene.act = None
        await scheduler.resume_job("a")
        await scene.sleep("1m")
        assert await scheduler.list_alerts() == []
        assert (await scheduler.get_job("a")).last_outcome == "success"


@virtual
async def test_a_kind_that_alerts_itself_about_errors_leaves_all_other_alerts_to_the_engine(scene):
    scene.act = failing()
    kinds = [Kind("own", alerts_itself=True)]
    async with scene.scheduler("own", kinds=kinds) as scheduler:
        await scheduler.add_job("a", Every("1h"), kind="own", max_errors=3, retry=0)
        await scheduler.start()
        await scene.until(at(2, 30))
        assert await scheduler.list_alerts() == []
        await scene.until(at(3, 30))
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["disabled"]
