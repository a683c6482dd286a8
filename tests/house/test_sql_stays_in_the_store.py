"""SQL and the drivers that speak it live in store/ alone."""

from __future__ import annotations

import re

import pytest

from tests.house.source import PACKAGE, ROOT, imports, modules, strings

DRIVERS = {"aiosqlite", "asyncpg", "psycopg", "psycopg_pool", "sqlalchemy", "sqlite3"}
SQL = re.compile(
    r"""
      ^\s*(select\s.+\sfrom\s | update\s+\w+\s+set\s | with\s+\w+\s+as\s*\()
    | \b(insert\s+(or\s+\w+\s+)?into\s+\w+\s*(\(|values|select) | delete\s+from\s+\w+\s+where)\b
    | ^\s*(create\s+(unique\s+)?(table|index|view|trigger)\s | alter\s+table\s | drop\s+(table|index)\s | pragma\s+\w)
    | ^\s*begin\s+(immediate|exclusive|deferred)
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def test_no_module_outside_the_store_holds_sql():
    found = [
        f"{module.at(line)}: {text.strip()[:60]!r}"
        for module in modules()
        if module.room != "store" and module.path.name != "tables.py"
        for text, line in strings(module)
        if SQL.search(text)
    ]
    assert found == []


def test_no_module_outside_the_store_imports_a_driver():
    found = [
        f"{module.at(line)}: {name}"
        for module in modules()
        if module.room != "store"
        for name, line in imports(module)
        if name.partition(".")[0] in DRIVERS
    ]
    assert found == []


def test_sql_files_lie_in_the_store():
    elsewhere = [path for path in PACKAGE.rglob("*.sql") if (PACKAGE / "store") not in path.parents]
    assert [str(path.relative_to(ROOT)) for path in elsewhere] == []


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [
        ("SELECT id FROM jobs WHERE due_at <= :now", True),
        ("\n  update jobs\n  set due_at = NULL", True),
        ("INSERT OR IGNORE INTO runs (id) VALUES (?)", True),
        ("CREATE UNIQUE INDEX one_slot ON runs (job, slot)", True),
        ("PRAGMA journal_mode = WAL", True),
        ("Select a job with its id or its name.", False),
        ("The update set nothing: the job is already paused.", False),
        ("from 09:00 to 22:00", False),
    ],
)
def test_sql_is_distinguished_from_english(text, is_sql):
    assert bool(SQL.search(text)) is is_sql
