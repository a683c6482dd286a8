"""Several processes on one PostgreSQL database at the same time: each sees what it must, and none loses anything."""

from __future__ import annotations

import asyncio
import itertools

import psycopg
import pytest

from tests.service.real_time import real
from tests.store.opened import Opened, waiting
from tests.store.postgres_server import postgres_url
from tests.store.samples import NOW, job
from wakeful.clock import SystemClock
from wakeful.store import make_store
from wakeful.store.jobs import LOOK_AGAIN_MS

pytestmark = pytest.mark.promise("X2")


@pytest.fixture
def url():
    return postgres_url()


@real
async def test_what_another_node_is_claiming_is_passed_over_and_asked_for_again_shortly(url):
    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.jobs.add([job(number, due_at=NOW) for number in (1, 2, 3)]))

        def claim(tx):
            return [state.job_id for _, state in tx.jobs.due(NOW + 10, 10)], tx.jobs.next_alarm()

        with psycopg.connect(url) as other:
            other.execute("SELECT * FROM job_state WHERE job_id = 2 FOR UPDATE")
            found, alarm = await store.write(claim)
        assert found == [1, 3]
        assert alarm == NOW + 10 + LOOK_AGAIN_MS


@real
async def test_a_decision_waits_for_the_one_before_it_and_sees_what_it_wrote(url):
    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.jobs.add([job(1), job(2)]))
        with psycopg.connect(url) as other:
            other.execute("UPDATE job_state SET revision = 7 WHERE job_id = 1")
            other.execute("UPDATE jobs SET kind = 'other' WHERE id = 1")
            states = asyncio.ensure_future(store.write(lambda tx: (tx.jobs.states([2, 1]), tx.jobs.by_id(1))))
            await waiting(other, "transactionid")
            other.commit()
            found, (definition, state) = await states
        assert found[1].revision == state.revision == 7
        assert definition.kind == "other"  # never a new state beside an old definition


@real
async def test_reading_does_not_wait_for_writers(url):
    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.jobs.add([job(1)]))
        with psycopg.connect(url) as other:
            other.execute("UPDATE job_state SET revision = 7 WHERE job_id = 1")
            found = await store.read(lambda tx: (tx.jobs.states([1]), tx.lanes.used(["x"]), tx.jobs.by_id(1)))
        assert found[0][1].revision == 1


@real
async def test_one_name_given_twice_at_the_same_moment_is_one_job(url):
    async with Opened(url, 2) as stores:

        def add(number):
            def work(tx):
                return "taken" if tx.jobs.names(["same"]) else tx.jobs.add([job(number, "same")])

            return work

        for _ in range(10):
            said = await asyncio.gather(stores[0].write(add(1)), stores[1].write(add(2)))
            assert sorted(map(str, said)) == ["None", "taken"]
            await stores[0].write(lambda tx: tx.jobs.forget([1, 2]))


@real
async def test_nodes_that_count_on_from_the_same_fact_never_get_the_same_number(url):
    async with Opened(url, 4) as stores:

        def count(tx):
            number = int(tx.facts.of(["count", "also"]).get("count", "0")) + 1
            tx.facts.put({"count": number, "also": number})
            return number

        numbers = await asyncio.gather(*(store.write(count) for _ in range(5) for store in stores))
        assert sorted(numbers) == list(range(1, 21))
        with psycopg.connect(url) as other:
            sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            assert other.execute(sql).fetchone() == (0,)


@real
async def test_a_reader_of_the_events_of_several_nodes_misses_none(url):
    async with Opened(url, 3) as stores:
        seen, last = [], 0
        writing = [
            asyncio.ensure_future(_emit(store, f"stream-{number % 2}", 60)) for number, store in enumerate(stores)
        ]
        while True:
            over = all(task.done() for task in writing)
            after = last
            groups = await stores[0].read(lambda tx: tx.events.after(after, limit=1000))  # noqa: B023 - awaited here
            seen += [group.id for group in groups]
            last = max(seen, default=0)
            if over:
                break
        assert seen == sorted(seen)
        assert len(seen) == 180
        await asyncio.gather(*writing)


async def _emit(store, stream, count):
    for number in range(count):
        await store.write(lambda tx, number=number: tx.events.emit(stream, number))


@real
async def test_a_change_is_heard_of_at_once_and_ones_own_is_not(url):
    async with Opened(url, 2) as (here, there):
        heard = asyncio.Event()
        here.on_change(heard.set)
        await here.become_engine({})
        async with asyncio.timeout(120):
            await heard.wait()  # it looks once when it begins to listen
            heard.clear()
            await here.write(lambda tx: tx.jobs.add([job(1, due_at=NOW)]))
            await there.write(lambda tx: tx.jobs.add([job(2)]))  # nothing to look at
            assert not heard.is_set()
            await there.write(lambda tx: tx.jobs.add([job(3, due_at=NOW)]))
            await heard.wait()
        assert await here.changed_elsewhere()


@real
async def test_what_is_due_after_the_next_alarm_wakes_no_node(url):
    async with Opened(url) as (store,):
        numbers, hour, now = itertools.count(1), 3_600_000, store.clock.now()

        def add(due_at):
            def work(tx):
                tx.jobs.add([job(next(numbers), due_at=due_at)])
                return tx.jobs._session.announced

            return store.write(work)

        assert await add(now + 2 * hour)
        assert not await add(now + 9 * hour)
        assert await add(now + hour)
        assert not await add(now + hour)
        assert await add(now)
        assert await add(now + 1000)  # so near that it is not left to chance
        assert not await add(None)


@real
async def test_without_notifications_it_looks_by_itself_once_a_second(url):
    clock = SteppedClock()
    store = make_store(url, clock)
    await store.open()
    assert await store.changed_elsewhere()
    assert not await store.changed_elsewhere()
    clock.passed += 1000
    assert await store.changed_elsewhere()
    await store.close()


class SteppedClock(SystemClock):
    passed = 1_000_000

    def boot(self):
        return self.passed

    def boot_us(self):
        return self.passed * 1000
