"""A store carried into another: all of it, or nothing; told the same afterwards, and going on as after a crash."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import psycopg
import pytest

from tests.store.postgres_server import postgres_url
from tests.store.rich_history import make_history
from tests.store.samples import NOW, OpenStore, job, run
from wakeful.clock import SystemClock
from wakeful.errors import JobExists, StoreError, StoreLocked, StoreUnusable
from wakeful.store import make_store
from wakeful.store.copying import STAY, copy_store
from wakeful.store.records import NodeDetails
from wakeful.store.schema_version import schema_number
from wakeful.store.sqlite_file import migrations
from wakeful.store.tables import OWN_FACTS, known_tables


def copy(origin, goal, report=lambda *_: None):
    async def main():
        source, target = make_store(origin, SystemClock()), make_store(goal, SystemClock())
        await source.open(create=False)
        try:
            await target.open()
            try:
                return await copy_store(source, target, report)
            finally:
                await target.close()
        finally:
            await source.close()

    return asyncio.run(main())


def content(url):
    """Every row of every table."""
    with OpenStore(url, SystemClock()) as store:
        return store.read(lambda tx: {table.name: tx.tables.page(table, None, 10**6) for table in known_tables()})


def carried(url):
    """The same, but for what belongs to one store alone: facts about itself, and where its files are."""
    found = content(url)
    found["meta"] = [row for row in found["meta"] if row[0] not in OWN_FACTS]
    found["run_details"] = [
        [Path(value).name if isinstance(value, str) and value.startswith("/") else value for value in row]
        for row in found["run_details"]
    ]
    return {name: sorted(map(tuple, rows)) for name, rows in found.items() if name not in STAY}


def without_nodes(found):
    return {name: rows for name, rows in found.items() if name != "nodes"}


def in_postgres(found):
    """A zero inside a text cannot be kept there."""
    return {
        name: [
            tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row) for row in rows
        ]
        for name, rows in found.items()
    }


@pytest.fixture
def file(tmp_path):
    return f"sqlite:///{tmp_path / 'from.db'}"


def test_the_tables_that_are_carried_are_all_there_are(tmp_path):
    connection = sqlite3.connect(tmp_path / "all.db")
    connection.executescript(";".join(migrations()))
    made = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for name in made}
    connection.close()
    assert {table.name: table.columns for table in known_tables()} == {
        name: tuple(column[1] for column in found) for name, found in columns.items()
    }
    assert {table.name: set(table.key) for table in known_tables()} == {
        name: {column[1] for column in found if column[5]} for name, found in columns.items()
    }


@pytest.mark.promise("X2")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_everything_arrives_and_comes_back_as_it_was(tmp_path, file, seed):
    make_history(Path(file[10:]), seed)
    there, back = postgres_url(), f"sqlite:///{tmp_path / 'back.db'}"
    counted = copy(file, there).rows
    before, after = carried(file), carried(there)
    assert without_nodes(after) == in_postgres(without_nodes(before))
    assert {name: len(rows) for name, rows in before.items() if name != "meta"} == {
        name: number for name, number in counted.items() if name != "meta"
    }
    assert min(len(before[name]) for name in ("runs", "run_details", "events", "skips", "alerts", "lanes")) > 0
    copy(there, back)
    assert carried(back) == after


def test_a_node_that_died_is_found_dead_and_all_others_have_left(file):
    make_history(Path(file[10:]), 1)
    there = postgres_url()
    copy(file, there)
    before = [NodeDetails._make(row) for row in content(file)["nodes"]]
    after = [NodeDetails._make(row) for row in content(there)["nodes"]]
    assert [node._replace(seen_at=0, stopped_at=None) for node in after] == [
        node._replace(seen_at=0, stopped_at=None) for node in before
    ]
    with OpenStore(there, SystemClock()) as store:
        holders = store.read(lambda tx: tx.tables.holders())
    assert [node.id for node in after if node.stopped_at is None] == sorted(holders) != []


def test_ids_that_the_database_gives_go_on_above_those_that_were_carried(file):
    make_history(Path(file[10:]), 2)
    there = postgres_url()
    copy(file, there)
    highest = max(row[0] for row in content(there)["events"])
    with OpenStore(there, SystemClock()) as store:
        store.write(lambda tx: tx.events.emit("run", ["started", 1, 1]))
        assert [group.id for group in store.read(lambda tx: tx.events.after(highest))] == [highest + 1]


def test_long_outputs_are_carried_too(tmp_path, file):
    make_history(Path(file[10:]), 1)
    goal = f"sqlite:///{tmp_path / 'to.db'}"
    kept = {path.name: path.read_bytes() for path in (tmp_path / "from.db.logs").iterdir()}
    copied = copy(file, goal)
    assert kept
    assert copied.files == len(kept)
    assert {path.name: path.read_bytes() for path in (tmp_path / "to.db.logs").iterdir()} == kept
    column = next(table for table in known_tables() if table.name == "run_details").columns.index("log_file")
    named = [Path(row[column]) for row in content(goal)["run_details"] if row[column] is not None]
    assert named
    assert {path.parent for path in named} == {tmp_path / "to.db.logs"}


def test_a_copy_that_is_refused_leaves_files_as_they_were(tmp_path, file):
    make_history(Path(file[10:]), 1)
    goal, logs = f"sqlite:///{tmp_path / 'to.db'}", tmp_path / "to.db.logs"
    copy(file, goal)
    kept = {path.name: path.stat().st_mtime_ns for path in logs.iterdir()}
    with pytest.raises(JobExists):
        copy(file, goal)
    assert {path.name: path.stat().st_mtime_ns for path in logs.iterdir()} == kept


def test_a_copy_that_fails_leaves_no_files(tmp_path, file):
    def fail(*_):
        raise RuntimeError("the power went off")

    make_history(Path(file[10:]), 1)
    with pytest.raises(RuntimeError, match="the power went off"):
        copy(file, f"sqlite:///{tmp_path / 'to.db'}", fail)
    assert list((tmp_path / "to.db.logs").iterdir()) == []


@pytest.fixture(params=["sqlite", "postgres"])
def goal(request, tmp_path):
    return f"sqlite:///{tmp_path / 'to.db'}" if request.param == "sqlite" else postgres_url()


def stock(url, jobs=2):
    with OpenStore(url, SystemClock()) as store:
        store.add(*(job(number, due_at=NOW) for number in range(1, jobs + 1)))
        store.add_runs(*(run(100 + number, number, outcome="success") for number in range(1, jobs + 1)))


def test_a_store_with_jobs_in_it_is_not_copied_into(file, goal):
    stock(file)
    stock(goal, jobs=1)
    before = content(goal)
    with pytest.raises(JobExists, match=r"is not empty \(1 job and 1 run\): choose an empty store"):
        copy(file, goal)
    assert content(goal) == before


def test_a_copy_that_is_cut_off_leaves_nothing(file, goal, monkeypatch):
    monkeypatch.setattr("wakeful.store.copying.PAGE", 10)
    stock(file, jobs=50)
    told = []

    def die_half_way(table, done, _total):
        told.append(table)
        if table == "runs" and done >= 30:
            raise RuntimeError("the power went off")

    with pytest.raises(RuntimeError, match="the power went off"):
        copy(file, goal, die_half_way)
    assert "jobs" in told
    found = content(goal)
    assert {name for name, rows in found.items() if rows} == {"meta", "priorities"}  # as in every new store
    assert {row[0] for row in found["meta"]} == {*OWN_FACTS, "lane_sizes"}  # as in any store without jobs
    copy(file, goal)
    assert len(content(goal)["jobs"]) == 50


def test_a_copy_that_is_cancelled_ends_soon_and_leaves_nothing(file, goal, monkeypatch):
    monkeypatch.setattr("wakeful.store.copying.PAGE", 1)
    stock(file, jobs=50)
    seen, go_on = threading.Event(), threading.Event()

    def hold(table, done, _total):
        if table == "runs" and done == 5:
            seen.set()
            go_on.wait(120)

    async def main():
        source, target = make_store(file, SystemClock()), make_store(goal, SystemClock())
        await source.open()
        await target.open()
        copying = asyncio.ensure_future(copy_store(source, target, hold))
        await asyncio.to_thread(seen.wait, 30)
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying
        go_on.set()
        await source.close()
        await target.close()

    asyncio.run(main())
    assert content(goal)["jobs"] == []


def test_while_a_file_is_copied_no_server_starts_on_either(tmp_path, file):
    stock(file)
    goal = f"sqlite:///{tmp_path / 'to.db'}"
    refused = []

    def look(*_):
        for url in (file, goal):
            with pytest.raises(StoreLocked, match="node wakeful copy") as told:
                asyncio.run(make_store(url, SystemClock()).become_engine({}))
            refused.append(str(told.value))

    copy(file, goal, look)
    assert len(refused) >= 2


def test_a_database_with_a_living_node_is_neither_read_nor_filled(file):
    stock(file)
    there = postgres_url()
    with OpenStore(there, SystemClock()) as store:
        now = store.read(lambda tx: tx.facts.database_now())
        details = '{"pid": 7, "host": "mill"}'
        rows = [NodeDetails(9, "north", now, now, None, details, None, 0, now)]
        table = next(table for table in known_tables() if table.name == "nodes")
        store.write(lambda tx: tx.tables.fill(table, rows))
    for origin, goal in ((file, there), (there, file.replace("from.db", "to.db"))):
        with pytest.raises(StoreLocked, match=r"is in use by north \(process 7 on mill\): stop it first"):
            copy(origin, goal)


def test_nothing_is_written_to_a_database_while_it_is_copied(tmp_path):
    there = postgres_url()
    stock(there)
    refused = []

    def meddle(*_):
        with psycopg.connect(there) as connection:
            connection.execute("SET lock_timeout = '50ms'")
            for change in ("DELETE FROM jobs", "INSERT INTO nodes SELECT * FROM nodes"):
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    connection.execute(change)
                connection.rollback()
                connection.execute("SET lock_timeout = '50ms'")
                refused.append(change)

    copy(there, f"sqlite:///{tmp_path / 'to.db'}", meddle)
    assert refused


def test_what_a_newer_version_wrote_is_not_copied_by_halves(file, goal):
    stock(file)
    with OpenStore(file, SystemClock()) as store:
        store.write(lambda tx: tx.facts.put({"schema": schema_number() + 1}))
    with pytest.raises(StoreUnusable, match="was written by a newer Wakeful: copy it with that version"):
        copy(file, goal)
    assert content(goal)["jobs"] == []


def test_existing_tokens_of_the_target_stay(file, goal):
    tokens = next(table for table in known_tables() if table.name == "tokens")
    for url, hashed in ((file, "ours"), (goal, "theirs")):
        stock(url, jobs=1 if url == file else 0)
        rows = [
            (hashed, "admin", "admin", NOW, None, None),
            (f"{hashed}-too", f"{hashed}-name", "viewer", NOW, None, None),
        ]
        with OpenStore(url, SystemClock()) as store:
            store.write(lambda tx, rows=rows: tx.tables.fill(tokens, rows))
    copy(file, goal)
    assert {row[0] for row in content(goal)["tokens"]} == {"theirs", "theirs-too", "ours-too"}


def test_a_store_that_cannot_be_reached_is_one_sentence(file):
    stock(file)
    with pytest.raises(StoreError, match="cannot be reached"):
        copy(file, "postgresql://nobody@127.0.0.1:1/nothing")
