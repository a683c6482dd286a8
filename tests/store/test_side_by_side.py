"""Two versions on one store: what only adds lets them work together, what takes away waits for the older one to go.

The code under test is the older of the two: the newer one has a script more. Each is a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
from collections import Counter

import psycopg
import pytest

from tests.service.real_time import real
from tests.store.another_process import PATIENCE_S, AnotherProcess
from tests.store.postgres_server import postgres_url
from tests.store.samples import OpenStore, job
from wakeful import Manual, Scheduler
from wakeful.clock import SystemClock
from wakeful.errors import StoreLocked, StoreUnusable
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.store import nodes, schema_version
from wakeful.store.records import NodeRow
from wakeful.store.schema_version import FOLDERS, schema_number, steps

FOLDER = FOLDERS["wakeful"]

ADDS = """
ALTER TABLE jobs ADD COLUMN colour text;
ALTER TABLE runs ADD COLUMN weight bigint NOT NULL DEFAULT 1;
CREATE TABLE colours (name text PRIMARY KEY);
"""
TAKES_AWAY = "ALTER TABLE nodes DROP COLUMN loop_at;\n"

#: A process of another version: it says what became of opening the store, then works until the test is done with it.
OTHER_VERSION = """
import json, logging
from pathlib import Path
from wakeful import Scheduler
from wakeful.store import schema_version
schema_version.FOLDERS["wakeful"] = Path({folder!r})

async def main():
    scheduler = Scheduler(url, node={name!r}, timezone="UTC")
    scheduler.on_job_due("work", work)
    try:
        await scheduler.open()
        await scheduler.start()
    except SchedulerError as error:
        say(type(error).__name__, error)
        return
    say("working")
    loop = asyncio.get_running_loop()
    if await loop.run_in_executor(None, sys.stdin.readline):
        await scheduler.stop()
        say("left")
    await scheduler.close()

async def work(run):
    return {name!r}

asyncio.run(main())
"""


def folder_of(tmp_path, name, script, oldest=None):
    """The scripts of a newer version: ours, and one more."""
    folder = shutil.copytree(FOLDER, tmp_path / name)
    head = f"-- oldest: {oldest}\n" if oldest is not None else ""
    (folder / f"{schema_number() + 1:04}_more.sql").write_text(head + script)
    return folder


def version(url, folder, name):
    return AnotherProcess(OTHER_VERSION.format(folder=str(folder), name=name), url)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path / 'wakeful.db'}" if request.param == "sqlite" else postgres_url()


@pytest.fixture
def shared():
    return postgres_url()


def number_in(url):
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url[10:])
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        connection.close()
        return found
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT max(version) FROM wakeful_schema").fetchone()[0]


# -- the scripts ------------------------------------------------------------------------------------------------------


def test_every_script_says_which_code_it_still_suits():
    assert [step.number for step in steps() if not step.script.startswith("-- oldest: ")] == []
    assert all(1 <= step.oldest <= step.number for step in steps())


def test_a_script_that_takes_something_away_suits_only_code_that_came_with_it_or_later():
    # Without an index a question is slower, and answered all the same.
    takes = re.compile(
        r"\b(DROP(?! INDEX)|RENAME|ALTER COLUMN)\b|ADD COLUMN \w+ \w+ NOT NULL(?! DEFAULT)", re.IGNORECASE
    )
    wrong = [step.number for step in steps() if takes.search(step.script) and step.oldest < step.number]
    assert wrong == []


def test_a_lease_is_as_long_for_a_schema_change_as_for_the_nodes():
    assert LeaseTimes().lease_ms == nodes.LEASE_MS


# -- opening ----------------------------------------------------------------------------------------------------------


def open_as(url, folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(schema_version.FOLDERS, "wakeful", folder)
        with OpenStore(url, SystemClock()):
            pass


def test_a_store_that_only_grew_is_used_by_code_that_does_not_know_how(url, tmp_path, monkeypatch):
    with OpenStore(url, SystemClock()) as store:
        store.add(job(1))
    open_as(url, folder_of(tmp_path, "next", ADDS, oldest=1), monkeypatch)
    assert number_in(url) == schema_number() + 1
    with OpenStore(url, SystemClock()) as store:
        store.add(job(2))
        assert set(store.read(lambda tx: tx.jobs.definitions([1, 2]))) == {1, 2}
    assert number_in(url) == schema_number() + 1


def test_a_store_that_lost_something_refuses_code_that_needs_it_and_says_which_will_do(url, tmp_path, monkeypatch):
    with OpenStore(url, SystemClock()):
        pass
    mine = schema_number()
    folder = folder_of(tmp_path, "next", TAKES_AWAY, oldest=mine + 1)
    open_as(url, folder, monkeypatch)
    words = rf"schema {mine + 1}, for versions that know schema {mine + 1} or later; this one knows {mine}\): upgrade"
    with pytest.raises(StoreUnusable, match=words):
        OpenStore(url, SystemClock()).__enter__()


def test_a_script_that_says_nothing_suits_no_earlier_version(url, tmp_path, monkeypatch):
    with OpenStore(url, SystemClock()):
        pass
    open_as(url, folder_of(tmp_path, "next", ADDS), monkeypatch)
    with pytest.raises(StoreUnusable, match="newer Wakeful"):
        OpenStore(url, SystemClock()).__enter__()


def test_what_was_once_needed_stays_needed(url, tmp_path, monkeypatch):
    with OpenStore(url, SystemClock()):
        pass
    mine = schema_number()
    folder = folder_of(tmp_path, "next", TAKES_AWAY, oldest=mine + 1)
    (folder / f"{mine + 2:04}_even_more.sql").write_text(f"-- oldest: 1\n{ADDS}")
    open_as(url, folder, monkeypatch)
    with pytest.raises(StoreUnusable, match=f"know schema {mine + 1} or later"):
        OpenStore(url, SystemClock()).__enter__()


# -- side by side -----------------------------------------------------------------------------------------------------


async def do_work(url, done):
    """Twenty jobs more, each run once by either; who has done how many, by name."""
    before = sum(done.values())
    async with Scheduler(url, timezone="UTC") as asking:
        ids = [await asking.add_job(f"job-{before + each}", Manual(), kind="work") for each in range(20)]
        started = [await asking.run_job(job_id) for job_id in ids]
        found = [await ended(asking, run_id) for run_id in started]
        assert {run.outcome for run in found} == {"success"}
        assert all(run.output == run.node for run in found)
        assert len(await asking.get_run_log(limit=10_000)) == before + 20
    return Counter(done) + Counter(run.node for run in found)


async def ended(scheduler, run_id):
    async with asyncio.timeout(PATIENCE_S):
        while (run := await scheduler.get_run(run_id)).outcome is None:
            pass
        return run


@pytest.mark.promise("X2")
@real
async def test_a_newer_version_works_beside_this_one_and_nothing_is_lost(shared, tmp_path):
    grown = folder_of(tmp_path, "next", ADDS, oldest=1)
    with version(shared, FOLDER, "old") as old:
        assert old.hear() == "working"
        done = await do_work(shared, {})
        with version(shared, grown, "new") as new:
            assert new.hear() == "working"
            assert number_in(shared) == schema_number() + 1
            async with asyncio.timeout(PATIENCE_S):
                while not (done["new"] and done["old"] > 20):
                    done = await do_work(shared, done)
            old.say()
            assert old.hear() == "left"
            with version(shared, FOLDER, "old") as again:
                assert again.hear() == "working"


@pytest.mark.promise("X2")
def test_nothing_is_taken_away_from_a_node_that_needs_it(shared, tmp_path):
    mine = schema_number()
    following = folder_of(tmp_path, "next", TAKES_AWAY, oldest=mine + 1)
    with version(shared, FOLDER, "old") as old:
        assert old.hear() == "working"
        with version(shared, following, "new") as new:
            assert new.hear() == (
                f"StoreLocked {shared} cannot be brought to schema {mine + 1} while nodes run that know only older "
                f"ones than {mine + 1}: upgrade or stop old first."
            )
        assert number_in(shared) == mine
        old.say()
        assert old.hear() == "left"
    with version(shared, following, "new") as new:
        assert not new.hear().startswith("StoreLocked")
    assert number_in(shared) == mine + 1
    with version(shared, FOLDER, "old") as old:
        assert old.hear().startswith("StoreUnusable")


def test_nor_from_a_server_on_a_file(tmp_path):
    file = f"sqlite:///{tmp_path / 'wakeful.db'}"
    following = folder_of(tmp_path, "next", TAKES_AWAY, oldest=schema_number() + 1)
    with version(file, FOLDER, "old") as old:
        assert old.hear() == "working"
        with version(file, following, "new") as new:
            assert re.fullmatch(r"StoreLocked .* upgrade or stop old \(process \d+\) first\.", new.hear())
    assert number_in(file) == schema_number()


def test_a_node_that_is_dead_holds_nothing_up(shared, tmp_path, monkeypatch):
    with OpenStore(shared, SystemClock()) as store:
        now = store.read(lambda tx: tx.facts.database_now())
        store.write(lambda tx: tx.members.join(NodeRow(1, "dead", 1, now - nodes.LEASE_MS - 1, None, "{}")))
        store.write(lambda tx: tx.members.join(NodeRow(2, "stopped", 1, now, now, "{}")))
    open_as(shared, folder_of(tmp_path, "next", TAKES_AWAY, oldest=schema_number() + 1), monkeypatch)
    assert number_in(shared) == schema_number() + 1


def test_a_node_that_does_not_say_what_it_knows_is_taken_for_the_oldest(shared, tmp_path, monkeypatch):
    with OpenStore(shared, SystemClock()) as store:
        now = store.read(lambda tx: tx.facts.database_now())
        store.write(lambda tx: tx.members.join(NodeRow(1, "silent", now, now, None, json.dumps({"pid": 1}))))
        store.write(lambda tx: tx.members.join(NodeRow(2, "modern", now, now, None, json.dumps({"schema": 99}))))
    with pytest.raises(StoreLocked, match="upgrade or stop silent first"):
        open_as(shared, folder_of(tmp_path, "next", TAKES_AWAY, oldest=schema_number() + 1), monkeypatch)
    assert number_in(shared) == schema_number()
    open_as(shared, folder_of(tmp_path, "grown", ADDS, oldest=1), monkeypatch)
    assert number_in(shared) == schema_number() + 1


def test_a_process_that_opened_a_store_before_it_was_changed_does_not_become_its_node_after(url, tmp_path, monkeypatch):
    mine = schema_number()
    with OpenStore(url, SystemClock()) as store:
        open_as(url, folder_of(tmp_path, "next", TAKES_AWAY, oldest=mine + 1), monkeypatch)
        with pytest.raises(StoreUnusable, match=f"for versions that know schema {mine + 1} or later; this one knows"):
            store.write(lambda tx: tx.members.join(NodeRow(1, "late", 1, 1, None, "{}")))
        assert store.read(lambda tx: tx.members.alive()) == []


def test_a_schema_change_does_not_hold_up_nodes_at_work_for_long(shared, tmp_path, monkeypatch):
    """Readers that hold a table for a moment are waited for, and asked again after a while."""
    with OpenStore(shared, SystemClock()):
        pass
    grown = folder_of(tmp_path, "grown", ADDS, oldest=1)
    with psycopg.connect(shared) as reading:
        reading.execute("SELECT * FROM jobs").fetchall()  # and the transaction stays open
        monkeypatch.setattr("wakeful.store.postgres_database.MIGRATION_TRIES", 1)
        monkeypatch.setattr("wakeful.store.postgres_database.MIGRATION_WAIT", "50ms")
        with pytest.raises(StoreLocked, match="locked by another process for too long"):
            open_as(shared, grown, monkeypatch)
        assert number_in(shared) == schema_number()
    open_as(shared, grown, monkeypatch)
    assert number_in(shared) == schema_number() + 1
