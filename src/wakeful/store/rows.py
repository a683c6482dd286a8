"""What all verbs on tables share: a table and its record, and the questions that are asked about them again and again.

A class of verbs names its tables once, `_runs = Rows("runs", RunRow)`, and asks by them:
`self._runs.one("WHERE id = ?", run_id)`. Columns are those of the record, by name; SQL stays visible where it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from wakeful.store.session import Session

R = TypeVar("R", bound=NamedTuple)


class Verbs:
    """Verbs on tables, made with the session of one transaction; each call is part of that transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def _value(self, sql: str, *params: Any) -> Any:
        """The first column of the first row; None where there is no row."""
        found = self._session.rows(sql, params)
        return found[0][0] if found else None

    def _text(self, sql: str, *params: Any) -> str | None:
        """The same, of a column with text."""
        found = self._value(sql, *params)
        return None if found is None else str(found)

    def _number(self, sql: str, *params: Any) -> int | None:
        """The same, of a column with numbers."""
        found = self._value(sql, *params)
        return None if found is None else int(found)

    def _count(self, sql: str, *params: Any) -> int:
        """The same, of a count or a sum, which is 0 where there is nothing."""
        return int(self._value(sql, *params) or 0)

    def _column(self, sql: str, *params: Any) -> list[Any]:
        """The first column of every row."""
        return [row[0] for row in self._session.rows(sql, params)]


class Rows(Generic[R]):
    """A table whose rows are read and written as one type of record, whose fields are its columns."""

    def __init__(self, table: str, record: type[R], columns: Sequence[str] | None = None) -> None:
        """`columns`: in the order of the record's fields, where they are not all there or not called the same."""
        self.table = table
        self.names = tuple(columns or record._fields)
        self.columns = ", ".join(self.names)
        all_given = len(self.names) == len(record._fields)
        self.make: Callable[[Iterable[Any]], R] = record._make if all_given else lambda row: record(*row)
        self._select = f"SELECT {self.columns} FROM {table} "

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, verbs: Verbs, owner: type) -> BoundRows[R]:
        """The same in the transaction of these verbs; made with the first use, and found without us from then on."""
        found = verbs.__dict__[self._name] = BoundRows(self, verbs._session)  # noqa: SLF001 - it is part of them
        return found

    def of(self, alias: str) -> str:
        """The columns, of the table under that name."""
        return ", ".join(f"{alias}.{name}" for name in self.names)

    def upsert(self, key: Sequence[str], but: Sequence[str] = ()) -> str:
        """The clause that replaces a row that is there, all of it `but` its key and these columns."""
        changed = ", ".join(f"{name} = excluded.{name}" for name in self.names if name not in (*key, *but))
        return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"


class BoundRows(Generic[R]):
    """A table in one transaction."""

    __slots__ = ("_rows", "_session")

    def __init__(self, rows: Rows[R], session: Session) -> None:
        self._rows = rows
        self._session = session

    @property
    def columns(self) -> str:
        """The columns of the record, for statements that are written out."""
        return self._rows.columns

    def of(self, alias: str) -> str:
        """The same, of the table under that name."""
        return self._rows.of(alias)

    # -- reading ------------------------------------------------------------------------------------------------------

    def one(self, rest: str, *params: Any) -> R | None:
        """The first row of `SELECT columns FROM table` and the rest of the statement; None where there is none."""
        found = self._session.rows(self._rows._select + rest, params)  # noqa: SLF001 - both are one thing
        return self._rows.make(found[0]) if found else None

    def all(self, rest: str = "", *params: Any) -> list[R]:
        """All rows of it."""
        return list(map(self._rows.make, self._session.rows(self._rows._select + rest, params)))  # noqa: SLF001

    def joined(self, alias: str, rest: str, *params: Any) -> list[R]:
        """As `all`, of the table under that name alongside others."""
        return self.answered(f"SELECT {self.of(alias)} FROM {self._rows.table} {alias} {rest}", *params)

    def locked(self, rest: str, *params: Any) -> R | None:
        """As `one`, and locked: no other transaction changes it before this one ends."""
        return self.one(rest + self._session.lock_clause, *params)

    def among(self, key: str, keys: Sequence[Any], *, only: str = "") -> list[R]:
        """The rows whose `key` is one of `keys`, in no particular order; `only`: a further condition."""
        found = self._session.select_in(self._rows.names, self._rows.table, key, keys, only=only) if keys else []
        return list(map(self._rows.make, found))

    def answered(self, sql: str, *params: Any) -> list[R]:
        """What a statement answers that is written out and gives `columns`."""
        return list(map(self._rows.make, self._session.rows(sql, params)))

    # -- writing ------------------------------------------------------------------------------------------------------

    def add(self, *rows: R, on_conflict: str = "") -> int:
        """Insert; how many went in."""
        return self._session.insert_many(self._rows.table, self._rows.names, rows, on_conflict)

    def put(self, *rows: R, key: Sequence[str], but: Sequence[str] = ()) -> None:
        """Insert, or replace the rows of the same key, all columns of them `but` these."""
        self._session.insert_many(self._rows.table, self._rows.names, rows, self._rows.upsert(key, but))

    def save(self, *rows: R) -> None:
        """Write rows that are there; the first column is the key."""
        self._session.update_many(self._rows.table, self._rows.names, rows)


def where(conditions: Iterable[tuple[str, Any]]) -> tuple[str, list[Any]]:
    """A WHERE clause of the conditions that have a value, and their values; a tuple holds the values of several."""
    said = [(condition, value) for condition, value in conditions if value is not None]
    params = [one for _, value in said for one in (value if isinstance(value, tuple) else (value,))]
    return f"WHERE {' AND '.join(condition for condition, _ in said)}" if said else "", params
