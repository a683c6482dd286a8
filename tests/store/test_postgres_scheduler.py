"""Schedulers on PostgreSQL, on the machine's own clock: one node, its next life, and two nodes on one database."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime

import psycopg
import pytest

from tests.service.real_time import Watch, real
from tests.store.postgres_server import postgres_url
from wakeful import Every, NewJob, Once, Scheduler

pytestmark = pytest.mark.promise("X2")

PAST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def url():
    return postgres_url()


def node(url, name, handler, **options):
    scheduler = Scheduler(url, node=name, timezone="UTC", **options)
    scheduler.on_job_due("work", handler)
    return scheduler


def once(count, **options):
    return [NewJob(f"job-{number}", Once(PAST), kind="work", **options) for number in range(count)]


def outcomes(url):
    with psycopg.connect(url) as connection:
        return dict(connection.execute("SELECT outcome, count(*) FROM runs GROUP BY outcome").fetchall())


@real
async def test_a_burst_of_a_thousand_jobs_settles_each_of_them_once(url):
    ran = Counter()

    async def work(run):
        ran[run.job] += 1

    async with node(url, "one", work) as scheduler:
        watch = Watch(scheduler)
        await scheduler.add_jobs(once(1000))
        await scheduler.start()
        await watch.until(lambda events: sum(event.type == "finished" for event in events) >= 1000, 30)
        await scheduler.stop()
    assert set(ran.values()) == {1}
    assert len(ran) == 1000
    assert outcomes(url) == {"success": 1000}


@real
async def test_jobs_are_there_again_after_a_restart_and_go_on(url):
    async def work(run):
        return {"attempt": run.attempt}

    async with node(url, "one", work) as scheduler:
        await scheduler.add_job("hourly", Every("1h"), kind="work", payload={"to": "team"})
        await scheduler.start()
        await scheduler.stop()
    async with node(url, "one", work) as scheduler:
        watch = Watch(scheduler)
        await scheduler.start()
        run_id = await scheduler.run_job("hourly")
        await watch.finished()
        run = await scheduler.get_run(run_id)
        job = await scheduler.get_job("hourly")
        await scheduler.stop()
    assert (run.outcome, run.output, run.reason) == ("success", {"attempt": 1}, "manual")
    assert (job.payload, job.status, job.last_outcome) == ({"to": "team"}, "idle", "success")


@real
async def test_two_nodes_share_a_burst_and_nothing_is_run_or_settled_twice(url):
    ran = Counter()
    by = Counter()

    def handler(name):
        async def work(run):
            ran[run.job] += 1
            by[name] += 1

        return work

    count = 2000
    async with node(url, "one", handler("one")) as one, node(url, "two", handler("two")) as two:
        watches = [Watch(one), Watch(two)]
        await one.add_jobs(once(count))
        await asyncio.gather(one.start(), two.start())
        async with asyncio.timeout(60):
            while sum(event.type == "finished" for watch in watches for event in watch.events) < count:
                changed = [asyncio.ensure_future(watch._changed.wait()) for watch in watches]
                _, waiting = await asyncio.wait(changed, return_when=asyncio.FIRST_COMPLETED)
                for watch in watches:
                    watch._changed.clear()
                for task in waiting:
                    task.cancel()
        await asyncio.gather(one.stop(), two.stop())
    assert len(ran) == count
    assert set(ran.values()) == {1}
    assert set(by) == {"one", "two"}
    assert outcomes(url) == {"success": count}


@real
async def test_a_lane_holds_across_nodes(url):
    inside, most = 0, 0

    async def work(run):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(3):
            await asyncio.to_thread(lambda: None)
        inside -= 1

    count = 60
    async with node(url, "one", work) as one, node(url, "two", work) as two:
        done = asyncio.Event()
        finished = []

        def hear(event):
            if event.type == "finished":
                finished.append(event)
                if len(finished) == count:
                    done.set()

        one.subscribe(hear)
        two.subscribe(hear)
        await one.add_jobs(once(count, lanes={"narrow": 3}))
        await asyncio.gather(one.start(), two.start())
        async with asyncio.timeout(60):
            await done.wait()
        await asyncio.gather(one.stop(), two.stop())
    assert most <= 3
    assert outcomes(url) == {"success": count}


@real
async def test_a_job_added_by_another_process_is_picked_up(url):
    ran = asyncio.Event()

    async def work(run):
        ran.set()

    async with node(url, "one", work) as one, Scheduler(url, node="shell") as other:
        await one.start()
        await other.add_job("from-elsewhere", Once(PAST), kind="work")
        async with asyncio.timeout(120):
            await ran.wait()
        assert other.engine_holder()["node"] == "one"
        await one.stop()
        assert other.engine_holder() is None


@real
async def test_nodes_that_declare_the_same_job_at_once_store_it_once(url):
    def make(name):
        scheduler = Scheduler(url, node=name, timezone="UTC")

        @scheduler.job(Every("1h"), name="nightly")
        async def nightly(run):
            return None

        return scheduler

    async with make("one") as one, make("two") as two, make("three") as three:
        await asyncio.gather(one.start(), two.start(), three.start())
        assert [job.name for job in await one.list_jobs()] == ["nightly"]
        await asyncio.gather(one.stop(), two.stop(), three.stop())
