"""The store on PostgreSQL where it differs from SQLite: others write at the same time, and the server may go away."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.real_time import real
from tests.store.postgres_server import PostgresServer, postgres_url, shared_server
from tests.store.samples import NOW, job
from wakeful.clock import SystemClock
from wakeful.errors import InvalidJob, StoreError, StoreUnreachable, StoreUnusable
from wakeful.store import make_store
from wakeful.store.jobs import LOOK_AGAIN_MS
from wakeful.store.postgres_session import PostgresSession, _array
from wakeful.store.records import RunDetails
from wakeful.store.schema_version import steps

pytestmark = pytest.mark.promise("X2")


class Opened:
    """Stores on one database, closed at the end."""

    def __init__(self, url, count=1):
        self._stores = [make_store(url, SystemClock()) for _ in range(count)]

    async def __aenter__(self):
        for store in self._stores:
            await store.open()
        return self._stores

    async def __aexit__(self, *_):
        for store in self._stores:
            await store.close()


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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
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
async def test_a_text_no_server_takes_is_the_callers_mistake_and_harms_nobody_else(url):
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


# -- others at the same time ------------------------------------------------------------------------------------------


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
            await _waiting(other, "transactionid")
            other.commit()
            found, (definition, state) = await states
        assert found[1].revision == state.revision == 7
        assert definition.kind == "other"  # never a new state beside an old definition


@real
async def test_reading_waits_for_nobody(url):
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
            number = int(tx.journal.get_meta(["count", "also"]).get("count", "0")) + 1
            tx.journal.set_meta({"count": number, "also": number})
            return number

        numbers = await asyncio.gather(*(store.write(count) for _ in range(5) for store in stores))
        assert sorted(numbers) == list(range(1, 21))
        with psycopg.connect(url) as other:
            sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            assert other.execute(sql).fetchone() == (0,)


@real
async def test_whoever_follows_the_events_of_several_nodes_misses_none(url):
    async with Opened(url, 3) as stores:
        seen, last = [], 0
        writing = [
            asyncio.ensure_future(_emit(store, f"stream-{number % 2}", 60)) for number, store in enumerate(stores)
        ]
        while True:
            over = all(task.done() for task in writing)
            after = last
            groups = await stores[0].read(lambda tx: tx.journal.events(after, limit=1000))  # noqa: B023 - awaited here
            seen += [group.id for group in groups]
            last = max(seen, default=0)
            if over:
                break
        assert seen == sorted(seen)
        assert len(seen) == 180
        await asyncio.gather(*writing)


async def _emit(store, stream, count):
    for number in range(count):
        await store.write(lambda tx, number=number: tx.journal.emit(stream, number))


@real
async def test_a_change_is_heard_of_at_once_and_ones_own_is_not(url):
    async with Opened(url, 2) as (here, there):
        heard = asyncio.Event()
        here.on_change(heard.set)
        await here.become_engine({})
        async with asyncio.timeout(10):
            await heard.wait()  # it looks once when it begins to listen
            heard.clear()
            await here.write(lambda tx: tx.jobs.add([job(1, due_at=NOW)]))
            await there.write(lambda tx: tx.jobs.add([job(2)]))  # nothing to look at
            assert not heard.is_set()
            await there.write(lambda tx: tx.jobs.add([job(3, due_at=NOW)]))
            await heard.wait()
        assert await here.changed_elsewhere()


@real
async def test_what_is_due_after_the_next_alarm_wakes_nobody(url):
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
async def test_where_nobody_is_heard_it_looks_by_itself_once_a_second(url):
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


# -- a server that goes away ------------------------------------------------------------------------------------------


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
        async with asyncio.timeout(20):
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
                    pid = await _waiting(other, "SyncRep", unless=writing)
                other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
                async with asyncio.timeout(20):
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


async def _waiting(connection, event, unless=None):
    """Wait until another backend of this database waits for that; its process, or None if `unless` is done first."""
    sql = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = %s "
        "AND pid <> pg_backend_pid()"
    )
    async with asyncio.timeout(20):
        while not (found := await asyncio.to_thread(lambda: connection.execute(sql, (event,)).fetchone())):
            if unless is not None and unless.done():
                return None
    return found[0]


# -- plans ------------------------------------------------------------------------------------------------------------


class Planning(PostgresSession):
    """Asks for the plan of every statement before it runs it."""

    plans: list[str]

    def __init__(self, connection, types):
        super().__init__(connection, types, writing=True)
        self.plans = []
        run = connection.execute

        def execute(sql, params=()):
            if sql.lstrip().startswith(("SELECT", "UPDATE")) and "advisory" not in sql:
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

        def work(tx):
            planning = Planning(tx.jobs._session._connection, store._types)
            asked = Transaction(planning, NOW)
            states = [state for _, state in asked.jobs.due(NOW + 512, 512)]
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
