"""Large batches on SQLite: a column that holds one value in all rows is bound once."""

from __future__ import annotations

import random
import sqlite3

import pytest

from wakeful.store.sqlite_session import SqliteSession

COLUMNS = ("id", "a", "b", "c", "d", "e")
SHARED = {"a": 7, "b": None, "c": "text", "d": "", "e": 2**62}


class Recorded(sqlite3.Connection):
    """A connection that keeps what was executed: the statement, and how many values were bound."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.said = []

    def execute(self, sql, params=()):
        self.said.append((sql, len(params)))
        return super().execute(sql, params)


@pytest.fixture
def connection():
    found = sqlite3.connect(":memory:", factory=Recorded)
    yield found
    found.close()


@pytest.fixture
def table(connection, request):
    """A table of its own for each test: forms are remembered by table."""
    name = request.node.originalname
    connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, a bigint, b bigint, c text, d text, e bigint)")
    connection.said.clear()
    return name


def rows_with(alike, count, first=1):
    return [
        (number, *[SHARED[name] if name in alike else f"{name}{number}" for name in COLUMNS[1:]])
        for number in range(first, first + count)
    ]


def some_columns(rng):
    return {name for name in COLUMNS[1:] if rng.random() < 0.6}


def stored(connection, table):
    return sorted(tuple(row) for row in SqliteSession(connection).bulk(COLUMNS, table))


def test_rows_arrive_as_they_are_whatever_they_have_in_common(connection, table):
    rng, session, expected = random.Random(5), SqliteSession(connection), {}
    for turn in range(40):
        count = rng.choice([1, 15, 16, 17, 100, 600])
        added = rows_with(some_columns(rng), count, first=1 + turn * 1000)
        assert session.insert_many(table, COLUMNS, added) == count
        expected |= {row[0]: row for row in added}
        changed = [(row[0], *row[3:]) for row in rows_with(some_columns(rng), count // 2, first=1 + turn * 1000)]
        session.update_many(table, (COLUMNS[0], *COLUMNS[3:]), changed)
        expected |= {row[0]: (*expected[row[0]][:3], *row[1:]) for row in changed}
    assert stored(connection, table) == [expected[number] for number in sorted(expected)]


def test_a_value_that_all_rows_share_is_bound_once(connection, table):
    session = SqliteSession(connection)
    session.insert_many(table, COLUMNS, rows_with({"a", "b", "d"}, 64))
    session.update_many(table, COLUMNS, rows_with({"b", "e"}, 64))
    assert [count for _, count in connection.said] == [3 + 64 * 3, 2 + 64 * 4]


def test_rows_that_are_alike_in_all_but_their_key_arrive(connection, table):
    session = SqliteSession(connection)
    session.insert_many(table, COLUMNS, rows_with(set(SHARED), 64))
    assert stored(connection, table) == rows_with(set(SHARED), 64)


def test_statements_stay_few_however_rows_differ(connection, table):
    rng, session = random.Random(5), SqliteSession(connection)
    session.insert_many(table, COLUMNS, rows_with((), 64))
    connection.said.clear()
    for _ in range(200):
        session.update_many(table, COLUMNS, rows_with(some_columns(rng), 64))
    assert 2 < len({sql for sql, _ in connection.said}) <= 5


def test_a_conflict_is_still_resolved_in_a_large_batch(connection, table):
    session = SqliteSession(connection)
    session.insert_many(table, COLUMNS, rows_with(set(SHARED), 64))
    conflict = "ON CONFLICT (id) DO UPDATE SET c = excluded.c"
    session.insert_many(table, COLUMNS, rows_with(set(SHARED) - {"c"}, 64), conflict)
    assert stored(connection, table) == rows_with(set(SHARED) - {"c"}, 64)
