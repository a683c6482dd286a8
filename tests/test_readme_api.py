"""The library as its contract shows it, executed, in virtual time."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

import wakeful.testing
from wakeful import Cron, Every, Interval, NewJob, Once, Scheduler
from wakeful.testing import VirtualClock, run


@pytest.mark.promise("H16", "X12")
def test_the_contracts_example_does_what_it_says():
    clock = VirtualClock(datetime(2026, 3, 2, tzinfo=UTC))  # a Monday
    scheduler = Scheduler("sqlite://", clock=clock)
    reported = []

    @scheduler.job(Cron("0 2 * * *", tz="Europe/Berlin"))
    async def nightly(run):
        assert (run.job, run.payload, run.reason, run.attempt) == ("nightly", None, "schedule", 1)
        return {"rows": 42}

    @scheduler.on_job_due("report")
    async def report(run):
        reported.append((run.job, run.payload, run.slot))

    async def main():
        async with scheduler:
            job_id = await scheduler.add_job(
                "weekly", Every("7d"), kind="report", payload={"to": "team"}, if_exists="update"
            )
            await scheduler.add_jobs(
                [NewJob("a", Every("5m"), kind="report"), NewJob("b", Interval("1h"), kind="report")]
            )
            assert not reported
            await scheduler.start()
            await clock.sleep("7d")
            assert ("weekly", {"to": "team"}, datetime(2026, 3, 9, tzinfo=UTC)) in reported
            assert len([job for job, _, _ in reported if job == "a"]) == 7 * 288
            log = await scheduler.get_run_log("nightly")
            assert len(log) == 7
            assert {(found.output["rows"], found.slot.hour) for found in log} == {(42, 1)}
            assert (await scheduler.get_job("weekly")).id == job_id
            await scheduler.stop(wait_for_jobs=True, timeout=30)

    run(main(), clock)


@pytest.mark.promise("X12")
def test_the_example_of_the_test_kit_runs_as_it_stands_there():
    example = re.search(r"\n\n((?:    .*\n|\n)+)", wakeful.testing.__doc__).group(1)
    code = "\n".join(line[4:] for line in example.splitlines())
    assert "run(main(), clock)" in code
    names = {}
    exec(code.replace("...", 'await scheduler.add_job("a", Every("1h"))'), names)  # noqa: S102 - our own docstring
    assert names["clock"].now() >= VirtualClock().now() + 3 * 86_400_000


@pytest.mark.promise("X12")
def test_weeks_pass_in_moments_and_always_in_the_same_way():
    def life():
        clock = VirtualClock()
        seen = []

        async def main():
            async with Scheduler("sqlite://", clock=clock, seed=3, timezone="UTC") as scheduler:

                @scheduler.on_job_due("job")
                async def handle(job_run):
                    seen.append((job_run.id, job_run.job, job_run.slot, clock.now()))
                    await clock.sleep("90s")

                await scheduler.add_jobs([NewJob(f"j{n}", Interval("3h", jitter=10)) for n in range(3)])
                await scheduler.add_job("once", Once(datetime(2026, 1, 2, tzinfo=UTC)))
                await scheduler.start()
                await clock.sleep("5d")

        run(main(), clock)
        return seen

    first = life()
    assert len(first) > 100
    assert life() == first


@pytest.mark.promise("X12")
def test_virtual_time_runs_threads_inline_and_refuses_what_it_cannot_wait_for():
    import asyncio
    import threading

    from wakeful import SchedulerError

    async def thread():
        return await asyncio.to_thread(threading.get_ident)

    async def socket():
        await asyncio.open_connection("localhost", 1)

    async def process():
        await asyncio.create_subprocess_exec("true")

    assert run(thread()) == threading.get_ident()
    for main in (socket, process):
        with pytest.raises(SchedulerError, match="real event loop"):
            run(main())
    with pytest.raises(SchedulerError, match="aware"):
        VirtualClock(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point
