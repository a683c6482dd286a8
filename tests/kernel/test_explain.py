"""Explain answers from recorded facts, for every situation a job can be in."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import After, Every, JobNotFound, Manual, Once, Retention, Wait


async def explained(scheduler, ref):
    explanation = await scheduler.explain(ref)
    assert explanation.to_dict()["sentences"] == explanation.sentences
    return str(explanation)


@pytest.mark.promise("X3")
@virtual
async def test_a_job_that_never_ran_says_when_it_will(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        text = await explained(scheduler, "a")
        assert "every hour" in text
        assert "never run" in text
        assert "2026-01-01 01:00:00" in text


@pytest.mark.promise("X3")
@virtual
async def test_why_a_job_ran_how_it_ended_and_when_it_will_run_again(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 10))
        text = await explained(scheduler, "a")
        for words in ("its time had come", "success", "01:00:00", "02:00:00"):
            assert words in text
        run = await explained(scheduler, scene.runs[0].id)
        assert "its time had come" in run
        assert "ended as success" in run
        await scheduler.run_job("a")
        await scene.sleep("1s")
        assert "asked for it" in await explained(scheduler, "a")


@pytest.mark.promise("X3")
@virtual
async def test_a_running_job_says_so_and_a_waiting_one_too(scene):
    async def act(run):
        if run.job == "waits":
            raise Wait
        await scene.sleep("1h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("runs", Once(at(0)))
        await scheduler.add_job("waits", Once(at(0)))
        await scheduler.start()
        await scene.sleep("1m")
        assert "is running now" in await explained(scheduler, "runs")
        assert "waits to be completed" in await explained(scheduler, "waits")


@pytest.mark.promise("X3")
@virtual
async def test_paused_disabled_and_ended_jobs_say_why_they_do_not_run(scene):
    scene.act = failing("no money")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scheduler.add_job("paused", Every("1h"))
        await scheduler.pause_job("paused", note="over the holidays")
        text = await explained(scheduler, "paused")
        assert "paused" in text
        assert "over the holidays" in text
        await scheduler.add_job("broken", Every("10s"), max_errors=2)
        await scheduler.add_job("over", Every("10s", max_runs=1), max_errors=9)
        await scene.sleep("5m")
        text = await explained(scheduler, "broken")
        for words in ("disabled", "2 errors in a row", "no money"):
            assert words in text
        assert "max_runs" in await explained(scheduler, "over")


@pytest.mark.promise("X3")
@virtual
async def test_a_job_that_backs_off_says_until_when_and_why(scene):
    scene.act = failing("no line")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"), backoff=["30m"])
        await scheduler.start()
        await scene.until(at(0, 2))
        text = await explained(scheduler, "a")
        for words in ("00:31:00", "held back", "1 error", "no line"):
            assert words in text


@pytest.mark.promise("X3")
@virtual
async def test_a_parked_job_says_what_it_waits_for(scene):
    async def act(run):
        await scene.sleep("1h")

    scene.act = act
    async with scene.scheduler(max_running=2) as scheduler:
        await scheduler.add_job("first", Once(at(0)), lanes={"gpu": 1})
        await scheduler.add_job("second", Once(at(0)), lanes={"gpu": 1})
        await scheduler.add_job("nobodys", Once(at(0)), kind="report")
        await scheduler.add_job("third", Once(at(0, 1)))
        await scheduler.add_job("fourth", Once(at(0, 1)))
        await scheduler.start()
        await scene.until(at(0, 2))
        assert "lane gpu is full" in await explained(scheduler, "second")
        assert "no running server has a handler" in await explained(scheduler, "nobodys")
        assert "max_running" in await explained(scheduler, "fourth")


@pytest.mark.promise("X3")
@virtual
async def test_skipped_and_missed_slots_are_reported_with_their_number(scene):
    async def act(run):
        await scene.sleep("25m")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"))
        await scheduler.start()
        await scene.until(at(0, 36))
        text = await explained(scheduler, "a")
        assert "2 starts refused as already_running" in text
        assert "2 scheduled times passed" in text


@pytest.mark.promise("X3")
@virtual
async def test_catch_up_recovery_retry_and_chained_runs_say_what_they_are(scene):
    async def act(run):
        if run.job == "flaky" and run.attempt == 1:
            raise RuntimeError("first try")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("late", Every("1h"))
        await scheduler.add_job("flaky", Once(at(5)), retry=1)
        await scheduler.add_job("next", After("flaky"))
    await scene.until(at(5))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("10m")
        assert "caught up once" in await explained(scheduler, "late")
        [_, again] = scene.of("flaky")
        text = await explained(scheduler, again.id)
        assert "an earlier attempt did not succeed" in text
        assert "attempt 2" in text
        [chained] = scene.of("next")
        text = await explained(scheduler, chained.id)
        assert "the job it follows had ended" in text
        assert again.id in text


@pytest.mark.promise("X3", "X11")
@virtual
async def test_a_pruned_run_is_reported_as_pruned(scene):
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        first = await scheduler.run_job("a")
        await scene.sleep("1m")
        await scheduler.run_job("a")
        await scene.sleep("2d")
        assert await scheduler.get_run(first) is None
        with pytest.raises(JobNotFound, match="pruned"):
            await scheduler.explain(first)
        assert "success" in await explained(scheduler, "a")
