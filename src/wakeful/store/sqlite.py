"""The SQLite store: one writer, readers alongside it, and everything on disk before it is reported.

All writes go through one connection on one thread. Works handed in while it is busy are committed together, each in
a savepoint of its own, so a failing one undoes only itself. In virtual time there is no thread: transactions run
inline, which is what makes a simulated run repeat exactly.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from wakeful import clock as clocks
from wakeful.errors import InvalidJob, SchedulerError, SchedulerNotOpen, StoreGone, StoreLocked
from wakeful.store.interface import Transaction
from wakeful.store.process_identity import Home
from wakeful.store.sqlite_file import (
    MEMORY,
    EngineLock,
    OpenFiles,
    check_file,
    connect,
    engine_holder,
    explain,
    files_beside,
    keep_log,
    migrate,
    path_of,
    schema_version,
)
from wakeful.store.sqlite_session import SqliteSession
from wakeful.store.upgrade_backups import back_up
from wakeful.store.wake_socket import WakeSocket, notify
from wakeful.store.writer import Item, WriterThread, WrittenStore

if TYPE_CHECKING:
    from wakeful.clock import Clock

T = TypeVar("T")
log = logging.getLogger("wakeful.store")

LOCK_WAIT_MS = 10_000
BUSY_MS = 15  # after this long of back-to-back commits ...
GAP_S = 0.002  # ... leave the lock alone for this long, so that other processes' writes get in


class SqliteStore(WrittenStore):
    """A store in one file (or in memory, for tests)."""

    exclusive = True

    def __init__(self, url: str, clock: Clock, *, inline: bool = False) -> None:
        self.url = url
        self.path = path_of(url)
        super().__init__(clock, inline=inline or self.path == MEMORY)
        self.folder = files_beside(self.path)
        self._writer: sqlite3.Connection | None = None
        self._idle_readers: list[sqlite3.Connection] = []
        self._files = OpenFiles(self.path)
        self._lock = EngineLock(self.path)
        self._wake_socket = WakeSocket(self.path)
        self._data_version = 0
        self._cookie = 0
        self._busy_since: int | None = None
        self._in_use = threading.Lock()  # the writer's connection

    # -- life ---------------------------------------------------------------------------------------------------------

    async def open(self, *, create: bool = True) -> None:
        if self._open:
            self._home.refuse_child()
            return
        self._home = Home()
        if self.path != MEMORY:
            check_file(self.path, create=create)
        await self._aside(self._open_writer)
        if not self._inline:
            self._thread = WriterThread(self._clock, self._commit, self._notify, self._leave_gap)
        self._open = True

    async def close(self) -> None:
        if self._writer is None or not self._open or self._home.left:
            return
        self._open = False
        await self._end_threads()
        for connection in (self._writer, *self._idle_readers):
            connection.close()
        self._idle_readers.clear()
        self._writer = None
        await self.resign()

    def _open_writer(self) -> None:
        connection = None
        try:
            connection = self._patiently(lambda: connect(self.path))
            # Checked before anything is changed: another program's file must stay as it is, to the byte.
            stored = self._patiently(partial(schema_version, connection, self.path))
            self._patiently(partial(keep_log, connection, self.path))
            if self.path != MEMORY:
                self._patiently(partial(back_up, connection, self.path, stored))
            self._patiently(partial(connection.execute, "BEGIN IMMEDIATE"))
            migrate(connection, self.path)
            connection.execute("COMMIT")
            (self._data_version,) = connection.execute("PRAGMA data_version").fetchone()
            (self._cookie,) = connection.execute("PRAGMA schema_version").fetchone()
        except BaseException as error:
            if connection is not None:
                connection.close()  # and with it what was begun
            if isinstance(error, sqlite3.Error):
                explain(error, self.path)
            raise
        self._writer = connection
        if self.path != MEMORY:
            self._files.note()

    # -- transactions -------------------------------------------------------------------------------------------------

    def _refuse_closed(self) -> None:
        super()._refuse_closed()
        if self._writer is None:
            raise SchedulerNotOpen

    def _read(self, work: Callable[[Transaction], T]) -> T:
        self._files.check()
        if self._inline and self._writer is not None:
            return work(Transaction(SqliteSession(self._writer), self._clock.now()))
        try:
            connection = self._idle_reader()
            try:
                connection.execute("BEGIN")
                return work(Transaction(SqliteSession(connection), self._clock.now()))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._idle_readers.append(connection)
        except sqlite3.Error as error:
            explain(error, self.path)

    def _idle_reader(self) -> sqlite3.Connection:
        """A connection that no other thread reads with; whether one is left is known only by taking it."""
        try:
            return self._idle_readers.pop()
        except IndexError:
            return connect(self.path, readonly=True)

    def write_apart(self, work: Callable[[Transaction], T]) -> T:
        del work
        message = "In a file there is one writer: nothing can be written apart from it."
        raise StoreLocked(message)

    async def changed_elsewhere(self) -> bool:
        self._files.check()
        # While the writer rests it is asked here, in microseconds: another thread would have to be waited for twice,
        # and with it the start of what another process has added.
        shorter = self._files.is_shorter()  # the writer knows why
        if self._open and not self._inline and not shorter and self._in_use.acquire(blocking=False):
            try:
                return self._is_new_version()
            except sqlite3.Error as error:
                log.debug("cannot ask %s what changed: %s", self.path, error)  # the writer finds out what is wrong
            finally:
                self._in_use.release()
        return bool(await self.write(_ASK_VERSION))

    def _is_new_version(self) -> bool:
        assert self._writer is not None  # noqa: S101 - there as long as the store is open
        (version,) = self._writer.execute("PRAGMA data_version").fetchone()
        before, self._data_version = self._data_version, version
        return bool(version != before)

    def _is_vacuumed(self) -> bool:
        """Whether the database was vacuumed since this was last asked; SQLite counts that as a change of the schema."""
        assert self._writer is not None  # noqa: S101 - there as long as the store is open
        before = self._cookie
        (self._cookie,) = self._writer.execute("PRAGMA schema_version").fetchone()
        return bool(self._cookie > before)

    async def _notified(self) -> None:
        try:
            changed = await self.changed_elsewhere()
        except SchedulerError:
            changed = True  # the engine notices an unavailable store when it looks
        if changed:
            self._on_change()

    # -- the engine's lock --------------------------------------------------------------------------------------------

    async def become_engine(self, who: dict[str, object]) -> None:
        self._home.refuse_child()
        if self.path != MEMORY:
            self._lock.acquire(who)
        if not self._inline:
            self._wake_socket.listen(self._notified)

    def holder(self) -> dict[str, object] | None:
        return engine_holder(self.path) if self.path != MEMORY else None

    async def resign(self) -> None:
        self._wake_socket.take_down()  # before another engine can have its own
        self._lock.release()

    # -- the writer ---------------------------------------------------------------------------------------------------

    def _leave_gap(self, more: bool) -> None:  # noqa: FBT001 - called by the writer's thread alone
        """Between two groups: let other processes' writes get in, after a long row of ours."""
        now = self._clock.boot()
        if not more or self._busy_since is None:
            self._busy_since = now
        elif now - self._busy_since > BUSY_MS:
            clocks.block(GAP_S)
            self._busy_since = self._clock.boot()

    def _commit(self, items: list[Item]) -> None:
        """Run the works in one transaction; each item ends with a result or an error."""
        connection = self._writer
        assert connection is not None  # noqa: S101 - closed only after the last commit
        asking = [item for item in items if item.work is _ASK_VERSION]
        writing = [item for item in items if item.work is not _ASK_VERSION]
        with self._in_use:
            try:
                if self._files.is_shorter():
                    self._files.explain_shorter(vacuumed=self._is_vacuumed())
                for item in asking:
                    item.result = self._is_new_version()
                if writing:
                    self._files.check()
                    self._commit_together(connection, writing)
            except StoreGone as error:
                for item in items:
                    item.error = error
            except sqlite3.Error as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                for item in items:
                    item.error = self._explained(error)

    def _commit_together(self, connection: sqlite3.Connection, writing: list[Item]) -> None:
        before = connection.total_changes
        self._patiently(partial(connection.execute, "BEGIN IMMEDIATE"))
        for item in writing:
            self._run(connection, item, alone=len(writing) == 1)
        good = any(item.error is None for item in writing)
        connection.execute("COMMIT" if good else "ROLLBACK")
        if good and connection.total_changes != before and not self._inline and not self._lock.held:
            notify(self.path)  # what the engine itself writes, it knows

    def _run(self, connection: sqlite3.Connection, item: Item, *, alone: bool) -> None:
        if not alone:
            connection.execute("SAVEPOINT work")
        try:
            transaction = Transaction(SqliteSession(connection), self._clock.now())
            item.result = item.work(transaction)
            item.groups = transaction.flush()
        except sqlite3.Error as error:
            if not connection.in_transaction:
                raise
            item.error = self._explained(error)
        except UnicodeEncodeError:
            item.error = InvalidJob("A text with half of a surrogate pair in it cannot be stored.")
        except Exception as error:  # noqa: BLE001 - it belongs to the caller that handed in the work
            item.error = error
        if not alone:
            connection.execute("ROLLBACK TO work" if item.error is not None else "RELEASE work")

    def _explained(self, error: sqlite3.Error) -> BaseException:
        try:
            explain(error, self.path)
        except Exception as explained:  # noqa: BLE001 - carried to the waiting caller
            return explained

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Do what needs a lock, asking every millisecond: SQLite's own waiting backs off to 100 ms and starves."""
        deadline = self._clock.boot() + LOCK_WAIT_MS
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if self._inline or not busy or self._clock.boot() >= deadline:
                    raise
                clocks.block(0.001)


def _ASK_VERSION(_: Transaction) -> object:  # noqa: N802 - a marker: recognised by the writer, never run
    raise NotImplementedError
