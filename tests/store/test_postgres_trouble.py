"""A server in trouble under a node that works: it waits, keeps what it has, says so once, and goes on by itself.

In each test a handler is running when the trouble begins and ends in the middle of it, and another job waits for its
place: nothing is started until the server is well again, and nothing that ended is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import threading
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from tests.chaos.proxy import Proxy
from tests.service.real_time import PATIENCE, Watch, real
from tests.store.postgres_server import PostgresServer
from wakeful import NewJob, Once, Scheduler

pytestmark = pytest.mark.promise("X2")

PAST = datetime(2020, 1, 1, tzinfo=UTC)
BEGINS, OVER = "database unavailable", "database available again"
CONNECTIONS, KEPT = 25, 3  # of the server, and of those the ones kept for administrators
TERMINATE = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'wakeful'"


@pytest.fixture(scope="module")
def server():
    server = PostgresServer()
    server.start(max_connections=CONNECTIONS)
    with psycopg.connect(server.url(), autocommit=True) as admin:
        admin.execute("CREATE ROLE plain LOGIN; CREATE ROLE filler LOGIN")  # neither is an administrator
    yield server
    server.remove()


@pytest.fixture
def url(server):
    address = server.new_database()
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute("GRANT CREATE ON SCHEMA public TO plain")
    return address.replace("wakeful@", "plain@")


class Heard(logging.Handler):
    """What the engine logs, and the tasks that wait for it."""

    def __init__(self):
        super().__init__()
        self.said = []
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def emit(self, record):
        self.said.append(record.getMessage())
        self._loop.call_soon_threadsafe(self._changed.set)

    def count(self, text):
        return sum(text in said for said in self.said)

    async def until(self, text):
        async with asyncio.timeout(PATIENCE):
            while not self.count(text):
                self._changed.clear()
                await self._changed.wait()


class AtWork:
    """A node with a job that runs until it is let go, and one that waits for its place."""

    def __init__(self, url):
        self.scheduler = Scheduler(url, node="one", timezone="UTC")
        self.scheduler.on_job_due("work", self._work)
        self.started = []
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()

    async def _work(self, run):
        self.started.append((run.job, run.attempt))
        self.begun.set()
        await self.let_go.wait()
        return run.job

    async def __aenter__(self):
        self.heard = Heard()
        logging.getLogger("wakeful.engine").addHandler(self.heard)
        await self.scheduler.open()
        self.watch = Watch(self.scheduler)
        jobs = [NewJob(name, Once(PAST), kind="work", lanes={"one": 1}) for name in ("first", "second")]
        await self.scheduler.add_jobs(jobs)
        await self.scheduler.start()
        async with asyncio.timeout(PATIENCE):
            await self.begun.wait()
        return self

    async def __aexit__(self, *_):
        self.let_go.set()
        await self.scheduler.stop()
        await self.scheduler.close()
        logging.getLogger("wakeful.engine").removeHandler(self.heard)

    async def ends_in_trouble(self, sentence):
        """The running handler ends; that cannot be stored, and so is said, once and when asked."""
        self.let_go.set()
        await self.heard.until(BEGINS)
        async with asyncio.timeout(PATIENCE):
            while not re.search(sentence, self.scheduler.get_state().trouble or ""):  # the first may be another
                await asyncio.to_thread(threading.Event().wait, 0.02)
        assert len(self.started) == 1

    async def gets_well(self):
        """Everything that ended is stored, and what waited has run, once."""
        await self.heard.until(OVER)
        await self.all_is_done()
        assert (self.heard.count(BEGINS), self.heard.count(OVER)) == (1, 1)
        assert self.scheduler.get_state().trouble is None

    async def all_is_done(self, seconds=PATIENCE):
        await self.watch.until(lambda events: sum(event.type == "finished" for event in events) >= 2, seconds)
        assert sorted(self.started) == [("first", 1), ("second", 1)]
        runs = await self.scheduler.get_run_log()
        assert sorted((run.job, run.outcome, run.output) for run in runs) == [
            ("first", "success", "first"),
            ("second", "success", "second"),
        ]
        assert all(job.enabled is False and not job.last_error for job in await self.scheduler.list_jobs())


@pytest.mark.parametrize("mode", ["fast", "immediate"])
@real
async def test_a_restart_of_the_server_delays_work_and_loses_none(server, url, mode):
    async with AtWork(url) as node:
        await asyncio.to_thread(server.stop, mode)
        try:
            await node.ends_in_trouble("cannot be reached")
        finally:
            await asyncio.to_thread(server.start, max_connections=CONNECTIONS)
        await node.gets_well()


@real
async def test_a_server_without_a_free_connection_is_waited_for(server, url):
    async with AtWork(url) as node:
        with contextlib.ExitStack() as taken:
            await asyncio.to_thread(_take_all, server, taken)
            await node.ends_in_trouble("takes no more connections")
        await node.gets_well()


def _take_all(server, taken):
    """Use up every connection that anybody but an administrator may have, those of the node included."""
    admin = taken.enter_context(psycopg.connect(server.url(), autocommit=True))
    admin.execute("ALTER ROLE plain CONNECTION LIMIT 0")  # while we take its places, the node must not be faster
    while admin.execute(TERMINATE).fetchall():
        pass
    left = CONNECTIONS - KEPT - 1  # the last one is the administrator's
    while left:
        with contextlib.suppress(psycopg.OperationalError):  # the node, just being refused, takes a place for a moment
            taken.enter_context(psycopg.connect(server.url(), user="filler"))
            left -= 1
    admin.execute("ALTER ROLE plain CONNECTION LIMIT -1")


@real
async def test_a_server_that_became_a_standby_is_waited_for_until_it_is_promoted(server, url):
    async with AtWork(url) as node:
        await asyncio.to_thread(_restart_as_standby, server)
        try:
            await node.ends_in_trouble("cannot be written|during recovery")
        finally:
            with psycopg.connect(server.url(), autocommit=True) as admin:
                admin.execute("SELECT pg_promote()")
        await node.gets_well()


def _restart_as_standby(server):
    server.stop()
    (Path(server.folder) / "data" / "standby.signal").touch(mode=0o644)
    server.start(max_connections=CONNECTIONS)


@real
async def test_a_database_that_is_read_only_by_default_is_written_all_the_same(server, url):
    async with AtWork(url) as node:
        with psycopg.connect(server.url(), autocommit=True) as admin:
            name = url.rpartition("/")[2]
            admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            admin.execute(TERMINATE)
        node.let_go.set()
        await node.all_is_done()


@real
async def test_rights_that_are_taken_away_and_given_back_lose_nothing(server, url):
    async with AtWork(url) as node:
        with psycopg.connect(server.url(url.rpartition("/")[2]), autocommit=True) as admin:
            admin.execute("ALTER TABLE runs OWNER TO wakeful")
            await node.ends_in_trouble("may not")
            admin.execute("ALTER TABLE runs OWNER TO plain")
        await node.gets_well()


@pytest.mark.parametrize("delay", [0.02, 0.5], ids=["slow", "very slow"])
@real
async def test_a_slow_way_to_the_server_is_no_trouble(server, url, delay):
    way = Proxy(server.port)
    try:
        async with AtWork(url.replace(f":{server.port}/", f":{way.port}/")) as node:
            way.delay(delay)
            node.let_go.set()
            await node.all_is_done(PATIENCE + 300 * delay)
            assert node.heard.count(BEGINS) == 0
            way.delay(0)
    finally:
        way.close()


@real
async def test_a_lock_that_is_held_for_a_while_is_waited_for(server, url):
    async with AtWork(url) as node:
        with psycopg.connect(server.url(url.rpartition("/")[2])) as other:
            other.execute("LOCK TABLE job_state IN ACCESS EXCLUSIVE MODE")
            node.let_go.set()
            await asyncio.to_thread(_until_a_session_waits, server)
            assert len(node.started) == 1
        await node.all_is_done()
        assert node.heard.count(BEGINS) == 0


def _until_a_session_waits(server):
    with psycopg.connect(server.url(), autocommit=True) as admin:
        for _ in range(PATIENCE * 100):
            waiting = admin.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if waiting.fetchone()[0]:
                return
            admin.execute("SELECT pg_sleep(0.01)")
    pytest.fail("no session waited for the lock")
