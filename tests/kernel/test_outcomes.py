"""How runs end: what handlers may say, what nonsense they may return, and how it is counted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Defer, Every, InvalidJob, Manual, Noop, Once, ScheduleTriggerError, Skip, Wait
from wakeful.domains.agents.client import NoSessionServer
from wakeful.domains.command.result import CommandFailed


async def one_run(scene, act, **options):
    """A job that is run once with that handler; its run and itself."""
    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), **options)
        await scheduler.start()
        await scene.until(at(1, 0, 5))
        job = await scheduler.get_job("a")
        log = await scheduler.get_run_log("a")
        await scene.until(at(2, 0, 5))
        assert len(scene.runs) >= 2, "the job goes on"
        return log[-1], job


@pytest.mark.promise("H17")
@pytest.mark.parametrize("value", [None, 42, "text", {"rows": [1, 2.5, None, True]}, [], "ü€\U0001f600", 0, False, ""])
@virtual
async def test_what_a_handler_returns_is_the_runs_output(scene, value):
    async def act(run):
        return value

    run, job = await one_run(scene, act)
    assert (run.outcome, run.output, job.last_outcome) == ("success", value, "success")


@pytest.mark.promise("H17")
@pytest.mark.parametrize("how", ["returned", "raised"])
@pytest.mark.parametrize(
    ("said", "outcome", "output"),
    [
        (Skip("market closed"), "skipped", "market closed"),
        (Noop("nothing new"), "noop", "nothing new"),
        (Skip(), "skipped", None),
        (Noop(), "noop", None),
    ],
    ids=repr,
)
@virtual
async def test_skip_and_noop_are_outcomes_and_no_errors(scene, how, said, outcome, output):
    async def act(run):
        if how == "raised":
            raise said
        return said

    run, job = await one_run(scene, act, max_errors=1)
    assert (run.outcome, run.output, run.error) == (outcome, output, None)
    assert (job.last_outcome, job.consecutive_errors, job.last_error, job.next_run_at) == (outcome, 0, None, at(2))


@pytest.mark.promise("H17")
@pytest.mark.parametrize("how", ["returned", "raised"])
@virtual
async def test_defer_runs_the_same_slot_again_at_the_time_said(scene, how):
    async def act(run):
        if run.attempt == 1 and run.slot == at(1):
            if how == "raised":
                raise Defer(at(1, 20), "rate limit")
            return Defer(at(1, 20), "rate limit")
        return "done"

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), max_errors=1)
        await scheduler.start()
        await scene.until(at(1, 30))
        assert [(run.slot, run.attempt) for run in scene.runs] == [(at(1), 1), (at(1), 2)]
        assert scene.times == [at(1), at(1, 20)]
        again, first = await scheduler.get_run_log("a")
        assert (first.outcome, first.output, again.retry_of) == ("deferred", "rate limit", first.id)
        job = await scheduler.get_job("a")
        assert (job.consecutive_errors, job.last_outcome, job.next_run_at) == (0, "success", at(2))


@pytest.mark.promise("H17", "H3")
@pytest.mark.parametrize("back", [0, 3600])
@virtual
async def test_a_handler_that_defers_to_the_past_for_ever_makes_no_storm(scene, back):
    async def act(run):
        if len(scene.runs) < 500:
            raise Defer(scene.now - timedelta(seconds=back))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)))
        await scheduler.start()
        await scene.sleep("1m")
        assert 1 < len(scene.runs) <= 8


@pytest.mark.promise("H17", "H13")
@virtual
async def test_a_deferred_once_is_not_over(scene):
    async def act(run):
        if run.attempt < 3:
            raise Defer(scene.now + timedelta(hours=5))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.sleep("1d")
        assert scene.times == [at(1), at(6), at(11)]
        assert not (await scheduler.get_job("a")).enabled


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")


class Lying(list):
    def __iter__(self):
        raise OSError("not today")


class Odd(BaseException):
    pass


class Nested:
    @staticmethod
    def deep():
        value = []
        for _ in range(10_000):
            value = [value]
        return value


@pytest.mark.promise("H17", "C8")
@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, float("nan"), float("inf"), b"bytes", lambda: 1, Lying([1]), Nested.deep(), {(1, 2): 3}, Skip],
    ids=["object", "set", "nan", "inf", "bytes", "function", "lying list", "deep", "odd key", "a class"],
)
@virtual
async def test_a_return_value_that_is_not_json_is_an_error_and_breaks_nothing(scene, value):
    async def act(run):
        return value

    run, job = await one_run(scene, act)
    assert (run.outcome, job.status, job.consecutive_errors) == ("error", "idle", 1)
    assert job.last_error


@pytest.mark.promise("H17", "C8")
@pytest.mark.parametrize("value", ["\ud800", "a\0b", {"\udfff": "\0"}, "x" * 1_000_000, 10**400])
@virtual
async def test_odd_texts_and_numbers_never_break_anything(scene, value):
    async def act(run):
        return value

    run, job = await one_run(scene, act)
    assert (run.outcome, job.status) in {("success", "idle"), ("error", "idle")}
    run.to_dict()


@pytest.mark.promise("H17")
@virtual
async def test_what_is_kept_of_a_huge_output_is_bounded(scene):
    async def act(run):
        return "x" * 30_000_000

    run, job = await one_run(scene, act)
    assert job.status == "idle"
    assert len(run.output) < 1_000_000


@pytest.mark.promise("H17", "C8")
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("x" * 10_000),
        RuntimeError("\ud800\0"),
        Unprintable(),
        StopIteration(),
        StopAsyncIteration(),
        SystemExit(3),
        GeneratorExit(),
        Odd("odd"),
        BaseExceptionGroup("several", [Odd()]),
        ExceptionGroup("several", [ValueError()]),
        InvalidJob("ours"),
    ],
    ids=lambda error: type(error).__name__,
)
@virtual
async def test_whatever_a_handler_raises_is_its_error_and_the_job_goes_on(scene, error):
    async def act(run):
        raise error

    run, job = await one_run(scene, act)
    assert (run.outcome, job.status, job.consecutive_errors) == ("error", "idle", 1)
    assert run.error
    assert len(run.error) < 10_000


@pytest.mark.promise("H17", "C8")
@pytest.mark.parametrize(
    "error", [Unprintable(), Odd(), SystemExit(1), StopIteration()], ids=lambda e: type(e).__name__
)
@virtual
async def test_a_plain_function_that_raises_is_treated_the_same(scene, error):
    def handler(run):
        raise error

    async with scene.scheduler() as scheduler:
        scheduler.on_job_due("plain", handler)
        await scheduler.add_job("a", Once(at(0)), kind="plain")
        await scheduler.start()
        await scene.sleep("1m")
        job = await scheduler.get_job("a")
        assert (job.status, job.last_outcome) == ("disabled", "error")


@pytest.mark.promise("H17")
@virtual
async def test_a_trace_is_kept_for_people(scene):
    async def act(run):
        raise KeyError("missing")

    run, _ = await one_run(scene, act)
    assert "KeyError" in run.trace
    assert "test_outcomes" in run.trace
    assert "handlers.py" not in run.trace  # the lines of Wakeful are left out


@pytest.mark.promise("H17")
@virtual
async def test_stats_count_every_outcome_with_average_and_p95(scene):
    async def act(run):
        number = len(scene.runs)
        await scene.sleep(number)
        if number == 1:
            raise Skip
        if number == 2:
            raise Noop
        if number == 3:
            raise RuntimeError
        if number == 4:
            await scene.sleep("1h")
        if number == 5:
            raise Defer(at(23))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), timeout="1m")
        await scheduler.start()
        await scene.until(at(20, 30))
        stats = await scheduler.get_run_stats("a")
        assert stats.total == 20
        counts = (stats.skipped, stats.noop, stats.error, stats.timeout, stats.deferred, stats.success)
        assert counts == (1, 1, 1, 1, 1, 15)
        took = sorted([1, 2, 3, 60, 5, *range(6, 21)])
        assert stats.average_ms == pytest.approx(sum(took) / 20 * 1000, abs=10)
        assert stats.p95_ms == pytest.approx(20_000, abs=10)
        late = await scheduler.get_run_stats("a", since=at(18, 30))
        assert (late.total, late.success) == (2, 2)
        nothing = await scheduler.get_run_stats("a", since=at(days=9))
        assert (nothing.total, nothing.average_ms, nothing.p95_ms) == (0, None, None)


# -- waiting runs -----------------------------------------------------------------------------------------------------


@pytest.mark.promise("X8")
@virtual
async def test_a_waiting_run_holds_no_lane_survives_restarts_and_is_completed(scene):
    async def act(run):
        if run.job == "approve":
            raise Wait(why="a person")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("approve", Once(at(0)), lanes={"one": 1}, timeout="1m")
        await scheduler.add_job("other", Once(at(0, 1)), lanes={"one": 1})
        await scheduler.start()
        await scene.sleep("5h")
        assert [run.job for run in scene.runs] == ["approve", "other"]
        waiting = scene.runs[0].id
        assert ((await scheduler.get_run(waiting)).status, scheduler.running_count()) == ("waiting", 0)
        assert (await scheduler.get_job("approve")).status == "running"
        with pytest.raises(ScheduleTriggerError):
            await scheduler.run_job("approve")
    await scene.sleep("3d")
    scheduler = scene.scheduler()
    await scheduler.open()
    await scheduler.start()
    await scene.sleep("1h")
    await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1h")
        assert (await scheduler.get_run(waiting)).status == "waiting"
        await scheduler.complete_run(waiting, {"approved": True})
        run, job = await scheduler.get_run(waiting), await scheduler.get_job("approve")
        assert (run.outcome, run.output, job.last_outcome) == ("success", {"approved": True}, "success")
        with pytest.raises(ScheduleTriggerError):
            await scheduler.complete_run(waiting, "again")
        assert len(scene.runs) == 2


@pytest.mark.promise("C10")
@virtual
async def test_a_waiting_run_that_never_reports_becomes_unknown_at_its_deadline(scene):
    async def act(run):
        raise Wait(until=scene.now + timedelta(minutes=30))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Cron("0 * * * *"), max_errors=1)
        await scheduler.start()
        await scene.until(at(1, 29))
        assert (await scheduler.get_run_log("a"))[0].outcome is None
        await scene.until(at(1, 31))
        [run] = await scheduler.get_run_log("a")
        assert (run.outcome, run.finished_at) == ("unknown", at(1, 30))
        job = await scheduler.get_job("a")
        assert (job.enabled, job.next_run_at) == (True, at(2))


@pytest.mark.promise("C10")
@virtual
async def test_a_waiting_run_may_be_completed_with_an_error_or_cancelled(scene):
    async def act(run):
        raise Wait

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("bad", Manual())
        await scheduler.add_job("gone", Manual())
        await scheduler.start()
        bad, gone = await scheduler.run_job("bad"), await scheduler.run_job("gone")
        await scene.sleep("1m")
        await scheduler.complete_run(bad, error="rejected \ud800 \0" + "x" * 10_000)
        await scheduler.cancel_run(gone)
        run = await scheduler.get_run(bad)
        assert (run.outcome, run.error[:8]) == ("error", "rejected")
        assert len(run.error) < 10_000
        assert (await scheduler.get_job("bad")).consecutive_errors == 1
        assert (await scheduler.get_run(gone)).outcome == "cancelled"
        assert (await scheduler.get_job("gone")).status == "idle"


@pytest.mark.parametrize(
    ("error", "traced"),
    [(NoSessionServer("set the url"), False), (CommandFailed("no ./x"), False), (InvalidJob("no"), True)],
)
@virtual
async def test_an_error_that_says_it_all_is_logged_without_a_trace(scene, caplog, error, traced):
    async def act(run):
        raise error

    run, _ = await one_run(scene, act)
    assert (run.error, run.trace is not None) == (str(error), traced)
    assert ("Traceback" in caplog.text) is traced


@pytest.mark.promise("H16")
@virtual
async def test_a_result_that_cannot_be_kept_is_an_error_and_its_job_goes_on(scene):
    def fail(*_):
        raise RuntimeError("no place for it")

    async def act(run):
        return "x" * 300_000

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        scheduler._engine.shorten = fail
        await scene.until(at(2, 30))
        runs = await scheduler.get_run_log("a")
        assert [(run.outcome, run.error) for run in runs] == [("error", "no place for it")] * 2
