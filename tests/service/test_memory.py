"""What a process keeps in memory is bound by what runs, not by what has run."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.service.real_time import PATIENCE, TO_BEGIN_S, Gate, Watch, make, real
from wakeful import Manual, NewJob, Once
from wakeful.domains.agents import SESSION
from wakeful.domains.agents.client import SessionClient
from wakeful.domains.agents.polling import Polling
from wakeful.domains.agents.settings import SessionSettings
from wakeful.domains.agents.tables import Watch as WatchedRun
from wakeful.kernel.actions.selections import JobSelection, pause_many
from wakeful.kernel.context import Rights
from wakeful.surfaces.cli import serve_log
from wakeful.surfaces.cli.serve_log import ServeLog
from wakeful.testing import VirtualClock, run


def soon(seconds=0.0):
    return datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.mark.promise("X24", "H10")
def test_deadlines_are_kept_for_what_runs_and_a_long_run_among_many_short_ones_still_meets_its_own(tmp_path):
    clock = VirtualClock()

    async def main():
        async with make(tmp_path, clock=clock) as scheduler:

            @scheduler.on_job_due("hangs")
            async def hangs(_):
                await asyncio.Event().wait()

            @scheduler.on_job_due("job")
            async def job(_):
                """Over at once."""

            now = datetime.fromtimestamp(clock.now() / 1000, UTC)
            many = [NewJob(f"j{n}", Once(now + timedelta(seconds=1 + n // 50)), timeout="1d") for n in range(2000)]
            await scheduler.add_jobs([NewJob("long", Once(now), kind="hangs", timeout="2h"), *many])
            await scheduler.start()
            await clock.sleep("1h")
            assert scheduler.get_state().trigger_count == 2001
            assert len(scheduler._engine._deadlines) < 200
            assert (await scheduler.get_job("long")).status == "running"
            await clock.sleep("61m")
            [long] = await scheduler.get_run_log("long")
            assert long.outcome == "timeout"
            assert long.finished_at - long.started_at == timedelta(hours=2)

    run(main(), clock)


@pytest.mark.promise("X24", "H10")
@real
async def test_a_thread_past_its_limit_is_reported_once_however_many_runs_come_and_go(tmp_path):
    gate = Gate()
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)

        @scheduler.on_job_due("short")
        async def short(_):
            """Over at once."""

        scheduler.on_job_due("job", gate)
        await scheduler.add_job("stuck", Once(soon()), timeout=TO_BEGIN_S)
        await scheduler.start()
        await gate.entered()
        await watch.until(lambda events: any(event.data.get("kind") == "stuck" for event in events))
        await scheduler.add_jobs([NewJob(f"j{n}", Once(soon()), kind="short") for n in range(400)])
        await watch.finished(400)
        assert [alert.times for alert in await scheduler.list_alerts() if alert.kind == "stuck"] == [1]
        gate.open.set()
        await watch.finished(401)


def threads_of_runs():
    return {thread for thread in threading.enumerate() if thread.name.startswith("wakeful-run-")}


def gone(threads):
    for thread in threads:
        thread.join(PATIENCE)
    return not any(thread.is_alive() for thread in threads)


@pytest.mark.promise("X24")
@real
async def test_threads_end_with_the_engine_and_come_back_with_it(tmp_path):
    before = threads_of_runs()
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", lambda run: None)
        for life in range(1, 3):
            await scheduler.start()
            await scheduler.add_jobs([NewJob(f"{life}-{n}", Once(soon())) for n in range(8)])
            await watch.finished(8 * life)
            threads = threads_of_runs() - before
            assert threads
            await scheduler.stop()
            assert await asyncio.to_thread(gone, threads)


@pytest.mark.promise("X24")
@real
async def test_a_run_without_an_engine_leaves_no_thread_behind(tmp_path):
    before = threads_of_runs()
    async with make(tmp_path) as scheduler:
        scheduler.on_job_due("job", lambda run: "done")
        await scheduler.add_job("a", Manual())
        assert (await scheduler.run_here("a")).output == "done"
        assert await asyncio.to_thread(gone, threads_of_runs() - before)


@pytest.mark.promise("X24")
@real
async def test_what_the_server_says_in_its_log_keeps_few_names_and_few_starts(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(serve_log, "MOST_NAMES", 10)
    monkeypatch.setattr(serve_log, "MOST_STARTED", 10)
    monkeypatch.setattr(serve_log, "MOST_BEHIND", 10)
    async with make(tmp_path) as scheduler:
        lines, watch = ServeLog(scheduler), Watch(scheduler)
        scheduler.on_job_due("job", lambda run: None)
        await scheduler.start()
        for n in range(60):
            await scheduler.add_job(f"j{n}", Once(soon()))
            assert len(lines._names) <= 10
        await watch.finished(60)
        assert len(lines._started) <= 10
        await lines.finish()
        assert len(lines._names) <= 10
    assert caplog.text.count(" success") == 60


@real
async def test_many_jobs_paused_at_once_are_one_line_in_the_log(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    async with make(tmp_path) as scheduler:
        lines = ServeLog(scheduler)
        await scheduler.add_jobs([NewJob(f"j{n}", Manual()) for n in range(1001)])
        await scheduler.transact(partial(pause_many, many=JobSelection()), rights=Rights("ada"))
        await lines.finish()
    said = [record.getMessage() for record in caplog.records]
    assert [line for line in said if "paused" in line] == ["1001 jobs were paused"]


@real
async def test_the_log_says_that_everything_was_paused_and_resumed(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    async with make(tmp_path) as scheduler:
        lines = ServeLog(scheduler)
        await scheduler.server_side.hold_all(None, Rights("ada"))
        await scheduler.server_side.release_all(Rights("ada"))
        await lines.finish()
    assert "everything was paused by ada: nothing starts until wakeful resume --all" in caplog.text
    assert "everything was resumed" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.promise("X24")
@real
async def test_a_waiting_run_that_another_node_ended_is_no_longer_asked_about(tmp_path):
    async with make(tmp_path) as scheduler:
        settings = SessionSettings("http://127.0.0.1:9")
        client = SessionClient(settings)
        polling = Polling(scheduler, SESSION, settings.poll_s, lambda watch: client.status(watch.url), client.close)
        polling.watch(WatchedRun(1, "http://127.0.0.1:9/status", 0))
        await polling._look()
        assert polling._questions == {}
        await polling.end()
