"""Reaching a PostgreSQL database as a store: is it there, is it ours, may we write, and what its errors mean.

Every way in which a server can be wrong ends in one sentence that names it and says what to do. No sentence ever
shows the password.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg.types.numeric import Int8Dumper

from wakeful.clock import SharedClock
from wakeful.errors import StoreMissing, StoreUnusable
from wakeful.store.nodes import LEASE_MS, NodeVerbs
from wakeful.store.postgres_address import PostgresAddress
from wakeful.store.postgres_errors import explain
from wakeful.store.postgres_session import LOCK_SPACE, PostgresSession, Types, lock_number
from wakeful.store.process_identity import forget, is_dead, on_fork
from wakeful.store.schema_version import (
    DOMAINS_KEY,
    OLDEST_KEY,
    WAKEFUL,
    Living,
    Stored,
    refuse_contracting,
    refuse_newer,
    steps,
)

log = logging.getLogger("wakeful.store")
OLDEST_SERVER = 130_000  # pg_current_xact_id
PREPARED = 200
PREPARE_AFTER = 5  # times a statement is sent
SCHEMA_TABLE = "wakeful_schema"
_FOR_US = "-- postgresql: "  # begins a line of a script that other databases take for a comment
MIGRATION_TRIES, MIGRATION_WAIT = 5, "5s"


def connect(address: PostgresAddress) -> psycopg.Connection[Any]:
    """A connection on which we begin and end transactions ourselves."""
    try:
        connection = psycopg.connect(**address.settings, autocommit=True)
    except (psycopg.Error, UnicodeError) as error:
        raise explain(error, address) from error
    on_fork(connection, _drop)
    # One type for every number: otherwise a statement is planned again for each size of its parameters.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.prepared_max = PREPARED
    connection.prepare_threshold = None  # until a transaction says which server process it runs on
    return connection


def _drop(connection: psycopg.Connection[Any]) -> None:
    """In a forked child: the connection is the parent's, and the server must not even hear that we close our copy."""
    if not connection.closed:
        forget(connection.fileno())


def check_pooler(connection: psycopg.Connection[Any], backend: int) -> bool:
    """Prepare statements only on a server process of our own; whether it is.

    `backend` is the process that runs the transaction just begun. Behind a pooler it is not the one the connection was
    made to: transactions of many clients share it, the driver gives their prepared statements the same names, and one
    client would run what another prepared.
    """
    direct = backend == connection.info.backend_pid
    connection.prepare_threshold = PREPARE_AFTER if direct else None
    return direct


def set_time(connection: psycopg.Connection[Any], clock: SharedClock) -> None:
    """Let the server say what time it is."""
    asked = clock.boot_us()
    (said,) = _one(connection, "SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint")
    clock.hear(asked, int(said), clock.boot_us())


# -- the schema -------------------------------------------------------------------------------------------------------


def migrate(connection: psycopg.Connection[Any], address: PostgresAddress, *, create: bool) -> None:
    """Bring the schema to this version, in one transaction, one process at a time; a newer one that suits us stays."""
    _check_server(connection, address)
    stored = _stored(connection, address)
    if stored.is_current():
        return
    if not create and stored.version == 0:
        message = (
            f"There is no store at {address}: add a job or start a server to create it, or name another with --db."
        )
        raise StoreMissing(message)
    connection.read_only = False  # said with every BEGIN, over the default of the server, database or role
    for attempt in range(MIGRATION_TRIES):
        try:
            with connection.transaction():
                _migrate(connection, address)
        except (pg.DeadlockDetected, pg.LockNotAvailable):  # nodes are at work on these tables meanwhile
            if attempt == MIGRATION_TRIES - 1:
                raise
        else:
            return


def _migrate(connection: psycopg.Connection[Any], address: PostgresAddress) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(%s::int, %s::int)", (LOCK_SPACE, lock_number("schema")))
    # A transaction that waits for a table makes all others wait behind it: better to let go soon and ask again.
    connection.execute(f"SET LOCAL lock_timeout = '{MIGRATION_WAIT}'")
    stored = _stored(connection, address)  # again: another process may just have done it
    if stored.is_current():
        return
    coming = stored.after(steps())
    if stored.version and coming.contracts(stored):
        # No node joins from here on: one that wanted to finds the new number, and one that did before is seen.
        connection.execute("LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE")
        refuse_contracting(coming, _living(connection), str(address))
    if stored.version:
        log.warning("upgrading %s from schema %s to %s", address, stored.version, coming.version)
    if stored.version:  # what does not say which of our scripts it has seen: see `Stored.number`
        connection.execute("DELETE FROM wakeful_schema WHERE version > %s", (stored.version,))
    for step, script in zip(steps(), migrations(), strict=True):
        if stored.lacks(step):
            connection.execute(script)
            if step.folder == WAKEFUL:
                connection.execute("INSERT INTO wakeful_schema (version) VALUES (%s)", (step.number,))
    if coming.number != coming.version:
        connection.execute("INSERT INTO wakeful_schema (version) VALUES (%s)", (coming.number,))
    for fact in coming.facts():
        connection.execute(
            "INSERT INTO meta (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value", fact
        )


def _living(connection: psycopg.Connection[Any]) -> list[Living]:
    session = PostgresSession(connection, {}, writing=True)
    since = (session.database_now() or 0) - LEASE_MS
    about = [(node, json.loads(node.details)) for node in NodeVerbs(session).living(since)]
    return [Living.of(node.name, details) for node, details in about if not is_dead(node.id, details)]


def migrations() -> list[str]:
    """The numbered steps, in order, as PostgreSQL wants them."""
    scripts = [_in_our_words(step.script) for step in steps()]
    scripts[0] = (
        "CREATE TABLE wakeful_schema (version bigint PRIMARY KEY);\n"
        + scripts[0]
        # SQLite gives an id to every row that comes without one; only events rely on it.
        + "\nALTER TABLE events ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY;"
    )
    return scripts


def _in_our_words(script: str) -> str:
    """`integer` has 64 bits on both sides, and text compares by code points, in this order and no other."""
    lines = [line.removeprefix(_FOR_US).partition("--")[0] for line in script.splitlines()]
    script = re.sub(r"\binteger\b", "bigint", "\n".join(lines))
    return re.sub(r"^(\s+\w+\s+)text\b", r'\1text COLLATE "C"', script, flags=re.MULTILINE)


def column_types(connection: psycopg.Connection[Any]) -> Types:
    """What the columns of our tables are, by the database's own word."""
    rows = connection.execute(
        "SELECT c.relname, a.attname, format_type(a.atttypid, NULL) FROM pg_attribute a "
        "JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = current_schema() AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"
    )
    return {(table, column): name for table, column, name in rows}


def _check_server(connection: psycopg.Connection[Any], address: PostgresAddress) -> None:
    if connection.info.server_version < OLDEST_SERVER:
        found = connection.info.parameter_status("server_version")
        message = f"The server of {address} is PostgreSQL {found}: Wakeful needs 13 or later."
        raise StoreUnusable(message)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        message = f"The database {address} is encoded in {encoding}: create one with ENCODING 'UTF8'."
        raise StoreUnusable(message)


def _stored(connection: psycopg.Connection[Any], address: PostgresAddress) -> Stored:
    # Not to_regclass: it may answer from before we waited for another process to make the tables.
    rows = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = current_schema() AND c.relname = ANY (%s) ORDER BY c.relname",
        ([SCHEMA_TABLE, "events", "job_state", "jobs", "nodes", "runs"],),
    )
    found = [str(name) for (name,) in rows]
    if SCHEMA_TABLE not in found:
        if found:
            message = f"{address} has another program's table {found[0]!r}: choose another database or schema."
            raise StoreUnusable(message)
        return Stored(0, 0)
    (version,) = _one(connection, "SELECT coalesce(max(version), 0) FROM wakeful_schema")
    keys = "SELECT key, value FROM meta WHERE key IN (%s, %s)"
    facts = {str(key): str(value) for key, value in connection.execute(keys, (OLDEST_KEY, DOMAINS_KEY))}
    stored = Stored.of(int(version), facts, lambda: set(column_types(connection)), str(address))
    refuse_newer(
        stored,
        str(address),
        lambda _: "upgrade this one, restore a dump from before the upgrade, or use another database",
    )
    return stored


def current_schema(connection: psycopg.Connection[Any]) -> str | None:
    """The schema our tables are in, by the database's own word: an address, a role or a database may set it."""
    (name,) = _one(connection, "SELECT current_schema()")
    return str(name) if name is not None else None


def _one(connection: psycopg.Connection[Any], sql: str) -> tuple[Any, ...]:
    row = connection.execute(sql).fetchone()
    assert row is not None  # noqa: S101 - each of these questions has exactly one answer
    return tuple(row)
