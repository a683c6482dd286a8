"""Each way in which a PostgreSQL server refuses is reported as what it is, with what to do about it."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import psycopg
import pytest

from tests.service.real_time import real
from tests.store.postgres_server import PostgresServer
from tests.store.samples import job
from wakeful.clock import SystemClock
from wakeful.errors import StoreLocked, StoreUnreachable, StoreUnusable
from wakeful.store import make_store
from wakeful.store.postgres_errors import lost

pytestmark = pytest.mark.promise("X2")


@pytest.fixture(scope="module")
def server():
    """A server whose settings a test may change."""
    made = PostgresServer()
    made.start()
    yield made
    made.remove()


@pytest.fixture
def url(server):
    return server.new_database()


async def opened(url):
    store = make_store(url, SystemClock())
    await store.open()
    return store


def administer(url, *statements):
    with psycopg.connect(url, autocommit=True) as admin:
        for statement in statements:
            admin.execute(statement)


async def refusal(url, family):
    """What opening a store there says."""
    with pytest.raises(family) as caught:
        await opened(url)
    assert type(caught.value) is family
    return str(caught.value)


# -- statements -------------------------------------------------------------------------------------------------------


def sleep(tx):
    tx.jobs._session.rows("SELECT pg_sleep(600)")


@pytest.mark.parametrize("how", ["read", "write"])
@real
async def test_a_statement_timeout_is_called_a_timeout_and_not_a_lock(url, how):
    store = await opened(url)

    def work(tx):
        tx.jobs._session.rows("SELECT set_config('statement_timeout', '10ms', true)")
        sleep(tx)

    with pytest.raises(StoreUnreachable, match=r"canceled a statement .*statement timeout.*: check its load") as caught:
        await getattr(store, how)(work)
    assert "lock" not in str(caught.value)
    assert await store.read(lambda tx: tx.jobs.by_id(1)) is None
    await store.close()


@real
async def test_a_statement_that_an_administrator_cancels_is_said_to_be_canceled(url):
    store = await opened(url)
    sleeping = asyncio.ensure_future(store.write(sleep))
    with psycopg.connect(url, autocommit=True) as admin:
        find = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
        async with asyncio.timeout(120):
            while not (found := await asyncio.to_thread(lambda: admin.execute(find).fetchone())):
                pass
        admin.execute("SELECT pg_cancel_backend(%s)", found)
    with pytest.raises(StoreUnreachable, match=r"canceled a statement .*user request"):
        await sleeping
    await store.close()


@real
async def test_a_lock_that_is_held_for_too_long_is_called_a_lock(url):
    store = await opened(url)

    def work(tx):
        tx.jobs._session.rows("SELECT set_config('lock_timeout', '10ms', true)")
        tx.jobs.add([job(1)])

    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreLocked, match="locked by another process"):
            await store.write(work)
    await store.close()


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout"])
@real
async def test_a_connection_that_the_server_ends_by_a_limit_is_replaced_and_the_limit_named(server, url, setting):
    store = await opened(url)
    with psycopg.connect(url) as other:
        if other.info.server_version < 170000 and setting == "transaction_timeout":
            return  # no such limit

    def work(tx):
        tx.jobs._session.rows(f"SELECT set_config('{setting}', '20ms', true)")
        for _ in range(200):  # a server that is busy looks at its limits later
            assert not threading.Event().wait(0.3)
            tx.jobs._session.rows("SELECT 1")

    with pytest.raises(StoreUnreachable, match=r"ended the connection \(terminating connection due to .*timeout\)"):
        await store.write(work)
    await store.write(lambda tx: tx.jobs.add([job(1)]))
    await store.close()


# -- reading and writing ----------------------------------------------------------------------------------------------


@real
async def test_a_store_is_made_where_transactions_only_read_by_default(url):
    name = url.rpartition("/")[2]
    administer(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store = await opened(url)
    await store.write(lambda tx: tx.jobs.add([job(1)]))
    assert await store.read(lambda tx: tx.jobs.by_id(1)) == job(1)
    await store.close()


@real
async def test_a_read_only_default_that_the_address_insists_on_is_named_and_not_called_a_standby(url):
    name = url.rpartition("/")[2]
    administer(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    said = await refusal(url + "?target_session_attrs=read-write", StoreUnreachable)
    assert "does not accept writes (session is read-only)" in said
    assert "default_transaction_read_only" in said
    assert "standby" not in said


@real
async def test_a_standby_is_called_a_standby(server, url):
    store = await opened(url)
    await asyncio.to_thread(server.stop)
    signal = Path(server.folder) / "data" / "standby.signal"
    signal.touch(mode=0o644)
    await asyncio.to_thread(server.start)
    try:
        with pytest.raises(StoreUnreachable, match=r"cannot be reached|is a standby"):
            await store.write(lambda tx: tx.jobs.add([job(1)]))  # over the connection that the restart broke
        another = await opened(url)
        with pytest.raises(StoreUnreachable, match="is a standby and cannot be written: connect to the primary"):
            await another.write(lambda tx: tx.jobs.add([job(1)]))
        await another.close()
    finally:
        administer(server.url(), "SELECT pg_promote()")
    await store.close()


# -- the way there ----------------------------------------------------------------------------------------------------


@real
async def test_a_server_without_tls_is_not_said_to_be_unreachable(url):
    said = await refusal(url + "?sslmode=require", StoreUnusable)
    assert said.startswith("The TLS connection to 127.0.0.1")
    assert "server does not support SSL" in said
    assert "check sslmode" in said


@real
async def test_a_failed_handshake_is_reported_as_a_matter_of_tls():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_agree_and_talk_nonsense, args=(listener,))
        thread.start()
        said = await refusal(f"postgresql://ann@127.0.0.1:{listener.getsockname()[1]}/x?sslmode=require", StoreUnusable)
        thread.join()
    assert said.startswith("The TLS connection to 127.0.0.1")


def _agree_and_talk_nonsense(listener):
    client, _ = listener.accept()
    with client:
        client.recv(8)
        client.sendall(b"S")
        client.recv(4096)
        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("words", ["SSL connection has been closed unexpectedly", "SSL SYSCALL error: EOF detected"])
def test_a_tls_connection_that_breaks_is_a_lost_connection(words):
    from wakeful.store.postgres_address import PostgresAddress
    from wakeful.store.postgres_errors import explain

    error = psycopg.OperationalError(words)
    assert lost(error)
    assert "cannot be reached" in str(explain(error, PostgresAddress("postgresql://ann@db/x")))


@real
async def test_a_server_that_asks_for_tls_says_so(server, url):
    rules = Path(server.folder) / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("hostssl all wakeful 127.0.0.1/32 trust\nhost all ann 127.0.0.1/32 trust\n")
    administer_after = "SELECT pg_reload_conf()"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE ROLE ann LOGIN SUPERUSER")
        admin.execute(administer_after)
        try:
            while _lets_in(url):
                pass
            said = await refusal(url, StoreUnusable)
        finally:
            rules.write_text(before)
            admin.execute(administer_after)
            while not _lets_in(url):
                pass
    assert "no pg_hba.conf entry" in said
    assert "sslmode=require" in said
    assert "password" not in said


def _lets_in(url):
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


# -- the address ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "hint"),
    [("sslmod=require", "did you mean sslmode?"), ("conect_timeout=3", "did you mean connect_timeout?")],
)
@real
async def test_a_misspelt_parameter_of_the_address_is_answered_with_the_right_name(url, given, hint):
    said = await refusal(f"{url}?{given}", StoreUnusable)
    assert said == f"The store's address has a parameter that PostgreSQL does not know: {hint}"


@real
async def test_a_piece_of_the_password_that_looks_like_a_parameter_is_not_repeated():
    said = await refusal("postgresql://ann:1/x?s3cret=x@127.0.0.1/nowhere", StoreUnusable)
    assert "cret" not in said
    assert "%2F" in said


@pytest.mark.parametrize(
    "given",
    ["sslmode=requird", "keepalives_idle=soon", "target_session_attrs=writable", "options=-c%20serch_path%3Dx",
     "options=-c%20statement_timeout%3Dsoon"],
)  # fmt: skip
@real
async def test_a_wrong_value_of_a_parameter_is_reported_as_that(url, given):
    said = await refusal(f"{url}?{given}", StoreUnusable)
    assert said.startswith("A parameter in the address of the store is wrong (")
    assert said.endswith("): correct it.")
