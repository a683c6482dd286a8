"""Forked children: they keep nothing that belongs to the parent, and say so when they are to use it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.service.real_time import real
from tests.store.postgres_server import postgres_url
from wakeful import Manual, Scheduler, StoreLocked, sync
from wakeful.surfaces.api.server import bind

pytestmark = pytest.mark.promise("H9", "H11")

#: Runs an engine whose handler works in a pool of forked processes, and is killed then.
POOLED = """
import asyncio, multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from wakeful import Once, Scheduler
from wakeful.surfaces.api.server import bind

def work():
    print(os.getpid(), flush=True)
    sys.stdin.read()

async def main():
    port = bind("127.0.0.1", 0)
    print(port.getsockname()[1], flush=True)
    scheduler = Scheduler(sys.argv[1], node="pooled", timezone="UTC")
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))

    async def handler(run):
        await asyncio.get_running_loop().run_in_executor(pool, work)

    scheduler.on_job_due("job", handler)
    async with scheduler:
        await scheduler.add_job("a", Once(datetime(2020, 1, 1, tzinfo=UTC)))
        await scheduler.start()
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/wakeful.db" if request.param == "sqlite" else postgres_url()


@real
async def test_a_child_that_outlives_its_killed_engine_keeps_neither_the_store_nor_the_port(url):
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", POOLED, url], stdin=pipe, stdout=pipe) as server:  # noqa: ASYNC220
        port, child = [int(await asyncio.to_thread(server.stdout.readline)) for _ in range(2)]
        server.kill()
    try:
        os.kill(child, 0)  # it is still there
        async with Scheduler(url, node="pooled", timezone="UTC") as scheduler:
            await scheduler.start()
            assert [run.outcome for run in await scheduler.get_run_log("a")][-1] == "crashed"
            assert scheduler.is_running()
        bind("127.0.0.1", port).close()
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def forked(act):
    """What an async function returns that a forked child runs, as it says so in words."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with suppress(StopIteration):
                step = act()
                step.send(None)
                os.write(writing, b"it waits")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@real
async def test_a_scheduler_that_was_opened_before_a_fork_says_in_the_child_that_it_cannot_be_used_there(url):
    clear = "SchedulerForked: The scheduler was opened before this process was forked: make and open another one here."
    async with Scheduler(url, timezone="UTC") as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        for act in (
            lambda: scheduler.get_job("a"),
            lambda: scheduler.run_job("a"),
            scheduler.start,
            scheduler.stop,
            scheduler.open,
            scheduler.run_forever,
        ):
            assert forked(act) == clear
        assert forked(scheduler.close) == "", "what follows a with block in a child does no harm"
        assert (await scheduler.get_job("a")).name == "a"
        assert scheduler.is_running()
        async with Scheduler(url, node="other", timezone="UTC") as other:
            if url.startswith("sqlite"):
                with pytest.raises(StoreLocked):
                    await other.start()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_without_await_the_child_hears_the_same_and_does_not_hang(url):
    async def calling(call):
        return call()

    with sync.Scheduler(url, timezone="UTC") as scheduler:
        scheduler.add_job("a", Manual())
        scheduler.start()
        for call in (lambda: scheduler.get_job("a"), scheduler.get_status, scheduler.stop, scheduler.run_forever):
            assert forked(lambda call=call: calling(call)).startswith("SchedulerForked: ")
        assert forked(lambda: calling(scheduler.close)) == ""
        assert scheduler.get_job("a").name == "a"
