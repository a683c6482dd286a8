"""Committing works to PostgreSQL: together where possible, again where the server asks for it, and never unsure.

Works of one group share a transaction, each in a savepoint, so a failing one undoes only itself. A group ends early
with a work that took a lock of the whole store: its holder must not wait for anything else.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from wakeful import clock as clocks
from wakeful.errors import SchedulerError, StoreError, StoreRefused, StoreUnreachable
from wakeful.store.alarm_watermark import Watermark
from wakeful.store.interface import Transaction
from wakeful.store.postgres_address import PostgresAddress
from wakeful.store.postgres_database import check_pooler, connect
from wakeful.store.postgres_errors import AGAIN, POOLED, explain, lost
from wakeful.store.postgres_listener import announcement
from wakeful.store.postgres_session import PostgresSession, Types

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.writer import Item

TRIES = 5
PAUSE_S = 0.01
FATE_MS = 15_000  # how long we ask what became of a commit whose answer was lost
FIRST_RECONNECT_MS, LONGEST_RECONNECT_MS = 100, 5_000

#: Of a session, where it is ours alone; of each transaction, where a pooler may give every one another session.
_SETTINGS = {
    # Batches are found by key, always: without statistics the planner would read whole tables, or compile.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    # So plans do not depend on the values: planning again each time costs as much as a small turn itself.
    "plan_cache_mode": "force_generic_plan",
    # A node that freezes, or is cut off, inside a transaction must not hold up the others, nor the take-over.
    "idle_in_transaction_session_timeout": "5s",
    "lock_timeout": "10s",
    "statement_timeout": "60s",
}


def _settings(*, local: bool) -> str:
    durable = (
        "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END"
    )
    values = {**{name: f"'{value}'" for name, value in _SETTINGS.items()}, "synchronous_commit": durable}
    return ", ".join(f"set_config('{name}', {value}, {str(local).lower()})" for name, value in values.items())


_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_backend_pid(), pg_current_xact_id()::text"
_BEGIN_POOLED = f"{_BEGIN}, {_settings(local=True)}"
#: Only if the server process that runs it is the one the connection was made to.
_SET_OUR_SESSION = f"SELECT {_settings(local=False)} WHERE pg_backend_pid() = %s"

_numbers = itertools.count(1)


class PostgresWriter:
    """The writing connection of one process; everything here runs on one thread at a time."""

    def __init__(self, address: PostgresAddress, clock: Clock, database_clock: Clock | None = None) -> None:
        self.types: Types = {}
        self.watermark = Watermark()
        #: How our own notifications are distinguished from others'.
        self.name = f"{socket.gethostname()}-{os.getpid()}-{next(_numbers)}"
        self._address = address
        self._clock = clock
        self._database_clock = database_clock
        self._connection: psycopg.Connection[Any] | None = None
        self._pooled = False
        self._refusal: SchedulerError | None = None
        self._reconnect_at = 0
        self._pause_ms = FIRST_RECONNECT_MS

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def visit(self, look: Callable[[psycopg.Connection[Any]], None]) -> None:
        """Let `look` read on our connection, outside of any transaction; if it is lost, it is opened again later."""
        if self._connection is None:
            return
        try:
            look(self._connection)
        except psycopg.Error:
            self._drop()

    def commit(self, items: Sequence[Item]) -> None:
        """Each item ends with a result that is stored, or with an error and nothing stored."""
        waiting = list(items)
        tries = 0
        while waiting:
            batch = waiting if tries == 0 else waiting[:1]
            try:
                done = self._transaction(batch, repeated=tries > 0)
            except Exception as error:  # noqa: BLE001 - carried to those who wait; this thread must continue
                if self._connection is None or lost(error):
                    self._fail(waiting, error)
                    return
                tries += 1
                if len(batch) > 1 or (tries <= TRIES and self._worth_another(error, tries)):
                    continue
                self._fail(batch, error)
                done = 1
            waiting = waiting[done:]
            tries = 0

    def _transaction(self, items: Sequence[Item], *, repeated: bool) -> int:
        """Run works in one transaction; how many of them it took in."""
        connection = self._connected()
        try:
            self.watermark.begin(self._clock.boot())
            number = self._begin(connection)
            done = self._run_all(connection, items, repeated=repeated)
            if all(item.error is not None for item in items[:done]):
                connection.execute("ROLLBACK")
            else:
                self._end(connection, number)
                self.watermark.committed(self._clock.boot())
        except BaseException as error:
            self._undo(connection, error)
            raise
        return done

    def _begin(self, connection: psycopg.Connection[Any]) -> str:
        """Begin; the number by which the server knows the transaction."""
        cursor = connection.execute(_BEGIN_POOLED if self._pooled else _BEGIN)
        cursor.nextset()
        row = cursor.fetchone()
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        backend, number = row[:2]
        if not check_pooler(connection, backend) and not self._pooled:
            self._pooled = True  # what was set is another session's
            connection.execute("ROLLBACK")
            return self._begin(connection)
        return str(number)

    def _run_all(self, connection: psycopg.Connection[Any], items: Sequence[Item], *, repeated: bool) -> int:
        good: list[tuple[Item, Transaction, PostgresSession]] = []
        done = 0
        for item in items:
            session = PostgresSession(
                connection,
                self.types,
                writing=True,
                clock=self._database_clock,
                watermark=self.watermark,
                repeated=repeated,
            )
            transaction = self._run(connection, session, item, alone=len(items) == 1)
            done += 1
            if transaction is not None:
                good.append((item, transaction, session))
            if session.serialized:
                break
        for item, transaction, session in good:  # last, because it makes us the only one who writes events
            session.notice = self._notice() if session.announced else None
            item.groups = transaction.flush()
            session.notify()
            session.finish()
        return done

    def _run(
        self, connection: psycopg.Connection[Any], session: PostgresSession, item: Item, *, alone: bool
    ) -> Transaction | None:
        item.error = None
        if not alone:
            connection.execute("SAVEPOINT work")
        transaction = Transaction(session, self._clock.now())
        try:
            item.result = item.work(transaction)
            if not alone:  # else what was put off goes with the events
                session.finish()
        except psycopg.Error:
            raise  # which work caused it shows when each is run by itself
        except UnicodeError as error:
            item.error = explain(error, self._address)
        except Exception as error:  # noqa: BLE001 - it belongs to the caller that handed in the work
            item.error = error
        if not alone:
            connection.execute("ROLLBACK TO work" if item.error is not None else "RELEASE work")
        if item.error is not None:
            self.watermark.undone()
        return transaction if item.error is None else None

    def _notice(self) -> str:
        """What other processes are sent with the commit."""
        return announcement(self.name, self.watermark.lowest)

    def _end(self, connection: psycopg.Connection[Any], number: str) -> None:
        try:
            cursor = connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            if not lost(error):
                raise
            self._drop()
            if not self._was_committed(number):
                raise
            return
        if cursor.statusmessage != "COMMIT":
            # A statement failed and its error was ignored: the server then rolls back, without an error.
            message = f"{self._address} rolled back a transaction in which a statement had failed; nothing was stored."
            raise StoreRefused(message)

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def _undo(self, connection: psycopg.Connection[Any], error: BaseException) -> None:
        if connection.closed or lost(error):
            self.watermark.forget()
            self._drop()
            return
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            self._drop()

    def _worth_another(self, error: Exception, tries: int) -> bool:
        if isinstance(error, POOLED):
            self._drop()
            return True
        if isinstance(error, AGAIN):
            if not isinstance(
                error, psycopg.errors.UniqueViolation
            ):  # what it met is stored: there is no one to wait for
                clocks.block(PAUSE_S * tries)
            return True
        return False

    def _fail(self, items: Sequence[Item], error: Exception) -> None:
        raised = error
        if isinstance(error, psycopg.Error | UnicodeError):
            raised = explain(error, self._address)
            raised.__cause__ = error
        for item in items:
            item.error = raised

    def _was_committed(self, number: str) -> bool:
        """What became of the transaction whose answer never came; asked until the server knows."""
        deadline = self._clock.boot() + FATE_MS
        while self._clock.boot() < deadline:
            try:
                with connect(self._address) as connection:
                    row = connection.execute("SELECT pg_xact_status(%s::xid8)", (number,)).fetchone()
                if row is not None and row[0] in ("committed", "aborted"):  # else it continues, or is long forgotten
                    return bool(row[0] == "committed")
            except (psycopg.Error, StoreError):
                clocks.block(PAUSE_S)
            clocks.block(PAUSE_S)
        message = (
            f"{self._address.server} went away while storing, and it is not known whether the change was stored: look "
            "before you repeat it."
        )
        raise StoreUnreachable(message)

    # -- the connection -----------------------------------------------------------------------------------------------

    def _connected(self) -> psycopg.Connection[Any]:
        """The connection, or a new one; while the server is away it is asked ever less often, and refuses at once."""
        if self._connection is not None:
            return self._connection
        now = self._clock.boot()
        if self._refusal is not None and now < self._reconnect_at:
            raise self._refusal
        try:
            self._connection = self._connect()
        except SchedulerError as error:
            self._refusal = error
            self._reconnect_at = now + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, LONGEST_RECONNECT_MS)
            raise
        self._refusal, self._pause_ms = None, FIRST_RECONNECT_MS
        return self._connection

    def _connect(self) -> psycopg.Connection[Any]:
        connection = connect(self._address)
        try:
            ours = connection.execute(_SET_OUR_SESSION, (connection.info.backend_pid,)).fetchone()
        except psycopg.Error as error:
            connection.close()
            raise explain(error, self._address) from error
        self._pooled = ours is None
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
