"""Stores of every released version, made by its own program (tools/release_store.py): they open with their history.

A file is copied before it is changed, and a version that is too old for a store says how to go back.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.service.real_time import real
from tests.store.postgres_server import postgres_url
from wakeful import Scheduler
from wakeful.errors import StoreFull, StoreUnusable
from wakeful.store import schema_version, upgrade_backups
from wakeful.store.schema_version import schema_number

STORES = Path(__file__).parents[1] / "data" / "stores"
RELEASES = ("0.1.0", "0.2.0", "0.3.0")


def schema_of(version):
    """The number of the last script that a release's store has."""
    script = (STORES / f"{version}.sqlite.sql").read_text(encoding="utf-8")
    return int(re.search(r"^PRAGMA user_version = (\d+);$", script, re.MULTILINE)[1])


OLDER = [version for version in RELEASES if schema_of(version) < schema_number()]


def place(kind, version, folder):
    """The address of a store as that version left it."""
    script = (STORES / f"{version}.{kind}.sql").read_text(encoding="utf-8")
    if kind == "sqlite":
        path = folder / "wakeful.db"
        with closing(sqlite3.connect(path)) as database:
            database.executescript(script)
        return f"sqlite:///{path}"
    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script)
    return url


def test_there_is_a_store_of_every_release_on_both_databases():
    assert sorted(path.name for path in STORES.iterdir()) == sorted(
        f"{version}.{kind}.sql" for version in RELEASES for kind in ("postgres", "sqlite")
    )


@pytest.mark.promise("X33")
@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@real
async def test_a_store_of_a_released_version_opens_with_its_history(kind, version, tmp_path):
    async with Scheduler(place(kind, version, tmp_path)) as scheduler:
        jobs = {job.name: job for job in await scheduler.list_jobs()}
        assert jobs.keys() == {"tick", "nightly", "once", "broken", "late", "yearly"}
        assert jobs["late"].status == "paused"
        assert jobs["once"].status == "done"
        assert jobs["nightly"].next_run_at is not None
        assert jobs["nightly"].payload["argv"] == ["./backup.sh", "--full"]
        outcomes = {name: jobs[name].last_outcome for name in ("tick", "once", "broken")}
        assert outcomes == {"tick": "success", "once": "success", "broken": "error"}
        run = (await scheduler.get_run_log("tick"))[0]
        assert run.output["output"] == "tick\n"
        assert (run.reason, run.attempt) == ("schedule", 1)
        assert "exit" in (await scheduler.get_run_log("broken"))[0].error
        assert [run.outcome for run in await scheduler.get_run_log("gone")] == ["success"]
        assert [token.name for token in await scheduler.list_tokens() if token.name == "deploy"]
        assert "made-here" in [node.name for node in await scheduler.list_nodes()]
        assert (await scheduler.get_ledger("nightly")) is not None
        assert "nightly" in str(await scheduler.explain("nightly"))


@pytest.mark.promise("X33")
@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@real
async def test_a_store_of_a_released_version_goes_on_where_it_was(kind, version, tmp_path):
    async with Scheduler(place(kind, version, tmp_path)) as scheduler:
        await scheduler.start()
        run = await scheduler.run_job("yearly")
        assert (await scheduler.wait_for_run(run)).output["output"] == "yearly\n"
        await scheduler.resume_job("late")
        assert (await scheduler.get_job("late")).status == "idle"


@pytest.mark.promise("X33")
@pytest.mark.parametrize("version", OLDER)
@real
async def test_a_file_is_copied_before_it_is_upgraded(version, tmp_path, caplog):
    url = place("sqlite", version, tmp_path)
    with caplog.at_level(logging.WARNING, "wakeful.store"):
        async with Scheduler(url):
            pass
    [(number, copy)] = upgrade_backups.copies(str(tmp_path / "wakeful.db"))
    assert f"from schema {number} to {schema_number()}" in caplog.text
    assert str(copy) in caplog.text
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (number,)
        assert database.execute("SELECT count(*) FROM runs").fetchone()[0] == 4
    async with Scheduler(url):
        assert [file for _, file in upgrade_backups.copies(str(tmp_path / "wakeful.db"))] == [copy]


@real
async def test_no_more_than_three_copies_are_kept_and_a_new_store_has_none(tmp_path):
    path = tmp_path / "wakeful.db"
    async with Scheduler(f"sqlite:///{path}"):
        assert upgrade_backups.copies(str(path)) == []
    path.unlink()
    url = place("sqlite", "0.2.0", tmp_path)
    for number in (3, 5, 8, 9):
        (tmp_path / f"wakeful.db.schema-{number}").write_text("")
    (tmp_path / "wakeful.db.schema-mine").write_text("")
    async with Scheduler(url):
        pass
    assert [number for number, _ in upgrade_backups.copies(str(path))] == [8, 9, 31]
    assert (tmp_path / "wakeful.db.schema-mine").exists()


@pytest.mark.promise("X33")
@real
async def test_a_store_that_cannot_be_copied_is_not_changed(tmp_path, monkeypatch):
    url = place("sqlite", "0.2.0", tmp_path)
    before = (tmp_path / "wakeful.db").read_bytes()

    def full(*_):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(upgrade_backups, "_number_in", full)
    with pytest.raises(StoreFull, match="make room there"):
        await Scheduler(url).open()
    with closing(sqlite3.connect(tmp_path / "wakeful.db")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (31,)
    assert len((tmp_path / "wakeful.db").read_bytes()) == len(before)
    assert [file.name for file in tmp_path.glob("*schema-*")] == []


@pytest.mark.promise("X33")
@real
async def test_a_version_that_is_too_old_says_how_to_go_back_and_that_works(tmp_path, monkeypatch):
    url, path = place("sqlite", "0.2.0", tmp_path), tmp_path / "wakeful.db"
    async with Scheduler(url):
        pass
    with closing(sqlite3.connect(path)) as database, database:
        newer = schema_number() + 1
        database.execute(f"PRAGMA user_version = {newer}")
        database.execute("UPDATE meta SET value = ? WHERE key = ?", (str(newer), schema_version.OLDEST_KEY))
    with pytest.raises(StoreUnusable, match="was written by a newer Wakeful") as refused:
        await Scheduler(url).open()
    [(_, copy)] = upgrade_backups.copies(str(path))
    assert f"copy {copy} to {path}" in str(refused.value)
    path.write_bytes(copy.read_bytes())
    for left in (*tmp_path.glob("*-wal"), *tmp_path.glob("*-shm")):
        left.unlink()
    async with Scheduler(url) as scheduler:
        assert (await scheduler.get_job("tick")).last_outcome == "success"
