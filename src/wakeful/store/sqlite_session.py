"""One SQLite transaction, shaped so that Python's global lock is taken few times per batch.

`sqlite3` lets go of the lock in every step. With another thread busy, each step then waits a whole switch interval to
get it back, so a batch of 512 single-row statements would take seconds. Batches therefore travel as one statement
with many VALUES, and large reads come back as one JSON row. Measured: 108k rows/s alone and 75 times the rate of
`executemany` next to a busy thread.

Half of the columns of a large batch hold the same value in every row, such as the time of the transaction or nothing
at all. These are bound once, outside VALUES, which halves what the statement costs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from wakeful.store.session import OldTransaction, Row

#: Batches are cut into these sizes, so that few distinct statements exist and all stay prepared.
_SIZES = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
_MAX_PARAMS = 32_000
#: Only larger batches, and only so many forms of each: the statements that stay prepared are few, however rows differ.
_LARGE = 16
_FORMS = 4

_COUNT_EVENTS = (
    "INSERT INTO streams (stream, seq) VALUES (?, ?) "
    "ON CONFLICT (stream) DO UPDATE SET seq = streams.seq + excluded.seq"
)
_ADD_EVENTS = (
    "INSERT INTO events (stream, seq, at, body) SELECT stream, seq, ?, ? FROM streams WHERE stream = ? "
    "RETURNING id, seq"
)


class SqliteSession:
    """Statements on a connection; the caller begins and ends its transaction."""

    repeated = False
    exclusive = True  # BEGIN IMMEDIATE: one writer at a time, in all processes
    lock_clause = ""
    skip_clause = ""
    watermark = None  # an alarm that is cleared leaves nothing behind in the index

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.now = 0

    def execute(self, sql: str, params: Row = ()) -> int:
        return self._connection.execute(sql, params).rowcount

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    def bulk(self, columns: Sequence[str], source: str, params: Row = ()) -> list[Row]:
        cursor = self._connection.execute(_bulk_sql(tuple(columns), source), params)
        found: list[Row] = json.loads(cursor.fetchone()[0])
        return found

    def insert_many(self, table: str, columns: Sequence[str], rows: Sequence[Row], on_conflict: str = "") -> int:
        head = tuple(columns)
        touched = 0
        for part in _chunks(rows, len(head)):
            alike, params = _alike(table, head, part) if not on_conflict else ((), list(chain.from_iterable(part)))
            sql = _insert_sql(table, head, len(part), on_conflict, alike)
            touched += self._connection.execute(sql, params).rowcount
        return touched

    def insert_soon(self, table: str, columns: Sequence[str], rows: Sequence[Row], on_conflict: str = "") -> None:
        self.insert_many(table, columns, rows, on_conflict)

    def update_many(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        head = tuple(columns)
        for part in _chunks(rows, len(head)):
            alike, params = _alike(table, head, part)
            self._connection.execute(_update_sql(table, head, len(part), alike), params)

    def select_in(
        self, columns: Sequence[str], table: str, key: str, keys: Sequence[Any], *, lock: bool = False, only: str = ""
    ) -> list[Row]:
        del lock
        source = f"{table} WHERE {key} IN (SELECT value FROM json_each(?)){f' AND {only}' if only else ''}"
        return self.bulk(columns, source, (json.dumps(list(keys)),))

    def first_alarm_below(self) -> int | None:
        return None

    def append_events(self, at: int, groups: Sequence[Row]) -> list[tuple[int, int]]:
        added = []
        for stream, count, body in groups:
            self._connection.execute(_COUNT_EVENTS, (stream, count))
            added += self.rows(_ADD_EVENTS, (at, body, stream))
        return [(int(event_id), int(seq)) for event_id, seq in added]

    def contains(self, column: str) -> str:
        return f"{column} LIKE ? ESCAPE '!'"  # takes large and small letters of ASCII as the same by itself

    def delete_in(self, table: str, key: str, keys: Sequence[Any]) -> int:
        sql = f"DELETE FROM {table} WHERE {key} IN (SELECT value FROM json_each(?))"
        return self._connection.execute(sql, (json.dumps(list(keys)),)).rowcount

    def among(self, select: str) -> str:
        return f"IN ({select})"

    def serialize(self, what: str) -> None:
        """Every transaction is alone already."""

    def select_serialized(
        self, what: str, columns: Sequence[str], table: str, key: str, keys: Sequence[Any]
    ) -> list[Row]:
        del what
        return self.select_in(columns, table, key, keys)

    def announce(self) -> None:
        """Other processes ask `PRAGMA data_version`."""

    def oldest_transaction(self) -> OldTransaction | None:
        return None

    def database_now(self) -> int | None:
        return None


def _chunks(rows: Sequence[Row], width: int) -> Iterator[Sequence[Row]]:
    start, total = 0, len(rows)
    for size in _SIZES:
        if size * width > _MAX_PARAMS:
            continue
        while total - start >= size:
            yield rows[start : start + size]
            start += size


def _alike(table: str, head: tuple[str, ...], rows: Sequence[Row]) -> tuple[tuple[int, ...], list[Any]]:
    """Columns, never the first, that hold one value in all rows; and that value of each, then the others row by row."""
    if len(rows) < _LARGE:
        return (), list(chain.from_iterable(rows))
    columns = list(zip(*rows, strict=True))
    alike = _form(table, head, tuple(n for n, col in enumerate(columns) if n and col.count(col[0]) == len(rows)))
    others = [column for n, column in enumerate(columns) if n not in alike]
    return alike, [*[columns[n][0] for n in alike], *chain.from_iterable(zip(*others, strict=True))]


_forms: dict[tuple[str, tuple[str, ...]], list[tuple[int, ...]]] = {}


def _form(table: str, head: tuple[str, ...], alike: tuple[int, ...]) -> tuple[int, ...]:
    """The form in which to write such a batch: its own while there are few, then the best of these that fits it."""
    known = _forms.setdefault((table, head), [])
    if not alike or alike in known:
        return alike
    if len(known) < _FORMS:
        known.append(alike)
        return alike
    return max((form for form in known if set(form) <= set(alike)), key=len, default=())


@lru_cache(maxsize=256)
def _bulk_sql(columns: tuple[str, ...], source: str) -> str:
    return f"SELECT json_group_array(json_array({', '.join(columns)})) FROM {source}"


@lru_cache(maxsize=256)
def _insert_sql(table: str, columns: tuple[str, ...], count: int, on_conflict: str, alike: tuple[int, ...]) -> str:
    row = f"({','.join('?' * (len(columns) - len(alike)))})"
    values = f"VALUES {','.join([row] * count)}"
    if alike:
        values = f"SELECT {', '.join(_sources(len(columns), alike))} FROM ({values}) v"
    return f"INSERT INTO {table} ({', '.join(columns)}) {values} {on_conflict}"


@lru_cache(maxsize=256)
def _update_sql(table: str, columns: tuple[str, ...], count: int, alike: tuple[int, ...]) -> str:
    row = f"({','.join('?' * (len(columns) - len(alike)))})"
    sources = _sources(len(columns), alike)
    sets = ", ".join(f"{name} = {source}" for name, source in zip(columns[1:], sources[1:], strict=True))
    values = ",".join([row] * count)
    return f"UPDATE {table} SET {sets} FROM (VALUES {values}) v WHERE {table}.{columns[0]} = v.column1"


def _sources(width: int, alike: tuple[int, ...]) -> list[str]:
    """Where each column's value is: bound alone, or in the next column of VALUES."""
    numbers = iter(range(1, width + 1))
    return ["?" if n in alike else f"v.column{next(numbers)}" for n in range(width)]
