"""Everything a store holds, table by table, for copies to another store.

Which tables there are is read from the schema's own scripts. Rows travel in the order of their keys, a page at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wakeful.store.rows import Verbs
from wakeful.store.schema_shape import Table, tables_after
from wakeful.store.schema_version import DOMAINS_KEY, NUMBER_KEY, OLDEST_KEY, left_behind, schema_number, steps

if TYPE_CHECKING:
    from wakeful.store.session import Row

#: Tables with user data: a store with rows in any of these is not empty.
PRECIOUS: dict[str, None] = {"jobs": None, "runs": None}
#: Tables that are merged: existing tokens stay, and a name that is taken keeps its own.
JOINED = ("tokens",)
#: What a store says about itself alone.
OWN_FACTS = (OLDEST_KEY, NUMBER_KEY, DOMAINS_KEY)


def known_tables() -> list[Table]:
    """The tables of the schema this code knows, in the order they came."""
    return tables_after(step.script for step in steps())


class Tables(Verbs):
    """Verbs on whole tables; each call is part of the transaction it was made in."""

    def hold(self, tables: Sequence[Table]) -> None:
        """From here to the end of the transaction no other one changes anything, and no node begins."""
        if not self._session.exclusive:
            names = ", ".join(table.name for table in tables)
            self._session.execute(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")

    def count(self, name: str) -> int:
        return self._count(f"SELECT count(*) FROM {name}")

    def beyond_newest(self, name: str, column: str, most: int) -> int:
        """The value below which a table's rows are more than its `most` newest; 0 where there are no more."""
        sql = f"SELECT {column} FROM {name} WHERE {column} IS NOT NULL ORDER BY {column} DESC LIMIT 1 OFFSET ?"
        return self._count(sql, max(0, most - 1))

    def row_counts(self) -> dict[str, int]:
        """How many rows of user data there are."""
        return {name: number for name in PRECIOUS if (number := self.count(name))}

    def too_new(self) -> bool:
        """Whether the store has tables or columns that this code does not know, and would leave behind."""
        found = self._session.rows("SELECT value FROM meta WHERE key = ?", (NUMBER_KEY,))
        return bool(found) and int(found[0][0]) > schema_number()

    def unknown_domains(self) -> list[str]:
        """The domains outside Wakeful whose tables this code does not know, or not all of them."""
        found = self._session.rows("SELECT value FROM meta WHERE key = ?", (DOMAINS_KEY,))
        return left_behind({DOMAINS_KEY: found[0][0]}) if found else []

    def page(self, table: Table, after: Row | None, limit: int) -> list[Row]:
        """The next rows, by key; `after` is the last row of the page before, None for the first."""
        keys = ", ".join(table.key)
        where, params = "", list[Any]()
        if after is not None:
            where = f"WHERE ({keys}) > ({', '.join('?' * len(table.key))})"
            params = [after[table.columns.index(name)] for name in table.key]
        sql = f"SELECT {', '.join(table.columns)} FROM {table.name} {where} ORDER BY {keys} LIMIT ?"
        return self._session.rows(sql, (*params, limit))

    def holders(self) -> set[int]:
        """The nodes that have runs in progress."""
        sql = "SELECT DISTINCT node FROM runs WHERE finished_at IS NULL AND status = 'active' AND node IS NOT NULL"
        return set(self._column(sql))

    def clear(self, tables: Sequence[Table]) -> None:
        """Empty the tables; what the store says about itself stays."""
        for table in tables:
            if table.name != "meta" and table.name not in JOINED:
                self._session.execute(f"DELETE FROM {table.name}")
        self._session.execute(f"DELETE FROM meta WHERE key NOT IN ({', '.join('?' * len(OWN_FACTS))})", OWN_FACTS)

    def fill(self, table: Table, rows: Sequence[Row]) -> None:
        if not self._session.exclusive:
            # PostgreSQL does not store NUL in a text, and the text of an error matters more than that character.
            rows = [[_without_nul(value) for value in row] for row in rows]
        conflict = "ON CONFLICT DO NOTHING" if table.name in JOINED else ""
        self._session.insert_many(table.name, table.columns, rows, conflict)

    def go_on_counting(self) -> None:
        """Ids that the database assigns continue above those that were copied here."""
        if not self._session.exclusive:  # SQLite counts on from the highest by itself
            self._session.rows(
                "SELECT setval(pg_get_serial_sequence('events', 'id'), coalesce(max(id), 0) + 1, false) FROM events"
            )


def _without_nul(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
