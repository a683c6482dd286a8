"""Real threads, real processes, the machine's own clock."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

from tests.service.real_time import TO_BEGIN_S, Gate, Watch, make, real
from wakeful import Manual, NewJob, Once, SchedulerShutdownError, StoreLocked
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.loop.handlers import Threads


def soon(seconds=0.0):
    return datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.mark.promise("H16", "H17")
@real
async def test_plain_functions_run_in_threads_beside_the_loop(tmp_path):
    gate = Gate()
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", gate)
        await scheduler.add_jobs([NewJob(f"j{n}", Once(soon())) for n in range(4)])
        await scheduler.start()
        for _ in range(4):
            await gate.entered()
        assert scheduler.running_count() == 4
        gate.open.set()
        await watch.finished(4)
        outputs = {run.output for run in await scheduler.get_run_log()}
        assert len(outputs) == 4
        assert threading.main_thread().name not in outputs


@pytest.mark.promise("H10")
@pytest.mark.parametrize("awaits", [True, False])
@real
async def test_runs_that_are_past_their_limit_before_their_first_step_end_all_the_same(tmp_path, awaits):
    async def handler(run):
        await asyncio.sleep(0)

    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", handler if awaits else lambda run: None)
        jobs = [NewJob(f"j{n}", Once(soon()), timeout=0.001, retry=0) for n in range(300)]
        await scheduler.add_jobs(jobs)
        await scheduler.start()  # starting so many takes longer than each may
        await watch.finished(300)
        assert {run.outcome for run in await scheduler.get_run_log(limit=300)} <= {"timeout", "success"}
        assert scheduler.running_count() == 0


@pytest.mark.promise("H16")
@real
async def test_plain_functions_that_are_due_together_do_not_wait_for_one_idle_thread(tmp_path):
    gate = Gate()
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", gate)
        scheduler.on_job_due("short", lambda: None)
        await scheduler.start()
        await scheduler.add_job("before", Once(soon()), kind="short")
        await watch.finished()
        await scheduler.add_jobs([NewJob(f"j{n}", Once(soon())) for n in range(4)])
        for _ in range(4):
            await gate.entered()
        assert scheduler.running_count() == 4
        gate.open.set()
        await watch.finished(5)


@pytest.mark.promise("H10")
@real
async def test_a_thread_past_its_limit_keeps_its_job_until_it_ends_and_that_is_shown(tmp_path):
    gate = Gate()
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", gate)
        await scheduler.add_job("a", Once(soon()), timeout=TO_BEGIN_S)
        await scheduler.start()
        await gate.entered()
        await watch.until(
            lambda events: any(event.stream == "alert" and event.data["kind"] == "stuck" for event in events)
        )
        assert (await scheduler.get_job("a")).status == "running"
        assert "past its limit" in str(await scheduler.explain("a"))
        gate.open.set()
        await watch.finished()
        run = (await scheduler.get_run_log("a"))[0]
        assert run.outcome == "timeout"


@pytest.mark.promise("H9", "H10")
@real
async def test_a_run_that_times_out_while_it_waits_for_a_thread_is_never_begun(tmp_path):
    gate = Gate()
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler._engine._threads = Threads(limit=1)
        scheduler.on_job_due("job", gate)
        called = []
        scheduler.on_job_due("other", lambda run: called.append(run.id))
        await scheduler.start()
        await scheduler.add_job("first", Manual())
        await scheduler.run_job("first")
        await gate.entered()
        await scheduler.add_job("second", Manual(), kind="other", timeout=0.2)
        await scheduler.run_job("second")
        await watch.finished()
        [run] = await scheduler.get_run_log("second")
        assert (run.outcome, run.unstoppable) == ("timeout", None)
        gate.open.set()
        await watch.finished(2)
        await scheduler.add_job("third", Manual(), kind="other")
        last = await scheduler.run_job("third")
        await watch.finished(3)
        assert called == [last]


@pytest.mark.promise("H10")
@real
async def test_a_plain_function_that_returns_an_awaitable_is_cancelled_at_its_limit(tmp_path):
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", lambda run: asyncio.Event().wait())
        await scheduler.add_job("a", Once(soon()), timeout=0.2)
        await scheduler.start()
        await watch.finished()
        assert (await scheduler.get_job("a")).last_outcome == "timeout"


@pytest.mark.promise("H15", "D12", "D13")
@real
async def test_stop_with_a_hanging_thread_says_how_many_and_the_run_is_found_at_the_next_start(tmp_path):
    gate = Gate()
    async with make(tmp_path) as scheduler:
        scheduler.on_job_due("job", gate)
        await scheduler.add_jobs([NewJob("a", Once(soon())), NewJob("b", Once(soon()))])
        await scheduler.start()
        await gate.entered()
        await gate.entered()
        with pytest.raises(SchedulerShutdownError) as error:
            await scheduler.stop(timeout=0.1)
        assert error.value.context == {"timed_out": True, "running_count": 2}
        assert scheduler.get_status() == "stopped"
    gate.open.set()
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", lambda run: "again")
        await scheduler.start()
        await watch.until(lambda events: sum(event.data.get("outcome") == "success" for event in events) == 2)
        for name in "ab":
            again, first = await scheduler.get_run_log(name)
            assert first.outcome in ("crashed", "cancelled")
            assert (again.reason, again.retry_of, again.output) == ("recovery", first.id, "again")


@pytest.mark.promise("H9", "H10")
@real
async def test_a_thread_that_outlived_stop_keeps_its_job_from_running_beside_it(tmp_path):
    gate = Gate()
    async with make(tmp_path) as scheduler:
        scheduler.on_job_due("job", gate)
        await scheduler.add_job("a", Once(soon()))
        await scheduler.start()
        await gate.entered()
        with pytest.raises(SchedulerShutdownError):
            await scheduler.stop(timeout=0.1)
        watch = Watch(scheduler)
        await scheduler.add_job("b", Once(soon()), kind="other")
        scheduler.on_job_due("other", lambda run: None)
        await scheduler.start()
        await watch.until(lambda events: any(event.data.get("outcome") == "success" for event in events))
        try:
            assert gate.most == 1, "the same job twice at once"
        finally:
            gate.open.set()


@pytest.mark.promise("H17", "C8")
@pytest.mark.parametrize("error", [RuntimeError("x"), SystemExit(1), GeneratorExit(), KeyError()], ids=repr)
@real
async def test_whatever_a_thread_raises_is_its_error(tmp_path, error):
    def handler(run):
        raise error

    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", handler)
        await scheduler.add_job("a", Once(soon()))
        await scheduler.start()
        await watch.finished()
        assert (await scheduler.get_job("a")).last_outcome == "error"


@pytest.mark.promise("H15")
@real
async def test_a_clean_stop_in_a_burst_leaves_nothing_open_and_loses_nothing(tmp_path):
    ran = []

    async def handler(run):
        ran.append((run.job, run.attempt))

    jobs = {f"j{n}" for n in range(400)}
    async with make(tmp_path) as scheduler:
        scheduler.on_job_due("job", handler)
        await scheduler.add_jobs([NewJob(name, Once(soon())) for name in sorted(jobs)])
        for _ in range(12):
            await scheduler.start()
            await asyncio.sleep(0)
            await scheduler.stop()
            opened = [run for run in await scheduler.get_run_log(limit=1000) if run.status == "active"]
            assert opened == []
        watch = Watch(scheduler)
        await scheduler.start()
        await watch.until(lambda events: {name for name, _ in ran} == jobs)
        await scheduler.stop()
        assert sorted(ran) == sorted((name, 1) for name in jobs)
        assert {run.outcome for run in await scheduler.get_run_log(limit=1000)} == {"success"}


@pytest.mark.promise("H5")
@real
async def test_what_another_process_adds_is_seen_long_before_the_next_alarm(tmp_path):
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", lambda run: None)
        await scheduler.add_job("far", Once(soon(3600)))
        await scheduler.start()
        async with make(tmp_path) as other:  # a connection of its own, as another process has
            await other.add_job("now", Once(soon()))
        await watch.finished()
        assert Tuning().poll_ms <= 500  # so often it looks; the benchmarks show how soon that is on a given machine


@pytest.mark.promise("H5", "H16")
@real
async def test_a_run_is_cancelled_from_another_process(tmp_path):
    async def handler(run):
        await asyncio.Event().wait()

    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", handler)
        await scheduler.add_job("a", Once(soon()))
        await scheduler.start()
        await watch.started()
        async with make(tmp_path) as other:
            [run] = await other.get_run_log("a")
            await other.cancel_run(run.id)
        await watch.finished()
        assert (await scheduler.get_run(run.id)).outcome == "cancelled"


@pytest.mark.promise("H9", "H11")
@real
async def test_a_second_engine_on_the_same_file_is_refused_with_the_holder(tmp_path):
    async with make(tmp_path, node="first") as scheduler, make(tmp_path, node="second") as other:
        await scheduler.start()
        with pytest.raises(StoreLocked, match=rf"process {os.getpid()} .*first"):
            await other.start()
        assert other.get_status() == "stopped"
        assert scheduler.engine_holder()["node"] == "first"
        await other.add_job("a", Manual())  # edits are everybody's
        await scheduler.stop()
        await other.start()
        assert other.is_running()


DIES = """
import asyncio, os, sys
from wakeful import Every, Scheduler

async def main():
    scheduler = Scheduler(sys.argv[1], timezone="UTC")
    async def handler(run):
        print("in", flush=True)
        await asyncio.Event().wait()
    scheduler.on_job_due("job", handler)
    async with scheduler:
        await scheduler.add_job("a", Every("1d"))
        await scheduler.start()
        await scheduler.run_job("a", payload={"n": 1})
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.promise("H11", "H12", "X14")
@real
async def test_a_killed_process_leaves_its_lock_free_and_its_run_to_be_recovered(tmp_path):
    url = f"sqlite:///{tmp_path / 'wakeful.db'}"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES, url, stdout=subprocess.PIPE)
    assert await asyncio.wait_for(process.stdout.readline(), 20) == b"in\n"
    process.kill()
    await process.wait()
    process._transport.close()
    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", lambda run: "back")
        await scheduler.start()
        await watch.until(lambda events: any(event.data.get("outcome") == "success" for event in events))
        again, first = await scheduler.get_run_log("a")
        assert (first.outcome, again.reason, again.outcome, again.output) == ("crashed", "recovery", "success", "back")


@pytest.mark.promise("H5")
@real
async def test_nothing_ever_starts_early(tmp_path):
    early = []

    async def handler(run):
        now = datetime.now(UTC)
        if now < run.slot:
            early.append((run.slot, now))

    async with make(tmp_path) as scheduler:
        watch = Watch(scheduler)
        scheduler.on_job_due("job", handler)
        base = soon(0.3)
        await scheduler.add_jobs([NewJob(f"j{n}", Once(base + timedelta(milliseconds=7 * n))) for n in range(100)])
        await scheduler.start()
        await watch.finished(100)
    assert early == []
