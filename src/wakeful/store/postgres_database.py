"""Reaching a PostgreSQL database as a store: is it there, is it ours, may we write, and what its errors mean.

Every way in which a server can be wrong ends in one sentence that names it and says what to do. No sentence ever
shows the password.
"""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg.types.numeric import Int8Dumper

from wakeful.clock import SharedClock
from wakeful.errors import (
    InvalidJob,
    SchedulerError,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreRefused,
    StoreUnreachable,
    StoreUnusable,
)
from wakeful.store.nodes import LEASE_MS, Nodes
from wakeful.store.postgres_address import Address
from wakeful.store.postgres_session import LOCK_SPACE, PostgresSession, Types, lock_number
from wakeful.store.presence import surely_gone
from wakeful.store.schema_version import OLDEST_KEY, Living, Stored, refuse_contracting, refuse_newer, steps

OLDEST_SERVER = 130_000  # pg_current_xact_id
PREPARED = 200
SCHEMA_TABLE = "wakeful_schema"
MIGRATION_TRIES, MIGRATION_WAIT = 5, "5s"


def connect(address: Address) -> psycopg.Connection[Any]:
    """A connection on which we begin and end transactions ourselves."""
    try:
        connection = psycopg.connect(**address.settings, autocommit=True)
    except (psycopg.Error, UnicodeError) as error:
        raise explain(error, address) from error
    # One type for every number: else a statement is planned anew for each size of its parameters.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.prepared_max = PREPARED
    return connection


def tell_time(connection: psycopg.Connection[Any], clock: SharedClock) -> None:
    """Let the server say what time it is."""
    asked = clock.boot_us()
    (told,) = _one(connection, "SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint")
    clock.hear(asked, int(told), clock.boot_us())


# -- the schema -------------------------------------------------------------------------------------------------------


def migrate(connection: psycopg.Connection[Any], address: Address, *, create: bool) -> None:
    """Bring the schema to this version, in one transaction, one process at a time; a newer one that suits us stays."""
    _check_server(connection, address)
    stored = _stored(connection, address)
    if stored.after(steps()) == stored:
        return
    if not create and stored.version == 0:
        message = (
            f"There is no store at {address}: add a job or start a server to create it, or name another with --db."
        )
        raise StoreUnusable(message)
    for attempt in range(MIGRATION_TRIES):
        try:
            with connection.transaction():
                _migrate(connection, address)
        except (pg.DeadlockDetected, pg.LockNotAvailable):  # nodes are at work on these tables meanwhile
            if attempt == MIGRATION_TRIES - 1:
                raise
        else:
            return


def _migrate(connection: psycopg.Connection[Any], address: Address) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(%s::int, %s::int)", (LOCK_SPACE, lock_number("schema")))
    # Whoever waits for a table makes all others wait behind it: better to let go soon and ask again.
    connection.execute(f"SET LOCAL lock_timeout = '{MIGRATION_WAIT}'")
    stored = _stored(connection, address)  # again: another process may just have done it
    coming = stored.after(steps())
    if stored.version and coming.oldest > stored.oldest:
        # Nobody joins from here on: who wanted to finds the new number, and who did before is seen.
        connection.execute("LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE")
        refuse_contracting(coming, _living(connection), str(address))
    for number, script in enumerate(migrations()[stored.version :], start=stored.version + 1):
        connection.execute(script)
        connection.execute("INSERT INTO wakeful_schema (version) VALUES (%s)", (number,))
    for fact in coming.facts():
        connection.execute(
            "INSERT INTO meta (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value", fact
        )


def _living(connection: psycopg.Connection[Any]) -> list[Living]:
    session = PostgresSession(connection, {}, writing=True)
    since = (session.database_now() or 0) - LEASE_MS
    about = {node.name: json.loads(node.details) for node in Nodes(session).living(since)}
    return [Living.of(name, details) for name, details in about.items() if not surely_gone(details)]


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
    lines = [line.partition("--")[0] for line in script.splitlines()]
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


def _check_server(connection: psycopg.Connection[Any], address: Address) -> None:
    if connection.info.server_version < OLDEST_SERVER:
        found = connection.info.parameter_status("server_version")
        message = f"The server of {address} is PostgreSQL {found}: Wakeful needs 13 or later."
        raise StoreUnusable(message)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        message = f"The database {address} is encoded in {encoding}: create one with ENCODING 'UTF8'."
        raise StoreUnusable(message)


def _stored(connection: psycopg.Connection[Any], address: Address) -> Stored:
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
    said = connection.execute("SELECT value FROM meta WHERE key = %s", (OLDEST_KEY,)).fetchone()
    stored = Stored.of(int(version), said[0] if said is not None else None)
    refuse_newer(stored, str(address), "database")
    return stored


def current_schema(connection: psycopg.Connection[Any]) -> str | None:
    """The schema our tables are in, by the database's own word: an address, a role or a database may set it."""
    (name,) = _one(connection, "SELECT current_schema()")
    return str(name) if name is not None else None


def _one(connection: psycopg.Connection[Any], sql: str) -> tuple[Any, ...]:
    row = connection.execute(sql).fetchone()
    assert row is not None  # noqa: S101 - each of these questions has exactly one answer
    return tuple(row)


# -- what went wrong --------------------------------------------------------------------------------------------------

#: The transaction did nothing, and doing it again is right.
AGAIN = (pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation)
#: A pooler gave us another server connection than the one that knows our prepared statements.
POOLED = (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement)
#: The server ends the connection, or is one that must not be kept: shutdown, crash, starting up, idle for too long
#: (alone or in a transaction), a standby.
_GONE = {"57P01", "57P02", "57P03", "57P05", "25P03", "25006"}

#: Classes of errors whose cause is what was to be written (or a row it met), not the server.
_REFUSED = {"21", "22", "23", "42", "54"}

_SENTENCES: tuple[tuple[tuple[type[Exception], ...], type[StoreError], str], ...] = (
    ((pg.DiskFull,), StoreFull, "The disk of {server} is full: free some space; nothing was half written."),
    (
        (pg.LockNotAvailable, pg.SerializationFailure, pg.DeadlockDetected, pg.QueryCanceled),
        StoreLocked,
        "{address} has been locked by another process for too long: end what holds it, then try again.",
    ),
    (
        (pg.ReadOnlySqlTransaction,),
        StoreUnreachable,
        "{address} cannot be written, as a standby cannot: name the primary server.",
    ),
    (
        (pg.TooManyConnections,),
        StoreUnreachable,
        "{server} takes no more connections: end some, or raise its max_connections.",
    ),
    (
        (pg.InvalidPassword, pg.InvalidAuthorizationSpecification),
        StoreUnusable,
        "{server} does not let us in ({reason}): check the user and the password of {address}.",
    ),
    (
        (pg.InvalidCatalogName,),
        StoreUnusable,
        "There is no database {database} on {server}: create it, or name another.",
    ),
    (
        (pg.InsufficientPrivilege, pg.InvalidSchemaName),
        StoreUnusable,
        "We may not do our work in {address} ({reason}): let its owner grant us CREATE on the schema.",
    ),
)


def lost(error: BaseException) -> bool:
    """Whether the connection is of no use after this error."""
    if not isinstance(error, psycopg.Error):
        return False
    if _standby(error):
        return True
    code = error.sqlstate
    if code is None:  # the driver's own: no server said so
        return isinstance(error, psycopg.OperationalError)
    return code in _GONE or code.startswith("08")


def _standby(error: BaseException) -> bool:
    """A server that follows another refuses even to begin a transaction that writes, in these words alone."""
    return isinstance(error, pg.FeatureNotSupported) and "recovery" in str(error)


def explain(error: Exception, address: Address) -> SchedulerError:
    """What the database's error means to the person who runs this."""
    reason = address.hide(_reason(error))
    for kinds, family, sentence in _SENTENCES:
        known = isinstance(error, kinds) or (_standby(error) and pg.ReadOnlySqlTransaction in kinds)
        if known or (not getattr(error, "sqlstate", None) and _says(error, kinds)):
            return family(
                sentence.format(address=address, server=address.server, database=address.database, reason=reason)
            )
    if isinstance(error, UnicodeError):
        return InvalidJob("A text with half of a surrogate pair in it cannot be stored.")
    if isinstance(error, psycopg.DataError) and "NUL" in reason:
        return InvalidJob("A text with a NUL character in it cannot be stored.")
    if lost(error):
        message = (
            f"{address.server} cannot be reached ({reason}): check that the server runs; work goes on when it does."
        )
        return StoreUnreachable(message)
    if isinstance(error, psycopg.Error) and (error.sqlstate or "")[:2] in _REFUSED:
        return StoreRefused(f"The database {address} failed: {reason}.")
    message = f"{address.server} cannot work right now ({reason}): look at its log; work goes on when it can."
    return StoreUnreachable(message)


#: Errors while connecting come without a code: the server's words are all there is.
_WORDS: dict[type[Exception], str] = {
    pg.InvalidPassword: "password authentication failed",
    pg.InvalidAuthorizationSpecification: "no password supplied|no pg_hba.conf entry|role .* does not exist",
    pg.InvalidCatalogName: "database .* does not exist",
    pg.TooManyConnections: "too many clients|remaining connection slots|too many connections",
}


def _says(error: Exception, kinds: tuple[type[Exception], ...]) -> bool:
    text = str(error)
    return any(kind in _WORDS and re.search(_WORDS[kind], text) for kind in kinds)


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0] if lines else type(error).__name__
    for mark in ("failed: FATAL:", "failed: ", "FATAL:", "ERROR:"):
        before, found, after = said.partition(mark)
        said = after.strip() if found and after.strip() else before.strip() or said
    return said.rstrip(".")
