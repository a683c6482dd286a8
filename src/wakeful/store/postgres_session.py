"""One PostgreSQL transaction, shaped so that a batch is one statement and its plan never depends on luck.

Rows travel as one array per column through `unnest`, so a batch of any size is the same statement and stays prepared.
A row that is alone travels as it is: what is claimed one by one should start soon, and this takes the server less time.
Batches that are written to different tables travel together: one is put off until the next is there or a question is
asked, and they become one statement. Each statement that is waited for delays the start of what was claimed.
Where the shared verbs lock, this is where the locks are: other nodes write at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any
from zlib import crc32

from wakeful.store.alarms import first_below
from wakeful.store.session import OldTransaction

if TYPE_CHECKING:
    import psycopg

    from wakeful.clock import Clock
    from wakeful.store.alarm_watermark import Watermark
    from wakeful.store.session import Row

#: Of each column of each table, as the database names it.
Types = Mapping[tuple[str, str], str]

#: Our own space among the advisory locks of a database that may be shared with others.
LOCK_SPACE = 0x57414B45  # "WAKE"

_NUMBERS = {int, type(None)}
_TEXTS = {str}


#: Of other sessions on this database, those that hold a snapshot or have written; and prepared transactions.
_OLDEST_TRANSACTION = """
SELECT pid, name, usr, greatest(0, extract(epoch FROM statement_timestamp() - since) * 1000)::bigint FROM (
    SELECT pid, application_name AS name, usename::text AS usr, xact_start AS since FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    UNION ALL SELECT NULL, gid, owner::text, prepared FROM pg_prepared_xacts WHERE database = current_database()
) held ORDER BY since LIMIT 1
"""

#: A reader of events continues from the last id it saw, so ids must become visible in their order. The lock is taken
#: before the first id is drawn, and after all that may have to wait for others: `done` reads what was put off to its
#: end. One statement, because each that is waited for delays the start of what was claimed.
_APPEND_EVENTS = """
WITH {parts}alone AS MATERIALIZED (SELECT pg_advisory_xact_lock(%s::int, %s::int){done}),
said AS MATERIALIZED (
    SELECT v.* FROM alone, unnest(%s::text[], %s::bigint[], %s::text[])
        WITH ORDINALITY AS v (stream, events, body, place)
), counted AS (
    INSERT INTO streams (stream, seq) SELECT stream, events FROM said
    ON CONFLICT (stream) DO UPDATE SET seq = streams.seq + excluded.seq RETURNING stream, seq
)
INSERT INTO events (stream, seq, at, body)
SELECT s.stream, c.seq, %s, s.body FROM said s JOIN counted c ON c.stream = s.stream ORDER BY s.place
RETURNING stream, id, seq, CASE WHEN %s::text IS NOT NULL THEN pg_notify(%s::text, %s::text) END
"""

#: The same for the events of one stream, which is what most transactions have.
_APPEND_TO_ONE = """
WITH {parts}alone AS MATERIALIZED (SELECT pg_advisory_xact_lock(%s::int, %s::int){done}),
counted AS (
    INSERT INTO streams (stream, seq) SELECT %s::text, %s::bigint FROM alone
    ON CONFLICT (stream) DO UPDATE SET seq = streams.seq + excluded.seq RETURNING stream, seq
)
INSERT INTO events (stream, seq, at, body)
SELECT stream, seq, %s, %s::text FROM counted
RETURNING stream, id, seq, CASE WHEN %s::text IS NOT NULL THEN pg_notify(%s::text, %s::text) END
"""

#: On which processes notify each other of what may be due.
CHANNEL = "wakeful"


class _Write:
    """Rows of one table that are to be inserted, or (`on_conflict` None) updated by their first column."""

    def __init__(self, table: str, columns: Sequence[str], rows: Sequence[Row], on_conflict: str | None) -> None:
        self.table = table
        self.columns = tuple(columns)
        self.rows = list(rows)
        self.on_conflict = on_conflict
        self._keys: set[Any] | None = None

    def took_in(self, later: _Write) -> bool:
        """Whether the rows of the later one are now written with these, as if one after the other."""
        if (later.columns, later.on_conflict) != (self.columns, self.on_conflict) or self.on_conflict:
            return False
        if self.on_conflict is None:  # of two updates of one row, one statement would make either
            self._keys = self._keys if self._keys is not None else {row[0] for row in self.rows}
            keys = {row[0] for row in later.rows}
            if not self._keys.isdisjoint(keys):
                return False
            self._keys |= keys
        self.rows += later.rows
        return True


class PostgresSession:
    """Statements on a connection whose transaction the caller begins and ends."""

    exclusive = False

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        types: Types,
        *,
        writing: bool,
        clock: Clock | None = None,
        watermark: Watermark | None = None,
        repeated: bool = False,
    ) -> None:
        """`clock`: stands for the server's clock in virtual time. `watermark`: of the process that writes.

        `repeated`: the transaction was begun before, and undone.
        """
        self._connection = connection
        self.now = 0
        self._types = types
        self._writing = writing
        self._clock = clock
        self.watermark = watermark
        self.repeated = repeated
        # A snapshot that only reads must not lock, and the server would refuse it.
        self.lock_clause = " FOR UPDATE" if writing else ""
        self.skip_clause = " FOR UPDATE SKIP LOCKED" if writing else ""
        self.serialized: set[str] = set()
        self.announced = False
        self.notice: str | None = None  # to be sent to other processes, with the events or alone
        self._put_off: dict[str, _Write] = {}  # what is to be written, by table

    def execute(self, sql: str, params: Row = ()) -> int:
        return self._run(translated(sql), params).rowcount

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        return self._run(translated(sql), params).fetchall()

    def bulk(self, columns: Sequence[str], source: str, params: Row = ()) -> list[Row]:
        return self.rows(f"SELECT {', '.join(columns)} FROM {source}", params)

    def insert_many(self, table: str, columns: Sequence[str], rows: Sequence[Row], on_conflict: str = "") -> int:
        if not rows:
            return 0
        self._note_alarms(table, columns, rows)
        if table in self._put_off:
            self.finish()
        return self._together(*self._statement(_Write(table, columns, rows, on_conflict))).rowcount

    def insert_soon(self, table: str, columns: Sequence[str], rows: Sequence[Row], on_conflict: str = "") -> None:
        if rows:
            self._note_alarms(table, columns, rows)
            self._write_soon(_Write(table, columns, rows, on_conflict))

    def update_many(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if rows:
            self._note_alarms(table, columns, rows)
            self._write_soon(_Write(table, columns, rows, None))

    def finish(self) -> None:
        """Write what was put off."""
        if self._put_off:
            _, last = self._put_off.popitem()
            self._together(*self._statement(last))

    def _statement(self, write: _Write) -> tuple[str, list[str | None]]:
        table, head, casts = write.table, write.columns, self._casts(write.table, write.columns)
        alone = len(write.rows) == 1
        if write.on_conflict is None:
            if not alone:
                return _update_sql(table, head, casts), _arrays(write.rows)
            key, *others = _texts(write.rows[0])
            return _update_one_sql(table, head, casts), [*others, key]
        if alone:
            return _insert_one_sql(table, head, casts, write.on_conflict), _texts(write.rows[0])
        return _insert_sql(table, head, casts, write.on_conflict), _arrays(write.rows)

    def _write_soon(self, write: _Write) -> None:
        # Parts of one statement do not see each other's writes: of two to one table, the first must be done before, or
        # both are one.
        earlier = self._put_off.get(write.table)
        if earlier is not None and earlier.took_in(write):
            return
        if earlier is not None:
            self.finish()
        self._put_off[write.table] = write

    def _take_put_off(self) -> list[tuple[str, list[str | None]]]:
        """What was put off, as statements; the caller writes it."""
        earlier, self._put_off = list(self._put_off.values()), {}
        return [self._statement(write) for write in earlier]

    def _together(self, sql: str, params: list[str | None]) -> psycopg.Cursor[Any]:
        """Run one statement, and what was put off as a part of it."""
        if self._put_off:
            earlier = self._take_put_off()
            parts = ", ".join(f"part_{number} AS ({part})" for number, (part, _) in enumerate(earlier))
            sql, params = f"WITH {parts} {sql}", [*chain.from_iterable(given for _, given in earlier), *params]
        return self._connection.execute(sql, params)

    def _run(self, sql: str, params: Row) -> psycopg.Cursor[Any]:
        self.finish()
        return self._connection.execute(sql, params)

    def select_in(
        self, columns: Sequence[str], table: str, key: str, keys: Sequence[Any], *, lock: bool = False, only: str = ""
    ) -> list[Row]:
        (cast,) = self._casts(table, (key,))
        # In the order of the key: two transactions that want the same rows meet at the first, and none waits in a ring.
        end = f" ORDER BY {key}{self.lock_clause}" if lock else ""
        also = f" AND {only}" if only else ""
        sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {key} = ANY (%s::{cast}){also}{end}"
        return self._run(sql, (_array(keys),)).fetchall()

    def _note_alarms(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if self.watermark is not None and table == "job_state" and "due_at" in columns:
            column = columns.index("due_at")
            alarms = [row[column] for row in rows if row[column] is not None]
            if alarms:
                self.watermark.armed(min(alarms))

    def first_alarm_below(self) -> int | None:
        if self.watermark is None:
            return None
        # By a bitmap, which reads each page once: in the order of the index, each entry that is kept for a snapshot of
        # another session costs a page.
        self.rows("SELECT set_config('enable_indexscan', 'off', true)")
        sql, params = first_below(self.watermark)
        found = self.rows(f"SELECT ({sql}), set_config('enable_indexscan', 'on', true)", params)
        return int(found[0][0]) if found[0][0] is not None else None

    def append_events(self, at: int, groups: Sequence[Row]) -> list[tuple[int, int]]:
        lock = (LOCK_SPACE, lock_number("events"))
        notice = (self.notice, CHANNEL, self.notice)
        params: tuple[object, ...]
        if len(groups) == 1:
            ((stream, count, body),) = groups
            sql, params = _APPEND_TO_ONE, (*lock, stream, count, at, body, *notice)
        else:
            sql, params = _APPEND_EVENTS, (*lock, *_arrays(groups), at, *notice)
        if any(len(write.rows) > 1 for write in self._put_off.values()):
            self.finish()  # many rows cost more to be read once again than one more statement
        earlier = self._take_put_off()
        sql = _after(sql, tuple(part for part, _ in earlier))
        rows = self._connection.execute(sql, [*chain.from_iterable(given for _, given in earlier), *params]).fetchall()
        self.serialized.add("events")
        self.notice = None
        added = {stream: (int(event_id), int(seq)) for stream, event_id, seq, _ in rows}
        return [added[stream] for stream, _, _ in groups]

    def contains(self, column: str) -> str:
        return f"lower({column}) LIKE ? ESCAPE '!'"

    def delete_in(self, table: str, key: str, keys: Sequence[Any]) -> int:
        (cast,) = self._casts(table, (key,))
        sql = f"DELETE FROM {table} WHERE {key} = ANY (%s::{cast})"
        return self._run(sql, (_array(keys),)).rowcount

    def among(self, select: str) -> str:
        # ARRAY makes the server run the select once; as a plain IN it may run, and lock, again for every row.
        return f"= ANY (ARRAY({select}{self.skip_clause}))"

    def serialize(self, what: str) -> None:
        if self._writing and what not in self.serialized:
            self._run("SELECT pg_advisory_xact_lock(%s::int, %s::int)", (LOCK_SPACE, lock_number(what)))
            self.serialized.add(what)

    def select_serialized(
        self, what: str, columns: Sequence[str], table: str, key: str, keys: Sequence[Any]
    ) -> list[Row]:
        if self._writing and what not in self.serialized:
            (cast,) = self._casts(table, (key,))
            # The lock is a condition on no row: it is taken before the first is read, and also where there is none. The
            # statement sees what was there before it waited, but it reads the rows that it locks as they are then.
            sql = (
                f"SELECT {', '.join(columns)} FROM {table} WHERE (SELECT pg_advisory_xact_lock(%s::int, %s::int)) "
                f"IS NOT NULL AND {key} = ANY (%s::{cast}) FOR UPDATE"
            )
            found = self._run(sql, (LOCK_SPACE, lock_number(what), _array(keys))).fetchall()
            self.serialized.add(what)
            if len(found) == len(set(keys)):
                return found
        return self.select_in(columns, table, key, keys)

    def announce(self) -> None:
        self.announced = True

    def notify(self) -> None:
        """Send what was not sent with events; it arrives with the commit."""
        if self.notice is not None:
            self._together("SELECT pg_notify(%s::text, %s::text)", [CHANNEL, self.notice])
            self.notice = None

    def oldest_transaction(self) -> OldTransaction | None:
        found = self.rows(_OLDEST_TRANSACTION)
        return OldTransaction._make(found[0]) if found else None

    def database_now(self) -> int | None:
        if self._clock is not None:
            return self._clock.now()
        # The one question about time that must go to the database: nodes whose clocks differ agree on its answer.
        (row,) = self.rows("SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint")
        return int(row[0])

    def _casts(self, table: str, columns: Sequence[str]) -> tuple[str, ...]:
        return tuple([self._types[table, column] + "[]" for column in columns])


def lock_number(what: str) -> int:
    """The advisory lock of that name: the same in every process and every version."""
    return crc32(what.encode()) >> 1


@lru_cache(maxsize=512)
def translated(sql: str) -> str:
    """Our parameters as the driver wants them; in our queries a question mark is never anything else."""
    return sql.replace("%", "%%").replace("?", "%s")


@lru_cache(maxsize=256)
def _after(sql: str, parts: tuple[str, ...]) -> str:
    """A statement that appends events, with these parts before it."""
    named = "".join(f"part_{number} AS ({part} RETURNING 1), " for number, part in enumerate(parts))
    done = ", ".join(f"(SELECT count(*) FROM part_{number}) done_{number}" for number in range(len(parts)))
    return sql.format(parts=named, done=f" FROM {done}" if done else "")


@lru_cache(maxsize=256)
def _insert_sql(table: str, columns: tuple[str, ...], casts: tuple[str, ...], on_conflict: str) -> str:
    arrays = ", ".join(f"%s::{cast}" for cast in casts)
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({arrays}) {on_conflict}"


@lru_cache(maxsize=256)
def _update_sql(table: str, columns: tuple[str, ...], casts: tuple[str, ...]) -> str:
    arrays = ", ".join(f"%s::{cast}" for cast in casts)
    sets = ", ".join(f"{name} = v.{name}" for name in columns[1:])
    return (
        f"UPDATE {table} SET {sets} FROM unnest({arrays}) AS v ({', '.join(columns)}) "
        f"WHERE {table}.{columns[0]} = v.{columns[0]}"
    )


@lru_cache(maxsize=256)
def _insert_one_sql(table: str, columns: tuple[str, ...], casts: tuple[str, ...], on_conflict: str) -> str:
    values = ", ".join(f"%s::{cast.removesuffix('[]')}" for cast in casts)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}) {on_conflict}"


@lru_cache(maxsize=256)
def _update_one_sql(table: str, columns: tuple[str, ...], casts: tuple[str, ...]) -> str:
    values = [f"{name} = %s::{cast.removesuffix('[]')}" for name, cast in zip(columns, casts, strict=True)]
    return f"UPDATE {table} SET {', '.join(values[1:])} WHERE {values[0]}"


def _texts(row: Row) -> list[str | None]:
    """The values of a row as the server reads them: all of one type to the driver, or it would prepare one statement
    for each mixture of types.
    """
    return [value if value is None or isinstance(value, str) else str(int(value)) for value in row]


def _arrays(rows: Sequence[Row]) -> list[str | None]:
    return [_array(column) for column in zip(*rows, strict=True)]


def _array(values: Sequence[Any]) -> str:
    """An array as the server reads it; written here because the driver's own way costs more than the statement."""
    # Most columns of most batches say the same in every row: one moment, one outcome, nothing.
    if values and values[0] == values[-1] and len(set(values)) == 1:
        return "{" + ",".join([_element(values[0])] * len(values)) + "}"
    kinds = set(map(type, values))
    if kinds <= _NUMBERS:
        text = ",".join(map(str, values))
        return "{" + (text if len(kinds) == 1 and int in kinds else text.replace("None", "NULL")) + "}"
    if kinds == _TEXTS:
        # All at once, a NUL between two: no text may have one inside. One that has is left to the driver to refuse.
        text = "\0".join(values)
        if text.count("\0") == len(values) - 1:
            return '{"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '","') + '"}'
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(int(value))
