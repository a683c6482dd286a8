"""Pings are runs: begun, ended, failed, overlapping, and what follows from them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kernel.scene import at, virtual
from tests.monitors.pinged import alerts, monitor, runs, state, watch
from wakeful import After
from wakeful.domains.monitors import MAX_BODY, Report, ping
from wakeful.domains.monitors.pinging import MAX_LOG, MOST_OPEN

pytestmark = pytest.mark.promise("X16")


@virtual
async def test_a_start_and_the_next_ping_are_one_run_with_a_duration(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key, Report("start"))
        job = await scheduler.get_job("offsite")
        assert (job.status, job.monitor["running"]) == ("running", True)
        await scene.sleep("10m")
        await ping(scheduler, key, Report("log", text="half way"))
        await scene.sleep("10m")
        await ping(scheduler, key, Report("success", text="12 files"))
        (run,) = await runs(scheduler)
        assert (run.outcome, run.reason) == ("success", "ping")
        assert run.finished_at - run.started_at == timedelta(minutes=20)
        assert run.output == {"text": "half way\n12 files"}
        assert (await scheduler.get_job("offsite")).status == "idle"


@virtual
async def test_a_failed_ping_alerts_at_once_and_a_success_closes_it(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key, Report("fail", exit_code=3, text="copying\ndisk full\n"))
        assert await state(scheduler) == "down"
        assert await alerts(scheduler) == [("down", "offsite is down: it ended with exit code 3: disk full")]
        for _ in range(8):
            await ping(scheduler, key, Report("fail"))
        assert len(await alerts(scheduler)) == 1
        job = await scheduler.get_job("offsite")
        assert (job.enabled, job.consecutive_errors) == (True, 9)
        await ping(scheduler, key)
        assert await alerts(scheduler) == []
        assert await state(scheduler) == "up"


@virtual
async def test_a_second_start_replaces_the_first_whose_end_is_unknown(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key, Report("start"))
        await scene.sleep("5m")
        await ping(scheduler, key, Report("start"))
        await scene.sleep("5m")
        await ping(scheduler, key)
        first, second = await runs(scheduler)
        assert (first.outcome, second.outcome) == ("unknown", "success")
        assert second.finished_at - second.started_at == timedelta(minutes=5)
        assert await alerts(scheduler) == []


@virtual
async def test_a_rid_pairs_starts_and_ends_that_overlap(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        for number in range(3):
            await ping(scheduler, key, Report("start", rid=f"r{number}"))
            await scene.sleep("1m")
        for number in (1, 0, 2):
            await ping(scheduler, key, Report("success", rid=f"r{number}"))
            await scene.sleep("1m")
        found = {run.output["rid"]: run for run in await runs(scheduler)}
        took = {rid: (run.finished_at - run.started_at).total_seconds() // 60 for rid, run in found.items()}
        assert took == {"r0": 4, "r1": 2, "r2": 3}
        assert (await scheduler.get_job("offsite")).current_run is None
        await ping(scheduler, key, Report("success", rid="other"))
        assert len(await runs(scheduler)) == 4


@virtual
async def test_an_end_with_another_rid_ends_no_run_that_is_open(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        first = await ping(scheduler, key, Report("start", rid="a"))
        await ping(scheduler, key, Report("success", rid="b"))
        assert [(run.id == first, run.outcome) for run in await runs(scheduler)] == [(True, None), (False, "success")]
        assert (await scheduler.get_job("offsite")).current_run == first


@virtual
async def test_the_runs_of_a_removed_monitor_are_waited_for_no_longer_than_the_first_of_them(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        opened = []
        for rid in ("a", "b", "c"):
            opened.append(await ping(scheduler, key, Report("start", rid=rid)))
            await scene.sleep("10m")
        await scheduler.remove_job("offsite")
        await scene.until(at(1, 0, 1))  # an hour after the first began
        assert [(await scheduler.get_run(run)).status for run in opened] == ["done"] * 3
        assert await ping(scheduler, key) is None


@virtual
async def test_a_run_that_began_and_does_not_end_in_its_grace_is_down(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key, Report("start", rid="a"))
        await ping(scheduler, key, Report("start", rid="b"))
        await scene.until(at(1, 0, 1))
        assert await state(scheduler) == "down"
        assert [run.outcome for run in await runs(scheduler)] == ["timeout", "timeout"]
        ((_, message),) = await alerts(scheduler)
        assert message == "offsite is down: it started, and no other ping came within its grace of 1h"


@virtual
async def test_starting_again_and_again_is_no_sign_of_success(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        for _ in range(53):
            await ping(scheduler, key, Report("start"))
            await scene.sleep("30m")
        assert await state(scheduler) == "down"


@virtual
async def test_a_run_that_began_before_a_restart_ends_after_it(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key, Report("start"))
        await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("10m")
        await ping(scheduler, key)
        (run,) = await runs(scheduler)
        assert (run.outcome, run.finished_at - run.started_at) == ("success", timedelta(minutes=10))


@virtual
async def test_an_open_run_can_be_cancelled_by_hand_and_the_others_go_on(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        ids = [await ping(scheduler, key, Report("start", rid=f"r{n}")) for n in range(3)]
        await scheduler.cancel_run(ids[2])
        await scheduler.cancel_run(ids[0])
        assert (await scheduler.get_job("offsite")).current_run == ids[1]
        await ping(scheduler, key, Report("success", rid="r1"))
        assert [run.outcome for run in await runs(scheduler)] == ["cancelled", "success", "cancelled"]


@virtual
async def test_a_note_alone_changes_nothing(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key, Report("fail"))
        await scene.sleep("1h")
        before = await monitor(scheduler)
        await ping(scheduler, key, Report("log", text="still here"))
        after = await monitor(scheduler)
        assert (after["state"], after["expected_at"]) == ("down", before["expected_at"])
        assert (await runs(scheduler))[-1].outcome == "noop"


@virtual
async def test_more_runs_than_are_kept_open_end_the_oldest(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        for number in range(MOST_OPEN + 3):
            await ping(scheduler, key, Report("start", rid=f"r{number}"))
            await scene.sleep("1s")
        found = await runs(scheduler)
        assert [run.outcome for run in found] == ["unknown"] * 3 + [None] * MOST_OPEN
        assert (await scheduler.get_job("offsite")).current_run == found[3].id


@virtual
async def test_jobs_start_after_a_ping_like_after_any_run(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.add_job("verify", After("offsite"))
        await scheduler.start()
        await ping(scheduler, key)
        await scene.sleep("1s")
        assert [run.reason for run in scene.of("verify")] == ["after"]


@virtual
async def test_what_a_run_says_is_bounded(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await ping(scheduler, key, Report("start"))
        for _ in range(20):
            await ping(scheduler, key, Report("log", text="x" * MAX_BODY))
        await ping(scheduler, key)
        (run,) = await runs(scheduler)
        assert len(run.output["text"]) == MAX_LOG + 1


@virtual
async def test_an_earlier_run_that_ends_late_does_not_set_back_when_the_monitor_was_last_heard_of(scene):
    heard = []
    async with scene.scheduler() as scheduler:
        scheduler.events.subscribe(heard.append, "run")
        key = await watch(scheduler)
        await scheduler.start()
        first = await ping(scheduler, key, Report("start", rid="early"))
        await scene.sleep("10m")
        for rid in ("late", "early"):
            await ping(scheduler, key, Report("success", rid=rid))
        job = await scheduler.get_job("offsite")
        assert job.last_run_at == at(minutes=10)
        await scene.sleep(1)
        begun = [event.data["run"] for event in heard if event.type == "started"]
        assert (begun[0], len(begun)) == (first, 2)
