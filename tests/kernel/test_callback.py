"""Reports about work that goes on elsewhere: whenever they come, they end the right run, once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Defer, Every, Manual, RunNotFound, ScheduleTriggerError, Wait
from wakeful.errors import WrongCallbackToken
from wakeful.kernel.rules.outcome import TryAgain


async def started(scene, scheduler, act, **options):
    """A job by hand whose handler does that, running; its run's id."""
    scene.act = act
    await scheduler.add_job("a", Manual(), **options)
    await scheduler.start()
    run_id = await scheduler.run_job("a")
    await scene.sleep("1s")
    return run_id


def text_of(file):
    return Path(file).read_text()


def taking(scene, length, end=None):
    async def act(run):
        await scene.sleep(length)
        return end() if end is not None else None

    return act


@pytest.mark.promise("C10")
@virtual
async def test_a_report_before_the_run_waits_ends_it_when_it_does(scene):
    async with scene.scheduler() as scheduler:
        run_id = await started(scene, scheduler, taking(scene, "1m", Wait))
        assert await scheduler.server_side.report_run(run_id, {"n": 1}) is False
        assert (await scheduler.get_run(run_id)).status == "active"
        with pytest.raises(ScheduleTriggerError, match="already reported"):
            await scheduler.server_side.report_run(run_id, error="no")
        await scene.sleep("2m")
        run = await scheduler.get_run(run_id)
        assert (run.outcome, run.output) == ("success", {"n": 1})
        assert (await scheduler.get_job("a")).status == "idle"


@pytest.mark.promise("C10")
@virtual
async def test_what_the_handler_says_itself_counts_more_than_a_report(scene):
    async with scene.scheduler() as scheduler:
        run_id = await started(scene, scheduler, taking(scene, "1m", lambda: "mine"))
        await scheduler.server_side.report_run(run_id, error="theirs")
        await scene.sleep("2m")
        run = await scheduler.get_run(run_id)
        assert (run.outcome, run.output) == ("success", "mine")


@pytest.mark.promise("C10")
@virtual
async def test_a_run_that_a_person_cancelled_stays_cancelled(scene):
    async with scene.scheduler() as scheduler:
        run_id = await started(scene, scheduler, taking(scene, "1m", Wait))
        await scheduler.server_side.report_run(run_id, "done")
        await scheduler.cancel_run(run_id)
        await scene.sleep("2m")
        assert (await scheduler.get_run(run_id)).outcome == "cancelled"


@pytest.mark.promise("C10")
@virtual
async def test_a_report_about_a_run_that_was_cut_off_by_a_stop_ends_it(scene):
    async with scene.scheduler() as scheduler:
        run_id = await started(scene, scheduler, taking(scene, "1h", Wait))
        await scheduler.server_side.report_run(run_id, "done")
        await scheduler.stop(wait_for_jobs=False)
        run = await scheduler.get_run(run_id)
        assert (run.outcome, run.output) == ("success", "done")
        await scheduler.start()
        await scene.sleep("1m")
        assert len(scene.runs) == 1


@pytest.mark.promise("C10")
@virtual
async def test_a_report_about_a_deferred_run_ends_the_next_try_when_that_waits(scene):
    async with scene.scheduler() as scheduler:
        first = await started(scene, scheduler, lambda run: _raise(Defer(scene.now + timedelta(hours=1))))
        assert await scheduler.server_side.report_run(first, "done after all") is False
        scene.act = taking(scene, "1s", Wait)
        await scene.sleep("2h")
        last = (await scheduler.get_run_log("a"))[0]
        assert (last.retry_of, last.outcome, last.output) == (first, "success", "done after all")


async def _raise(error):
    raise error


@pytest.mark.promise("C10")
@virtual
async def test_a_report_about_nothing_is_refused(scene):
    async with scene.scheduler() as scheduler:
        run_id = await started(scene, scheduler, None)
        with pytest.raises(ScheduleTriggerError, match="has already ended as success"):
            await scheduler.server_side.report_run(run_id, "again")
        with pytest.raises(RunNotFound):
            await scheduler.server_side.report_run("run_0000000000000", "x")
        token = await scheduler.server_side.callback_token(run_id)
        for wrong in ("run_0000000000000", "nonsense", "a"):
            with pytest.raises(WrongCallbackToken):
                await scheduler.server_side.report_run(wrong, "x", token=token)


@pytest.mark.promise("C10")
@virtual
async def test_a_token_outlives_restarts_and_belongs_to_one_store(scene):
    async with scene.scheduler() as scheduler:
        run_id = await started(scene, scheduler, lambda run: _raise(Wait()))
        token = await scheduler.server_side.callback_token(run_id)
        assert len(token) == 64
    async with scene.scheduler() as scheduler:
        assert await scheduler.server_side.callback_token(run_id) == token
        assert await scheduler.server_side.report_run(run_id, "done", token=token) is True


@virtual
async def test_long_reports_are_kept_beside_the_store(scene):
    async with scene.scheduler() as scheduler:
        run_id = await started(scene, scheduler, lambda run: _raise(Wait()))
        await scheduler.server_side.report_run(run_id, "x" * 600_000)
        run = await scheduler.get_run(run_id)
        assert run.output["truncated"] is True
        whole = text_of(run.log_file)
        assert len(whole) == 600_002
        with pytest.raises(ScheduleTriggerError):
            await scheduler.server_side.report_run(run_id, "y" * 600_000)
        for token in ("wrong", None):
            with pytest.raises((WrongCallbackToken, ScheduleTriggerError)):
                await scheduler.server_side.report_run(run_id, "y" * 600_000, token=token)
        assert text_of(run.log_file) == whole


@virtual
async def test_a_long_report_that_comes_early_is_kept_whole(scene):
    async with scene.scheduler() as scheduler:
        run_id = await started(scene, scheduler, taking(scene, "1m", Wait))
        await scheduler.server_side.report_run(run_id, "x" * 600_000)
        await scene.sleep("2m")
        assert (await scheduler.get_run(run_id)).output == "x" * 600_000


@virtual
async def test_an_error_may_say_when_the_same_is_to_be_tried_again(scene):
    async with scene.scheduler() as scheduler:
        scene.act = lambda run: _raise(TryAgain(scene.now + timedelta(minutes=20), "not yet"))
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(2, 5))
        assert scene.times == [at(1), at(1, 20), at(1, 40), at(2)]
        assert [run.attempt for run in scene.runs] == [1, 2, 3, 1]
        job = await scheduler.get_job("a")
        assert (job.consecutive_errors, job.last_error) == (1, "not yet")


@virtual
async def test_errors_that_are_few_but_old_and_many_but_young_disable_nothing(scene):
    async with scene.scheduler() as scheduler:
        scene.act = lambda run: _raise(RuntimeError("broken"))
        await scheduler.add_job("many", Every("1h"), max_errors=2, error_span="6h")
        await scheduler.add_job("few", Every("10h"), max_errors=3, error_span="6h")
        await scheduler.start()
        await scene.until(at(6, 30))
        assert (await scheduler.get_job("many")).enabled
        await scene.until(at(8, 30))
        assert not (await scheduler.get_job("many")).enabled
        await scene.until(at(20, 30))
        assert (await scheduler.get_job("few")).enabled
        await scene.until(at(31))
        assert not (await scheduler.get_job("few")).enabled
        assert (await scheduler.get_job("few")).options == {"max_errors": 3, "error_span": "6h"}
