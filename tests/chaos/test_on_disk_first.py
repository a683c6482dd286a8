"""What is on disk before it is acted upon or reported: the store's files are copied at that very moment and read.

A copy taken while the process lives is what a crash of the process would leave. That the files were also forced to the
disk is seen at the system calls, where there is a way to trace them (Linux); and the setting that makes it so is read
from the connection that writes.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from datetime import UTC, datetime

import pytest

from tests.chaos import system_calls
from wakeful import Once, Scheduler


async def copy_of(store, folder):
    """A scheduler on what would be found after a crash right now."""
    folder.mkdir()
    for path in store.parent.glob(store.name + "*"):
        if path.is_file() and not path.name.endswith("-shm"):  # the index is made anew from the log
            shutil.copy(path, folder / path.name)
    scheduler = Scheduler(f"sqlite:///{folder / store.name}")
    await scheduler.open(create=False)
    return scheduler


@pytest.mark.promise("H12")
def test_jobs_runs_and_results_are_on_disk_before_they_are_acted_on_or_reported(tmp_path):
    store = tmp_path / "wakeful.db"
    found = {}

    async def main():
        ended = asyncio.Event()
        async with Scheduler(f"sqlite:///{store}") as scheduler:

            @scheduler.on_job_due("work")
            async def work(run):
                left = await copy_of(store, tmp_path / "while-it-runs")
                found["run"] = await left.get_run(run.id)
                await left.close()

            scheduler.subscribe(lambda event: ended.set() if "finished" in str(event) else None, "run")
            await scheduler.start()
            await scheduler.add_job("once", Once(datetime.now(UTC)), kind="work")
            left = await copy_of(store, tmp_path / "when-added")
            found["job"] = await left.get_job("once")
            await left.close()
            async with asyncio.timeout(30):
                await ended.wait()
            left = await copy_of(store, tmp_path / "at-the-event-of-its-end")
            found["end"] = (await left.get_run_log("once"))[0]
            await left.close()

    asyncio.run(main())
    assert found["job"].name == "once"
    assert found["run"].status == "active"
    assert found["end"].outcome == "success"


@pytest.mark.promise("H12")
def test_the_connection_that_writes_forces_every_commit_to_the_disk(tmp_path):
    async def main():
        async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler:
            await scheduler.start()
            return await scheduler._store.write(
                lambda tx: (
                    tx.jobs._session.rows("PRAGMA synchronous")[0][0],
                    tx.jobs._session.rows("PRAGMA journal_mode")[0][0],
                )
            )

    assert asyncio.run(main()) == (2, "wal")


if sys.platform == "linux":

    @pytest.mark.promise("H12")
    def test_nothing_is_reported_before_it_is_forced_to_the_disk(tmp_path):
        assert system_calls.check(tmp_path) == []

    @pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
    def test_a_store_that_forces_less_to_the_disk_is_noticed_at_the_system_calls(tmp_path, synchronous):
        wrong = system_calls.check(tmp_path, synchronous=synchronous)
        assert {line.partition(" was reported ")[0] for line in wrong} == {"'start'", "'stored'", "'settled'"}
