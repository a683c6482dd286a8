"""A hold on a store that nodes share: no node claims anything once it is stored, and all go on when it ends."""

from __future__ import annotations

import asyncio

import pytest

from tests.service.real_time import PATIENCE, real
from tests.store.postgres_server import postgres_url
from wakeful import Every, NewJob, Once, Scheduler
from wakeful.kernel.context import Rights
from wakeful.triggers.moments import from_ms

ADA = Rights("ada", via="cli")
JOBS = 600


def node(url, name, started):
    scheduler = Scheduler(url, node=name, timezone="UTC")

    async def work(run):
        started.append(run.id)

    scheduler.on_job_due("work", work)
    return scheduler


async def until(condition, seconds=PATIENCE):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what handlers did is no event
            await asyncio.sleep(0.01)


@pytest.mark.promise("X7")
@real
async def test_nothing_is_claimed_on_any_node_once_a_hold_is_stored(monkeypatch):
    url, started = postgres_url(), []
    async with node(url, "one", started) as one, node(url, "two", started) as two, Scheduler(url, node="me") as me:
        monkeypatch.setattr(one._engine, "_batch", 8)
        monkeypatch.setattr(two._engine, "_batch", 8)  # many small claims: a hold comes between two of them
        await asyncio.gather(one.start(), two.start())
        await me.add_jobs([NewJob(f"job-{number}", Once(from_ms(0)), kind="work") for number in range(JOBS)])
        await until(lambda: len(started) > JOBS // 20)
        await me.server_side.hold_all("stop", ADA)
        claimed = await me.read(lambda tx: sum(tx.runs.outcomes(0).values()) + len(tx.runs.all_open()))
        await asyncio.sleep(0.5)
        after = await me.read(lambda tx: sum(tx.runs.outcomes(0).values()) + len(tx.runs.all_open()))
        assert after == claimed < JOBS
        late = node(url, "late", started)
        async with late:
            await late.start()  # a node that joins is held, too
            await asyncio.sleep(0.3)
            assert len(started) == claimed
            await me.server_side.release_all(ADA)
            await until(lambda: len(started) > claimed)
            await until(lambda: len(started) == JOBS)
            await asyncio.gather(*[one_of.stop() for one_of in (one, two, late)])
        assert len(set(started)) == JOBS


@pytest.mark.promise("X7", "X23")
@real
async def test_a_hold_of_another_process_reaches_a_running_engine(tmp_path):
    url, started = f"sqlite:///{tmp_path}/wakeful.db", []
    async with node(url, "one", started) as one:
        await one.start()
        async with Scheduler(url, node="me") as me:
            await me.server_side.hold_all(None, ADA)
            await me.add_job("job", Once(from_ms(0)), kind="work")
            await me.add_job("later", Every("1h"), kind="work")
            await asyncio.sleep(0.2)
            assert started == []
            await me.server_side.release_all(ADA)
            await until(lambda: len(started) == 1)
        await one.stop()
