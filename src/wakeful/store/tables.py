"""Everything a store holds, table by table, for copies to another store.

Which tables there are, and what is in them, is read from the schema's own scripts: a table that is added later is
carried along without a change here. Rows travel in the order of their keys, a page at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.store.schema_version import NUMBER_KEY, OLDEST_KEY, schema_number, steps

if TYPE_CHECKING:
    from wakeful.store.session import Row, Session

#: What somebody would miss: a store with any of these is not empty.
PRECIOUS: dict[str, None] = {"jobs": None, "runs": None}
#: What is added to what is there: tokens stay, and a name that is taken keeps its own.
JOINED = ("tokens",)
#: What a store says about itself alone.
OWN_FACTS = (OLDEST_KEY, NUMBER_KEY)


class Table(NamedTuple):
    """A table, its columns in order, and those that are its primary key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


def known_tables() -> list[Table]:
    """The tables of the schema this code knows, in the order they came."""
    found: dict[str, Table] = {}
    for step in steps():
        text = "\n".join(line.partition("--")[0] for line in step.script.splitlines())
        for statement in text.split(";"):
            _read(" ".join(statement.split()), found)
    return list(found.values())


def _read(statement: str, found: dict[str, Table]) -> None:
    """What one statement of a script does to the tables."""
    if made := re.fullmatch(r"CREATE TABLE (\w+) \((.*)\)", statement):
        found[made[1]] = _table(made[1], _parts(made[2]))
    elif more := re.match(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", statement):
        table = found[more[1]]
        found[more[1]] = table._replace(columns=(*table.columns, more[2]))
    elif less := re.match(r"ALTER TABLE (\w+) DROP COLUMN (\w+)", statement):
        table = found[less[1]]
        found[less[1]] = table._replace(columns=tuple(name for name in table.columns if name != less[2]))
    elif gone := re.match(r"DROP TABLE (\w+)", statement):
        del found[gone[1]]
    elif re.match(r"ALTER TABLE", statement):
        message = f"unsupported migration statement: {statement}"
        raise ValueError(message)


def _parts(inside: str) -> list[str]:
    """The columns and rules of a table, cut at the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _table(name: str, parts: Sequence[str]) -> Table:
    columns, key = list[str](), list[str]()
    for part in parts:
        if rule := re.fullmatch(r"PRIMARY KEY \((.*)\)", part):
            key = [column.strip() for column in rule[1].split(",")]
        elif not re.match(r"(CHECK|UNIQUE|FOREIGN|CONSTRAINT)\b", part):
            columns.append(part.split()[0])
            key += [columns[-1]] if "PRIMARY KEY" in part else []
    return Table(name, tuple(columns), tuple(key))


class Tables:
    """Verbs on whole tables; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def hold(self, tables: Sequence[Table]) -> None:
        """From here to the end of the transaction no other one changes anything, and no node begins."""
        if not self._session.exclusive:
            names = ", ".join(table.name for table in tables)
            self._session.execute(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")

    def count(self, name: str) -> int:
        return int(self._session.rows(f"SELECT count(*) FROM {name}")[0][0])

    def row_counts(self) -> dict[str, int]:
        """How many rows there are of what somebody would miss."""
        return {name: number for name in PRECIOUS if (number := self.count(name))}

    def too_new(self) -> bool:
        """Whether the store has tables or columns that this code does not know, and would leave behind."""
        found = self._session.rows("SELECT value FROM meta WHERE key = ?", (NUMBER_KEY,))
        return bool(found) and int(found[0][0]) > schema_number()

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
        return {int(row[0]) for row in self._session.rows(sql)}

    def clear(self, tables: Sequence[Table]) -> None:
        """Empty the tables; what the store says about itself stays."""
        for table in tables:
            if table.name != "meta" and table.name not in JOINED:
                self._session.execute(f"DELETE FROM {table.name}")
        self._session.execute("DELETE FROM meta WHERE key <> ? AND key <> ?", OWN_FACTS)

    def fill(self, table: Table, rows: Sequence[Row]) -> None:
        if not self._session.exclusive:
            # PostgreSQL knows no NUL in a text, and what an error said is worth more than that letter.
            rows = [[_without_nul(value) for value in row] for row in rows]
        conflict = "ON CONFLICT DO NOTHING" if table.name in JOINED else ""
        self._session.insert_many(table.name, table.columns, rows, conflict)

    def go_on_counting(self) -> None:
        """Ids that the database gives continue above those that were carried here."""
        if not self._session.exclusive:  # SQLite counts on from the highest by itself
            self._session.rows(
                "SELECT setval(pg_get_serial_sequence('events', 'id'), coalesce(max(id), 0) + 1, false) FROM events"
            )


def _without_nul(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
