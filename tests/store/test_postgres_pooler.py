"""Behind a pooler in transaction mode, which gives each transaction another server connection."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import psycopg
import pytest

from tests.service.real_time import PATIENCE, real
from tests.store.pooler import TransactionPooler
from tests.store.postgres_server import postgres_url, shared_server
from tests.store.samples import NOW, job
from wakeful import NewJob, Once, Scheduler
from wakeful.clock import SystemClock
from wakeful.store import make_store

pytestmark = pytest.mark.promise("X2")

PAST = datetime(2020, 1, 1, tzinfo=UTC)
PREPARED = "SELECT count(*) FROM pg_prepared_statements"


@pytest.fixture
def pooler():
    made = TransactionPooler(shared_server().port)
    yield made
    made.close()


@pytest.fixture
def pooled_url(pooler):
    """An empty database, reached through the pooler."""
    return postgres_url().replace(f":{shared_server().port}/", f":{pooler.port}/")


def _look(number):
    def work(tx):
        found = (
            tx.jobs.by_id(number),
            tx.jobs.by_name(f"job-{number}"),
            tx.jobs.states([number]),
            tx.runs.log(number, 5),
        )
        return [pair[0].id for pair in found[:2]], sorted(found[2]), found[3]

    return work


@real
async def test_every_read_is_answered_and_with_what_was_asked_for(pooled_url):
    store = make_store(pooled_url, SystemClock())
    await store.open()
    await store.write(lambda tx: tx.jobs.add([job(number, due_at=NOW) for number in range(1, 61)]))
    for number in range(1, 61):
        assert await store.read(_look(number)) == ([number, number], [number], [])
    found = await asyncio.gather(*(store.read(_look(number)) for number in range(1, 61)))
    assert [ids for ids, _, _ in found] == [[number, number] for number in range(1, 61)]
    assert await store.read(_prepared) == 0
    await store.close()


def _prepared(tx):
    return int(tx.jobs._session.rows(PREPARED)[0][0])


@real
async def test_two_programs_that_share_server_connections_never_run_each_others_statements(pooled_url):
    """Both prepare under the same names: what one prepared must not be what the other one runs."""
    stores = [make_store(pooled_url, SystemClock()) for _ in range(2)]
    for store in stores:
        await store.open()
    for number in range(1, 31):
        await stores[0].write(lambda tx, number=number: tx.jobs.add([job(number)]))
        await stores[1].write(lambda tx, number=number: tx.lanes.add({f"lane-{number}": number}))
        await stores[1].read(lambda tx, number=number: tx.lanes.used([f"lane-{number}"]))
        assert await stores[0].read(_look(number)) == ([number, number], [number], [])
    assert await stores[0].read(lambda tx: tx.lanes.all()) == {f"lane-{number}": number for number in range(1, 31)}
    for store in stores:
        assert await store.write(_prepared) == 0
        await store.close()


@real
async def test_without_a_pooler_statements_are_prepared_by_readers_and_the_writer():
    store = make_store(postgres_url(), SystemClock())
    await store.open()
    for number in range(1, 10):
        await store.write(lambda tx, number=number: tx.jobs.add([job(number)]))
        await store.read(_look(number))
    assert await store.write(_prepared) > 0
    assert await store.read(_prepared) > 0
    await store.close()


def _settings(tx):
    names = ("enable_seqscan", "plan_cache_mode", "lock_timeout")
    return [tx.jobs._session.rows(f"SELECT current_setting('{name}')")[0][0] for name in names]


@real
@pytest.mark.parametrize("shows_a_process", [False, True])
async def test_every_transaction_has_its_settings_whichever_process_runs_it(shows_a_process):
    pooler = TransactionPooler(shared_server().port, shows_a_process=shows_a_process)
    direct = postgres_url()
    for url in (direct, direct.replace(f":{shared_server().port}/", f":{pooler.port}/")):
        store = make_store(url, SystemClock())
        await store.open()
        if url != direct:
            pooler.begin_with_first()  # on which the writer's connection sets up its session, if it takes it for ours
        for _ in range(5):
            assert await store.write(_settings) == ["off", "force_generic_plan", "10s"]
        await store.close()
    pooler.close()


@real
async def test_where_the_session_is_ours_its_settings_are_made_once(monkeypatch):
    """Made with every BEGIN, they delay the start of every job."""
    store = make_store(postgres_url(), SystemClock())
    await store.open()
    await store.write(_settings)
    sent, run = [], psycopg.Connection.execute
    monkeypatch.setattr(
        psycopg.Connection,
        "execute",
        lambda self, sql, *given, **more: sent.append(sql) or run(self, sql, *given, **more),
    )
    assert await store.write(_settings) == ["off", "force_generic_plan", "10s"]
    await store.close()
    assert not [sql for sql in sent if "set_config" in sql]


@real
async def test_a_reader_whose_prepared_statements_are_gone_asks_again():
    store = make_store(postgres_url(), SystemClock())
    await store.open()
    await store.write(lambda tx: tx.jobs.add([job(1)]))
    for _ in range(9):
        await store.read(_look(1))

    def forget(tx):
        tx.jobs._session._connection.execute("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$")

    await store.read(forget)
    assert await store.read(_look(1)) == ([1, 1], [1], [])
    await store.close()


@real
async def test_nodes_behind_a_pooler_run_every_job_once_and_leave_no_setting_behind(pooler, pooled_url):
    nodes = [Scheduler(pooled_url, node=name, timezone="UTC") for name in ("north", "south")]
    started, ended, all_ended = [], [], asyncio.Event()

    def hear(event):
        ended.extend([event] if event.type == "finished" else [])
        if len(ended) == 40:
            all_ended.set()

    for node in nodes:
        node.on_job_due("work", lambda run: started.append(run.job))
        node.subscribe(hear)
        await node.open()
        await node.start()
    jobs = [NewJob(f"job-{number}", Once(PAST), kind="work", lanes={"some": 3}) for number in range(40)]
    await nodes[0].add_jobs(jobs)
    async with asyncio.timeout(PATIENCE):
        await all_ended.wait()
    for node in nodes:
        assert len([run for run in await node.get_run_log(limit=100) if run.outcome == "success"]) == 40
        assert node.get_state().trouble is None
        await node.stop()
        await node.close()
    assert sorted(started) == sorted(f"job-{number}" for number in range(40))
    with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as anybody:
        for _ in range(6):
            left = "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name IN ('enable_seqscan', 'jit')"
            assert anybody.execute(left).fetchone() == (0,)
