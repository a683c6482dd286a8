"""A PostgreSQL server, connection or answer that goes away: work goes on when it is back, and nothing is done twice."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.service.real_time import real
from tests.store.opened import Opened, waiting
from tests.store.postgres_server import PostgresServer, postgres_url
from tests.store.samples import job
from wakeful.errors import StoreError, StoreUnreachable

pytestmark = pytest.mark.promise("X2")


@pytest.fixture
def url():
    return postgres_url()


@pytest.fixture(scope="module")
def own_server():
    """A server that a test may stop."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@real
async def test_work_goes_on_when_the_server_is_back(own_server):
    async with Opened(own_server.new_database()) as (store,):
        await store.write(lambda tx: tx.jobs.add([job(1)]))
        await store.read(lambda tx: tx.jobs.by_id(1))
        await asyncio.to_thread(own_server.stop, "immediate")
        with pytest.raises(StoreUnreachable, match="cannot be reached"):
            await store.write(lambda tx: tx.jobs.add([job(2)]))
        with pytest.raises(StoreUnreachable, match="cannot be reached"):
            await store.read(lambda tx: tx.jobs.by_id(1))
        await asyncio.to_thread(own_server.start)
        async with asyncio.timeout(120):
            while True:
                try:
                    await store.write(lambda tx: tx.jobs.add([job(3)]))
                    break
                except StoreError:
                    await asyncio.to_thread(lambda: None)
        assert await store.read(lambda tx: sorted(tx.jobs.states([1, 2, 3]))) == [1, 3]


@real
async def test_a_connection_that_was_cut_while_idle_is_not_noticed_by_readers(url):
    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.jobs.add([job(1)]))
        await store.read(lambda tx: tx.jobs.by_id(1))
        with psycopg.connect(url) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert await store.read(lambda tx: tx.jobs.by_id(1)) is not None


@real
async def test_a_commit_whose_answer_is_lost_is_looked_up_and_not_made_twice(own_server):
    url = own_server.new_database()
    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.lanes.add({"lane": 1}))
        with psycopg.connect(url, autocommit=True) as other:
            # The server has committed, and holds back its answer until a standby that does not exist has it too.
            other.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            other.execute("SELECT pg_reload_conf()")
            try:
                tries, pid = 0, None
                while pid is None:  # the server takes up its new setting when it comes round to it
                    tries += 1
                    writing = asyncio.ensure_future(store.write(lambda tx: tx.lanes.add({"lane": 1})))
                    pid = await waiting(other, "SyncRep", unless=writing)
                other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
                async with asyncio.timeout(120):
                    await writing
            finally:
                other.execute("ALTER SYSTEM RESET synchronous_standby_names")
                other.execute("SELECT pg_reload_conf()")
        assert await store.read(lambda tx: tx.lanes.all()) == {"lane": 1 + tries}


@real
async def test_a_pooler_that_forgets_prepared_statements_is_noticed_and_obeyed(url):
    async with Opened(url) as (store,):
        for number in range(1, 9):
            await store.write(lambda tx, number=number: tx.jobs.add([job(number)]))
        await store.write(
            lambda tx: tx.jobs._session._connection.execute("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$")
        )
        await store.write(lambda tx: tx.jobs.add([job(9)]))
        assert len(await store.read(lambda tx: tx.jobs.states(range(10)))) == 9
