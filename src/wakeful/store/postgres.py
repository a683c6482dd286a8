"""The PostgreSQL store: several nodes on one database, each with one writer and readers alongside it.

All writes of a process go through one connection on one thread, as on SQLite; what differs is that other nodes write
at the same time, so transactions may have to be run again, and that the server may go away, so connections are
reopened and a commit whose answer was lost is looked up. Time is the server's: the nodes' own clocks may differ by
minutes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from wakeful.clock import ManualClock, SharedClock
from wakeful.store.interface import Transaction
from wakeful.store.nodes import LEASE_MS
from wakeful.store.postgres_address import PostgresAddress
from wakeful.store.postgres_database import check_pooler, column_types, connect, current_schema, migrate, set_time
from wakeful.store.postgres_errors import POOLED, explain, lost
from wakeful.store.postgres_listener import Listener
from wakeful.store.postgres_session import PostgresSession, Types
from wakeful.store.postgres_writer import PostgresWriter
from wakeful.store.process_identity import Home, is_dead
from wakeful.store.writer import Item, WriterThread, WrittenStore

if TYPE_CHECKING:
    from wakeful.clock import Clock

T = TypeVar("T")

FIRST_READINGS = 3  # of the time, so that one slow answer does not decide it
#: Notifications may never come (a pooler in transaction mode swallows them), so we look by ourselves this often.
LOOK_MS = 1_000

#: Plans are made for the values asked for: one stream of events may be all there is, another a thousandth of it.
_BEGIN_READING = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
    "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true), "
    # A process that freezes while it reads would keep the server from cleaning up behind everybody.
    "set_config('idle_in_transaction_session_timeout', '60s', true), pg_backend_pid()"
)


class PostgresStore(WrittenStore):
    """A store in a PostgreSQL database."""

    exclusive = False

    def __init__(
        self, url: str, clock: Clock, *, inline: bool = False, database_clock: ManualClock | None = None
    ) -> None:
        """In virtual time the server's time is `database_clock`'s, or else simply the given clock's."""
        self._address = PostgresAddress(url)
        self.url = str(self._address)
        self.folder = self._address.folder()
        self._database_clock = clock if database_clock is None and isinstance(clock, ManualClock) else database_clock
        self._shared = SharedClock(clock) if self._database_clock is not clock else None
        super().__init__(self._shared if self._shared is not None else clock, inline=inline)
        self._types: Types = {}
        self._writer = self._new_writer()
        self._apart: PostgresWriter | None = None
        self._idle_readers: list[psycopg.Connection[Any]] = []
        self._listener: Listener | None = None
        self._looked_at = 0

    def _new_writer(self) -> PostgresWriter:
        writer = PostgresWriter(self._address, self._clock, self._database_clock)
        writer.types = self._types
        return writer

    # -- life ---------------------------------------------------------------------------------------------------------

    async def open(self, *, create: bool = True) -> None:
        if self._open:
            self._home.refuse_child()
            return
        self._home = Home()
        await self._aside(lambda: self._prepare(create=create))
        if not self._inline:
            self._thread = WriterThread(self._clock, self._commit, self._notify)
        self._open = True

    def _prepare(self, *, create: bool) -> None:
        connection = connect(self._address)
        try:
            migrate(connection, self._address, create=create)
            self._types = column_types(connection)
            self.folder = self._address.folder(current_schema(connection))
            for _ in range(FIRST_READINGS):
                self._set_time(connection)
        except psycopg.Error as error:
            raise explain(error, self._address) from error
        finally:
            connection.close()
        self._writer.types = self._types

    def _set_time(self, connection: psycopg.Connection[Any]) -> None:
        if self._shared is None:
            return
        if self._database_clock is not None:
            said = self._database_clock.now() * 1000
            self._shared.hear(self._shared.boot_us(), said, self._shared.boot_us())
        else:
            set_time(connection, self._shared)

    async def close(self) -> None:
        if not self._open or self._home.left:
            return
        self._open = False
        await self.resign()
        await self._end_threads()
        self._writer.close()
        if self._apart is not None:
            self._apart.close()
        for connection in self._idle_readers:
            connection.close()
        self._idle_readers.clear()

    # -- transactions -------------------------------------------------------------------------------------------------

    def _commit(self, items: list[Item]) -> None:
        self._writer.commit(items)

    def _read(self, work: Callable[[Transaction], T]) -> T:
        while True:
            connection, kept = self._idle_reader()
            try:
                _begin_reading(connection)
                session = PostgresSession(connection, self._types, writing=False, clock=self._database_clock)
                result = work(Transaction(session, self._clock.now()))
                session.finish()  # a write that was put off is refused as any other
                # Not ROLLBACK: the driver takes that as a reason to forget all prepared statements.
                connection.execute("COMMIT")
            except BaseException as error:
                connection.close()
                if kept and (lost(error) or isinstance(error, POOLED)):
                    continue
                if isinstance(error, psycopg.Error):
                    raise explain(error, self._address) from error
                raise
            self._idle_readers.append(connection)
            return result

    def _idle_reader(self) -> tuple[psycopg.Connection[Any], bool]:
        """A connection that no other thread reads with, and whether it was kept.

        Whether one is left is known only by taking it. It may have died meanwhile; a new one shows the truth.
        """
        try:
            return self._idle_readers.pop(), True
        except IndexError:
            return connect(self._address), False

    def write_apart(self, work: Callable[[Transaction], T]) -> T:
        """On a connection of its own, which also asks the time: doing this regularly keeps our clock right."""
        if self._apart is None:
            self._apart = self._new_writer()
        item = Item(work)
        self._apart.commit([item])
        result = item.outcome()
        self._apart.visit(self._set_time)
        return result  # type: ignore[no-any-return]

    # -- other processes ----------------------------------------------------------------------------------------------

    async def changed_elsewhere(self) -> bool:
        heard = self._listener is not None and self._listener.heard()
        now = self._clock.boot()
        if heard or now - self._looked_at >= LOOK_MS:
            self._looked_at = now
            return True
        return False

    async def become_engine(self, who: dict[str, object]) -> None:
        """Every node may; there is no leader."""
        del who
        self._home.refuse_child()
        if not self._inline and self._listener is None:
            loop = asyncio.get_running_loop()
            self._listener = Listener(
                self._address, self._writer.name, self._writer.watermark, lambda: self._heard(loop)
            )

    def _heard(self, loop: asyncio.AbstractEventLoop) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._on_change)

    def holder(self) -> dict[str, object] | None:
        """One of the nodes that live, the latest to start, or None."""
        return self._read(_latest_node) if self._open else None

    async def resign(self) -> None:
        if self._listener is not None:
            self._listener.stop()
            self._listener = None


def _begin_reading(connection: psycopg.Connection[Any]) -> None:
    cursor = connection.execute(_BEGIN_READING)
    cursor.nextset()
    row = cursor.fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    check_pooler(connection, row[-1])


def _latest_node(tx: Transaction) -> dict[str, object] | None:
    now = tx.facts.database_now()
    for node in reversed(tx.members.alive()):
        details = json.loads(node.details)
        if now - node.seen_at < LEASE_MS and not is_dead(node.id, details):
            return {**details, "node": node.name, "since": node.started_at}
    return None
