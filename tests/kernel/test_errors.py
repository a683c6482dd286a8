"""Errors: the ladder, auto-disable, resume, retries of the same slot, and one-shot jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import Cron, Defer, Every, Interval, Skip, Wait
from wakeful.triggers.moments import iso, to_ms

LADDER = [30, 60, 300, 900, 3600]


@pytest.mark.promise("H6")
@pytest.mark.parametrize("trigger", [Every("10s"), Cron("*/10 * * * * *"), Interval("10s")], ids=lambda t: t.type)
@virtual
async def test_errors_back_off_by_the_ladder_and_stay_on_its_last_step(scene, trigger):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, max_errors=0)
        await scheduler.start()
        await scene.sleep("4h")
        gaps = [later - earlier for earlier, later in zip(scene.times, scene.times[1:], strict=False)]
        assert gaps[:7] == [timedelta(seconds=seconds) for seconds in (*LADDER, 3600, 3600)]


@pytest.mark.promise("H6")
@virtual
async def test_backoff_never_advances_a_later_slot(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("hourly", Every("1h"), max_errors=0)
        await scheduler.start()
        await scene.until(at(8, 30))
        assert scene.times == [at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8)]


@pytest.mark.promise("H6")
@virtual
async def test_backoff_is_the_later_of_the_slot_and_the_delay(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"), max_errors=0)
        await scheduler.start()
        await scene.until(at(0, 30, 1))
        assert (await scheduler.get_job("a")).next_run_at == at(0, 40)
        await scene.until(at(0, 40, 1))
        assert (await scheduler.get_job("a")).next_run_at == at(0, 55)
        await scene.until(at(0, 55, 1))
        assert (await scheduler.get_job("a")).next_run_at == at(1, 55)


@pytest.mark.promise("H6")
@virtual
async def test_backoff_counts_from_the_error_and_not_from_the_slot(scene):
    async def act(run):
        await scene.sleep("25s")
        raise RuntimeError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10s"), max_errors=0)
        await scheduler.start()
        await scene.sleep("2m")
        assert scene.times[:2] == [at(seconds=10), at(seconds=10 + 25 + 30)]


@pytest.mark.promise("H6")
@virtual
async def test_one_success_ends_the_backoff(scene):
    async def act(run):
        if len(scene.runs) in (1, 2, 4):
            raise RuntimeError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10s"))
        await scheduler.start()
        await scene.sleep("3m")
        assert scene.times[:5] == [at(seconds=seconds) for seconds in (10, 40, 100, 110, 140)]


@pytest.mark.promise("H6")
@virtual
async def test_a_manual_success_ends_the_backoff(scene):
    async def act(run):
        if run.reason != "manual":
            raise RuntimeError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"), backoff=["1h"])
        await scheduler.start()
        await scene.sleep("70s")
        assert (await scheduler.get_job("a")).next_run_at == at(1, 1)
        await scheduler.run_job("a")
        await scene.sleep("1s")
        job = await scheduler.get_job("a")
        assert (job.consecutive_errors, job.next_run_at) == (0, at(0, 2))


@pytest.mark.promise("H6", "X25")
@pytest.mark.parametrize("trigger", [Interval("15s"), Every("3s", anchor=at()), Every("1m", anchor=at())], ids=str)
@virtual
async def test_starts_by_hand_after_a_slot_that_waits_keep_the_backoff_while_they_fail_and_end_it_with_a_success(
    scene, trigger
):
    works = set()

    async def act(run):
        if run.reason not in works:
            raise RuntimeError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, backoff=["1h"], max_errors=0)
        await scheduler.start()
        await scene.sleep("2m30s")  # a slot has come and is put off
        until = (await scheduler.get_job("a")).next_run_at
        for _ in range(2):
            await scheduler.run_job("a")
            await scene.sleep("1s")
            job, facts = await scheduler.get_job("a"), (await scheduler.explain("a")).facts
            assert (job.consecutive_errors, job.next_run_at, facts["backoff_until"]) == (1, until, iso(to_ms(until)))
        works |= {"manual", "schedule"}
        await scheduler.run_job("a")
        await scene.sleep("1s")
        job = await scheduler.get_job("a")
        assert (job.consecutive_errors, (await scheduler.explain("a")).facts["backoff_until"]) == (0, None)
        assert job.next_run_at - scene.times[-1] <= timedelta(minutes=1), "as if it had never failed"
        await scene.sleep("3m")
        assert scene.runs[-1].reason == "schedule"
        assert (await scheduler.get_ledger("a", since=at())).total.unaccounted == 0


@pytest.mark.promise("H6")
@pytest.mark.parametrize("ends", ["skipped", "cancelled", "deferred", "unknown"])
@pytest.mark.parametrize("trigger", [Interval("15s"), Every("3s", anchor=at()), Every("1h", anchor=at())], ids=str)
@virtual
async def test_a_start_by_hand_that_neither_succeeds_nor_fails_leaves_the_backoff_as_it_was(scene, trigger, ends):
    async def act(run):
        if run.reason != "manual":
            raise RuntimeError
        if ends == "skipped":
            raise Skip("nothing to do")
        if ends == "deferred":
            raise Defer(at(12))
        if ends == "unknown":
            raise Wait(scene.now + timedelta(minutes=1))
        await scene.sleep("1h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, backoff=["6h"], max_errors=0, timeout="2h")
        await scheduler.start()
        await scene.until(at(1, 30))
        until = (await scheduler.get_job("a")).next_run_at
        number = await scheduler.run_job("a")
        await scene.sleep("1s")
        if ends == "cancelled":
            await scheduler.cancel_run(number)
        await scene.sleep("2m")
        assert (await scheduler.get_run(number)).outcome == ends
        facts = (await scheduler.explain("a")).facts
        assert facts["backoff_until"] == iso(to_ms(until))
        assert (await scheduler.get_job("a")).next_run_at == until
        await scene.until(at(9))
        assert [run.reason for run in scene.runs][:3] == ["schedule", "manual", "schedule"]
        assert scene.times[2] == until


@pytest.mark.promise("H6", "X9")
@virtual
async def test_the_ladder_is_the_jobs_to_choose(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10s"), backoff=["20s", "2m"], max_errors=0)
        await scheduler.start()
        await scene.sleep("10m")
        gaps = [(later - earlier).seconds for earlier, later in zip(scene.times, scene.times[1:], strict=False)]
        assert gaps[:3] == [20, 120, 120]


@pytest.mark.promise("H6")
@virtual
async def test_a_start_by_hand_that_fails_during_a_backoff_does_not_lengthen_it(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m", anchor=at()), backoff=["10m", "60m"], max_errors=2)
        await scheduler.start()
        await scene.sleep("1m1s")
        before = await scheduler.get_job("a")
        for _ in range(3):
            await scene.sleep("1m")
            await scheduler.run_job("a")
            await scene.sleep("1s")
        job = await scheduler.get_job("a")
        assert (job.consecutive_errors, job.status, job.next_run_at) == (1, "idle", before.next_run_at)
        await scene.sleep("10m")
        assert (await scheduler.get_job("a")).consecutive_errors == 2


@pytest.mark.promise("H6", "D5")
@virtual
async def test_slots_passed_while_backing_off_are_counted_under_that_reason(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10s"))
        await scheduler.start()
        await scene.sleep("45s")
        job = await scheduler.get_job("a")
        skips = {skip["reason"]: skip["count"] for skip in (await scheduler.explain("a")).facts["skips"]}
        assert (job.missed, skips) == (2, {"backing_off": 2})


@pytest.mark.promise("H7")
@pytest.mark.parametrize(("options", "allowed"), [({}, 5), ({"max_errors": 1}, 1), ({"max_errors": 3}, 3)])
@virtual
async def test_errors_in_a_row_disable_the_job_keep_the_error_and_alert(scene, options, allowed):
    async def act(run):
        raise RuntimeError(f"error {len(scene.runs)}")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10s"), **options)
        await scheduler.start()
        await scene.sleep("1d")
        job = await scheduler.get_job("a")
        assert len(scene.runs) == allowed
        assert (job.enabled, job.status, job.next_run_at) == (False, "disabled", None)
        assert (job.consecutive_errors, job.last_error, job.last_outcome) == (allowed, f"error {allowed}", "error")
        [alert] = [alert for alert in await scheduler.list_alerts() if alert.kind == "disabled"]
        assert "a was disabled" in alert.message
        assert f"error {allowed}" in alert.message


@pytest.mark.promise("H7")
@virtual
async def test_a_disabled_job_stays_disabled_over_a_restart(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10s"), max_errors=1)
        await scheduler.start()
        await scene.sleep("1m")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1h")
        assert len(scene.runs) == 1
        assert [job.name for job in await scheduler.list_jobs(status="disabled", enabled=False)] == ["a"]


@pytest.mark.promise("H7", "H17")
@virtual
async def test_only_errors_in_a_row_count(scene):
    async def act(run):
        if len(scene.runs) % 5:
            raise RuntimeError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.sleep("2d")
        assert (await scheduler.get_job("a")).enabled
        assert len(scene.runs) == 48


@pytest.mark.promise("H8")
@virtual
async def test_resuming_a_disabled_job_forgets_its_errors_and_computes_a_fresh_time(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"), max_errors=2)
        await scheduler.start()
        await scene.until(at(5, 3))
        await scheduler.resume_job("a")
        job = await scheduler.get_job("a")
        assert (job.enabled, job.status, job.consecutive_errors, job.next_run_at) == (True, "idle", 0, at(5, 10))
        assert await scheduler.list_alerts() == []
        await scene.until(at(5, 10, 1))
        assert (await scheduler.get_job("a")).next_run_at == at(5, 20), "the ladder starts at its first step"


@pytest.mark.promise("H8")
@virtual
async def test_resuming_a_job_that_backs_off_clears_its_errors_too(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"), max_errors=0)
        await scheduler.start()
        await scene.until(at(0, 9))
        assert (await scheduler.get_job("a")).consecutive_errors == 4
        await scheduler.resume_job("a")
        job = await scheduler.get_job("a")
        assert (job.status, job.consecutive_errors, job.next_run_at) == ("idle", 0, at(0, 10))
