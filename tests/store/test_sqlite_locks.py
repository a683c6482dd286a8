"""Several processes on one file: who may write, who may start jobs, and what a dead one leaves behind."""

from __future__ import annotations

import os
import threading

import pytest

from tests.store.another_process import AnotherProcess
from tests.store.samples import OpenStore
from wakeful.clock import SystemClock
from wakeful.errors import StoreLocked, StoreUnusable
from wakeful.store import sqlite
from wakeful.store.schema_version import schema_number

HOLDS_THE_WRITE_LOCK = """
connection = sqlite3.connect(url[10:], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO lanes (key, used) VALUES ('theirs', 1)")
say("locked")
wait()
connection.execute("COMMIT")
say("free")
wait()
"""


@pytest.fixture
def clock():
    return SystemClock()


@pytest.fixture
def file(tmp_path, clock):
    """A store that is there and closed."""
    with OpenStore(f"sqlite:///{tmp_path / 'wakeful.db'}", clock):
        return tmp_path / "wakeful.db"


def url(path):
    return f"sqlite:///{path}"


# -- writing ----------------------------------------------------------------------------------------------------------


def test_a_file_locked_for_too_long_is_reported_to_writers_and_openers_but_readable(file, clock, monkeypatch):
    monkeypatch.setattr(sqlite, "LOCK_WAIT_MS", 30)
    wanted = f"{file} has been locked by another process for too long: end what holds it, then try again."
    with OpenStore(url(file), clock) as store, AnotherProcess(HOLDS_THE_WRITE_LOCK, url(file)) as other:
        assert other.hear() == "locked"
        with pytest.raises(StoreLocked) as caught:
            store.write(lambda tx: tx.lanes.add({"ours": 1}))
        assert str(caught.value) == wanted
        with pytest.raises(StoreLocked) as caught, OpenStore(url(file), clock):
            pass
        assert str(caught.value) == wanted
        assert store.read(lambda tx: tx.lanes.all()) == {}
        other.say()
        assert other.hear() == "free"
        store.write(lambda tx: tx.lanes.add({"ours": 1}))
        assert store.read(lambda tx: tx.lanes.all()) == {"ours": 1, "theirs": 1}


def test_who_waits_for_the_lock_gets_it_when_it_is_free(file, clock):
    with OpenStore(url(file), clock) as store, AnotherProcess(HOLDS_THE_WRITE_LOCK, url(file)) as other:
        assert other.hear() == "locked"
        asked, statements = threading.Event(), []

        def watch(statement):
            statements.append(statement)
            asked.set()

        store.store._writer.set_trace_callback(watch)
        threading.Thread(target=lambda: (asked.wait(120), other.say())).start()
        assert store.write(lambda tx: tx.lanes.all()) == {"theirs": 1}
        assert statements.count("BEGIN IMMEDIATE") > 1


def test_a_writer_that_is_killed_leaves_the_lock_free_and_nothing_half_written(file, clock):
    with OpenStore(url(file), clock) as store, AnotherProcess(HOLDS_THE_WRITE_LOCK, url(file)) as other:
        assert other.hear() == "locked"
        other.kill()
        store.write(lambda tx: tx.lanes.add({"ours": 1}))
        assert store.read(lambda tx: tx.lanes.all()) == {"ours": 1}


# -- opening ----------------------------------------------------------------------------------------------------------


def test_of_processes_that_make_a_store_at_the_same_moment_each_gets_the_same_one(tmp_path, clock):
    address = url(tmp_path / "new.db")
    others = [AnotherProcess("say('ready'); wait(); attempt(url)", address) for _ in range(4)]
    try:
        assert [other.hear() for other in others] == ["ready"] * 4
        for other in others:
            other.say()
        assert [other.hear() for other in others] == ["done"] * 4
    finally:
        for other in others:
            other.__exit__()
    with OpenStore(address, clock) as store:
        (written_by,) = store.read(lambda tx: tx.facts.of(["written by"])).values()
        assert int(written_by) in {other.pid for other in others}


def test_opening_and_closing_side_by_side_disturbs_no_other_process(file):
    many = "say('ready'); wait(); [attempt(url) for _ in range(40)]"
    with AnotherProcess(many, url(file)) as one, AnotherProcess(many, url(file)) as two:
        for other in (one, two):
            assert other.hear() == "ready"
        for other in (one, two):
            other.say()
        assert [one.hear() for _ in range(40)] == ["done"] * 40
        assert [two.hear() for _ in range(40)] == ["done"] * 40


# -- the right to start jobs ------------------------------------------------------------------------------------------


RUNS_THE_ENGINE = """
async def main():
    store = await opened(url)
    await store.become_engine({"pid": os.getpid(), "host": "mill", "node": "night"})
    say("engine")
    wait()
    await store.resign()
    say("resigned")
    wait()
asyncio.run(main())
"""
OURS = {"pid": os.getpid(), "host": "here", "node": "day"}
HOLDER = {**OURS, "schema": schema_number()}


def test_a_second_engine_is_refused_with_the_name_of_the_first(file, clock):
    with OpenStore(url(file), clock) as store, AnotherProcess(RUNS_THE_ENGINE, url(file)) as other:
        assert store.store.holder() is None
        assert other.hear() == "engine"
        with pytest.raises(StoreLocked) as caught:
            store.do(store.store.become_engine(OURS))
        assert str(caught.value) == (
            f"Another server already runs this store (process {other.pid} on mill, node night): "
            "stop it first, or use another store."
        )
        who = {"pid": other.pid, "host": "mill", "node": "night", "schema": schema_number()}
        assert store.store.holder() == who
        store.write(lambda tx: tx.lanes.add({"a": 1}))  # one who starts no jobs may still edit them
        other.say()
        assert other.hear() == "resigned"
        store.do(store.store.become_engine(OURS))
        assert store.store.holder() == HOLDER


@pytest.mark.promise("H11")
def test_an_engine_that_is_killed_leaves_its_place_free(file, clock):
    with OpenStore(url(file), clock) as store, AnotherProcess(RUNS_THE_ENGINE, url(file)) as other:
        assert other.hear() == "engine"
        other.kill()
        assert store.store.holder() is None
        store.do(store.store.become_engine(OURS))
        assert store.store.holder() == HOLDER


def test_one_store_has_one_engine_whatever_name_led_to_it(file, clock, tmp_path):
    (tmp_path / "other-name.db").symlink_to(file)
    with OpenStore(url(file), clock) as one, OpenStore(url(tmp_path / "other-name.db"), clock) as two:
        one.do(one.store.become_engine(OURS))
        assert two.store.holder() == HOLDER
        with pytest.raises(StoreLocked):
            two.do(two.store.become_engine(OURS))


def test_a_closed_store_gives_its_place_back(file, clock):
    with OpenStore(url(file), clock) as one:
        one.do(one.store.become_engine(OURS))
    with OpenStore(url(file), clock) as two:
        assert two.store.holder() is None
        two.do(two.store.become_engine(OURS))
        assert two.store.holder() == HOLDER


def test_processes_that_only_look_do_not_prevent_a_start(file, clock):
    looking = """
store = make_store(url, SystemClock())
say("looking")
while True:
    store.holder()
"""
    with OpenStore(url(file), clock) as store, AnotherProcess(looking, url(file)) as other:
        assert other.hear() == "looking"
        for _ in range(100):
            store.do(store.store.become_engine(OURS))
            store.do(store.store.resign())


@pytest.mark.parametrize("content", ["", "no json", "[]", '{"pid": 4}'])
def test_a_lock_file_without_details_still_locks(file, clock, content):
    with OpenStore(url(file), clock) as one, OpenStore(url(file), clock) as two:
        one.do(one.store.become_engine(OURS))
        file.with_name("wakeful.db.lock").write_text(content, encoding="utf-8")
        with pytest.raises(StoreLocked, match="its lock file does not say who"):
            two.do(two.store.become_engine(OURS))
        assert two.store.holder() in ({}, {"pid": 4})


def test_a_lock_that_cannot_be_made_is_reported(file, clock):
    file.with_name("wakeful.db.lock").mkdir()
    with OpenStore(url(file), clock) as store, pytest.raises(StoreUnusable) as caught:
        store.do(store.store.become_engine(OURS))
    assert str(caught.value) == (
        f"{file}.lock cannot be written (Is a directory): the engine needs it to be the only one."
    )
