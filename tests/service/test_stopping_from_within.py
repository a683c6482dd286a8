"""A handler that stops its own scheduler: its run is recorded, and does not run again at the next start."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from tests.service.real_time import PATIENCE, real
from wakeful import Once, Scheduler, SchedulerNotOpen, sync

pytestmark = pytest.mark.promise("H4")
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def url(tmp_path):
    return f"sqlite:///{tmp_path}/wakeful.db"


async def ways(how, scheduler):
    """The ways in which scripts end themselves."""
    if how == "stop":
        await scheduler.stop()
    elif how == "at once":
        await scheduler.stop(wait_for_jobs=False)
    elif how == "close":
        await scheduler.close()
    elif how == "task":
        scheduler.last_task = asyncio.create_task(scheduler.stop())


async def outcomes(tmp_path):
    """How every run ended, and what the next start would run."""
    again = []
    async with Scheduler(url(tmp_path), timezone="UTC") as scheduler:
        scheduler.on_job_due("job", lambda run: again.append(run.id))
        await scheduler.start()
        await asyncio.sleep(0)
        await scheduler.stop()
        return [(run.outcome, run.output) for run in await scheduler.get_run_log("a")], again


@pytest.mark.parametrize("how", ["stop", "at once", "close", "task"])
@real
async def test_a_run_that_stops_its_scheduler_is_recorded_with_its_result_and_not_run_again(tmp_path, how):
    scheduler = Scheduler(url(tmp_path), timezone="UTC")

    @scheduler.on_job_due("job")
    async def handler(run):
        await ways(how, scheduler)
        await asyncio.sleep(0)  # it goes on for a while
        return "all done"

    async with asyncio.timeout(PATIENCE / 2), scheduler:
        await scheduler.add_job("a", Once(PAST))
        await scheduler.run_forever()
        assert scheduler.get_status() == "stopped"
    assert await outcomes(tmp_path) == ([("success", "all done")], [])


@real
async def test_who_leaves_the_block_meanwhile_waits_until_the_stop_is_recorded(tmp_path):
    scheduler, asked = Scheduler(url(tmp_path), timezone="UTC"), asyncio.Event()

    @scheduler.on_job_due("job")
    async def handler(run):
        await scheduler.stop()
        asked.set()
        await asyncio.sleep(0.01)
        return "all done"

    async with asyncio.timeout(PATIENCE / 2), scheduler:
        await scheduler.add_job("a", Once(PAST))
        await scheduler.start()
        await asked.wait()
    assert await outcomes(tmp_path) == ([("success", "all done")], [])


@real
async def test_other_runs_are_cut_off_where_the_handler_does_not_want_to_wait_for_them(tmp_path):
    scheduler, busy = Scheduler(url(tmp_path), timezone="UTC"), asyncio.Event()

    @scheduler.on_job_due("long")
    async def long(run):
        busy.set()
        await asyncio.Event().wait()

    @scheduler.on_job_due("job")
    async def handler(run):
        await busy.wait()
        await scheduler.stop(wait_for_jobs=False)

    async with asyncio.timeout(PATIENCE / 2), scheduler:
        await scheduler.add_job("long", Once(PAST), kind="long")
        await scheduler.add_job("a", Once(PAST))
        await scheduler.run_forever()
        assert [run.outcome for run in await scheduler.get_run_log("a")] == ["success"]
        assert [run.outcome for run in await scheduler.get_run_log("long")][-1] == "cancelled"


@pytest.mark.parametrize("how", ["stop", "close"])
def test_a_plain_handler_stops_its_scheduler_from_its_thread(tmp_path, how):
    with sync.Scheduler(url(tmp_path), timezone="UTC") as scheduler:

        @scheduler.on_job_due("job")
        def handler(run):
            getattr(scheduler, how)()
            return "all done"

        scheduler.add_job("a", Once(PAST))
        ended = threading.Thread(target=scheduler.run_forever)
        ended.start()
        ended.join(PATIENCE / 2)
        assert not ended.is_alive()
    assert asyncio.run(outcomes(tmp_path)) == ([("success", "all done")], [])


def test_a_scheduler_that_only_its_handler_closes_is_closed_and_may_be_opened_again(tmp_path):
    scheduler, ended = sync.Scheduler(url(tmp_path), timezone="UTC"), []

    @scheduler.on_job_due("job")
    def handler(run):
        scheduler.close()
        ended.append(run.id)

    for number in range(2):
        scheduler.open()
        scheduler.add_job(f"a{number}", Once(PAST))
        scheduler.run_forever()
        for thread in threading.enumerate():
            if thread.name in ("wakeful-close", "wakeful-sync"):
                thread.join(PATIENCE / 2)
        with pytest.raises(SchedulerNotOpen):
            scheduler.list_jobs()
    with scheduler:
        assert [run.outcome for run in scheduler.get_run_log()] == ["success"] * len(ended) == ["success"] * 2
