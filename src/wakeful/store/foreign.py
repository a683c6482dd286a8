"""Reading SQLite files of other programs: tables only, read only, and never for long."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

STEPS = 20_000_000
"""How much work a file may cause: a hostile one can make a query run forever."""
LONGEST = 4 * 1024 * 1024


class FileRefused(Exception):
    """A file that cannot be read; the reason, to follow its name."""


def table_names(path: Path) -> set[str]:
    """The tables of a file, without its views."""
    with _opened(path) as connection:
        return {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def read_rows(
    path: Path, table: str, columns: Sequence[str], *, optional: Sequence[str] = (), most: int
) -> list[Mapping[str, Any]]:
    """The rows of a table; those columns that are `optional` are left out where there are none."""
    if table not in table_names(path):
        raise FileRefused(f"has no table {table}")
    with _opened(path) as connection:
        there = {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}
        missing = [name for name in columns if name not in there and name not in optional]
        if missing:
            raise FileRefused(f"has a table {table} without {', '.join(missing)}")
        wanted = [name for name in columns if name in there]
        found = connection.execute(f"SELECT {', '.join(wanted)} FROM {table} ORDER BY id LIMIT {most + 1}").fetchall()
        if len(found) > most:
            raise FileRefused(f"has more than {most} rows in {table}")
        return [dict(zip(wanted, row, strict=True)) for row in found]


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            left = [STEPS // 1000]

            def count() -> int:
                left[0] -= 1
                return left[0] < 0

            connection.set_progress_handler(count, 1000)
            yield connection
    except sqlite3.Error as error:
        raise FileRefused(f"cannot be read as SQLite: {error}") from None
