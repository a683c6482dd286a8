"""The store on PostgreSQL where it differs from SQLite: the schema, values, and what a claim reads and locks."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.real_time import real
from tests.store.opened import Opened
from tests.store.postgres_server import postgres_url, shared_server
from tests.store.samples import NOW, job
from wakeful.clock import SystemClock
from wakeful.errors import InvalidJob, StoreUnreachable, StoreUnusable
from wakeful.store import make_store
from wakeful.store.postgres_session import PostgresSession, _array
from wakeful.store.records import NodeRow, RunDetails
from wakeful.store.schema_version import steps

pytestmark = pytest.mark.promise("X2")


@pytest.fixture
def url():
    return postgres_url()


# -- the schema and the address ---------------------------------------------------------------------------------------


@real
async def test_processes_that_open_a_new_database_at_once_make_its_tables_once(url):
    stores = [make_store(url, SystemClock()) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))
    with psycopg.connect(url) as connection:
        versions = connection.execute("SELECT version FROM wakeful_schema ORDER BY version").fetchall()
    assert versions == [(step.number,) for step in steps()]


@real
async def test_reading_does_not_make_a_store(url):
    with pytest.raises(StoreUnusable, match="There is no store at postgresql://wakeful@"):
        await make_store(url, SystemClock()).open(create=False)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


@real
async def test_another_programs_tables_are_left_alone(url):
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE jobs (id int)")
    with pytest.raises(StoreUnusable, match="another program's table 'jobs'"):
        await make_store(url, SystemClock()).open()


@real
async def test_a_newer_schema_is_refused(url):
    async with Opened(url):
        pass
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO wakeful_schema (version) VALUES (99)")
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'oldest_schema'")
    with pytest.raises(StoreUnusable, match=r"newer Wakeful \(schema 99"):
        await make_store(url, SystemClock()).open()


@real
async def test_a_database_that_cannot_hold_every_text_is_refused():
    with psycopg.connect(shared_server().url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(StoreUnusable, match="encoded in LATIN1"):
        await make_store(shared_server().url("latin"), SystemClock()).open()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:s3cret@127.0.0.1:{port}/nowhere",
        "postgresql://ann:s3cret@127.0.0.1:1/nowhere",
        "postgresql://ann:s3cret@wakeful.invalid/nowhere?connect_timeout=2",
        "postgresql://ann:s3@cret@127.0.0.1/nowhere",
        "postgresql://ann:s3cret/@127.0.0.1/nowhere",
        "postgresql://ann:s3cret@127.0.0.1/nowhere?no_such_setting=1",
        "postgresq://ann:s3cret@127.0.0.1/nowhere",
    ],
)
@real
async def test_no_sentence_shows_the_password(address):
    with pytest.raises((StoreUnreachable, StoreUnusable)) as caught:
        await make_store(address.format(port=shared_server().port), SystemClock()).open()
    assert "cret" not in str(caught.value)
    assert ": " in str(caught.value)  # what happened, and what to do


def test_without_its_driver_one_sentence_says_how_to_get_it():
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from wakeful import Scheduler\n"
        "try: Scheduler('postgresql://localhost/x')\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "A store on PostgreSQL needs its driver: pip install 'wakeful[postgres]'."


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def connection():
    with psycopg.connect(postgres_url(), autocommit=True) as opened:
        yield opened


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)))


@given(st.lists(st.none() | texts | st.sampled_from(["", "NULL", "null", "{}", '"', "\\", ",", " ", "'", "%s"])))
@settings(max_examples=60)
def test_any_text_arrives_as_it_was_given(connection, values):
    assert connection.execute("SELECT %s::text[]", (_array(values),)).fetchone() == (values,)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
@settings(max_examples=60)
def test_any_number_arrives_as_it_was_given(connection, values):
    assert connection.execute("SELECT %s::bigint[]", (_array(values),)).fetchone() == (values,)


@real
async def test_a_text_no_server_takes_is_the_callers_mistake_and_harms_no_other_caller(url):
    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.jobs.add([job(1)]))
        results = await asyncio.gather(
            store.write(lambda tx: tx.runs.detail([RunDetails(1, error="a\0b")])),
            store.write(lambda tx: tx.jobs.add([job(2)])),
            store.write(lambda tx: tx.runs.detail([RunDetails(1, error="\ud800")])),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [InvalidJob, type(None), InvalidJob]
        assert await store.read(lambda tx: tx.jobs.by_id(2)) is not None


# -- plans ------------------------------------------------------------------------------------------------------------


class Planning(PostgresSession):
    """Asks for the plan of every statement before it runs it."""

    plans: list[str]

    def __init__(self, connection, types):
        super().__init__(connection, types, writing=True)
        self.plans = []
        run = connection.execute

        def execute(sql, params=()):
            if sql.lstrip().startswith(("SELECT", "UPDATE", "WITH me")) and "advisory" not in sql:
                self.plans.append("\n".join(line for (line,) in run("EXPLAIN " + sql, params)))
            return run(sql, params)

        self._connection = _With(connection, execute)


class _With:
    def __init__(self, connection, execute):
        self.execute = execute
        self.info = connection.info


@pytest.mark.promise("X22")
@real
async def test_a_node_takes_the_highest_priority_that_no_other_node_has_in_hand(url):
    async with Opened(url) as (store,):
        pairs = [job(number, due_at=NOW, priority=priority) for number, priority in enumerate((0, 9, 9, -9, 0), 1)]
        await store.write(lambda tx: tx.jobs.add(pairs))
        with psycopg.connect(url) as other:
            other.execute("SELECT * FROM job_state WHERE job_id IN (2, 5) FOR UPDATE")
            taken = await store.write(lambda tx: [state.job_id for _, state in tx.jobs.due(NOW, 2)])
            assert taken == [3, 1]
            other.execute("UPDATE job_state SET priority = 100 WHERE job_id = 5")
            other.execute("INSERT INTO priorities (level) VALUES (100)")
            other.commit()
        taken = await store.write(lambda tx: [state.job_id for _, state in tx.jobs.due(NOW, 9)])
        assert taken == [5, 2, 3, 1, 4]


@pytest.mark.promise("X22")
@real
async def test_a_claim_locks_no_more_jobs_than_it_takes(url):
    async with Opened(url) as (store,):
        pairs = [job(number, due_at=NOW, priority=number % 3) for number in range(1, 10)]
        await store.write(lambda tx: tx.jobs.add(pairs))

        def claim(tx):
            taken = [state.job_id for _, state in tx.jobs.due(NOW, 4)]
            with psycopg.connect(url) as other:
                left = other.execute("SELECT job_id FROM job_state ORDER BY 1 FOR UPDATE SKIP LOCKED").fetchall()
            return taken, [number for (number,) in left]

        assert await store.write(claim) == ([2, 5, 8, 1], [3, 4, 6, 7, 9])


@real
async def test_the_hot_statements_find_their_rows_by_key_also_without_statistics(url):
    from wakeful.store.interface import Transaction

    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.jobs.add([job(number, due_at=NOW + number) for number in range(1, 3001)]))
        await store.write(lambda tx: tx.members.join(NodeRow(1, "one", NOW, NOW, None, "{}")))

        def work(tx):
            planning = Planning(tx.jobs._session._connection, store._types)
            asked = Transaction(planning, NOW)
            states = [state for _, state in asked.jobs.due_for(1, NOW + 512, 512, parked=False)[1]]
            assert len(states) == 512
            asked.jobs.save_started(states)
            asked.jobs.save_settled(list(asked.jobs.states([state.job_id for state in states]).values()))
            asked.jobs.next_alarm()
            asked.jobs.requeue_parked("lane", NOW, 5)
            return planning.plans

        plans = await store.write(work)
        assert len(plans) == 7
        for plan in plans:
            assert "Seq Scan" not in plan
            assert "Hash" not in plan
        assert "job_state_due" in plans[0]
