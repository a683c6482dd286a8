"""Addresses of SQLite stores: what is one, which file it means, and what is answered where it means none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.samples import OpenStore, job
from tests.store.sqlite_files import a_real_store, refusal, url
from wakeful import Scheduler
from wakeful.clock import SystemClock
from wakeful.errors import StoreUnusable
from wakeful.store import make_store


@pytest.fixture
def clock():
    return SystemClock()


@pytest.mark.parametrize(
    "name",
    [
        "with space.db",
        "günther-日本-\U0001f319.db",
        "100%25.db",
        "what?mode=memory.db",
        "a#b&c=d.db",
        "file:x.db",
        'it\'s "quoted".db',
        "new\nline.db",
        "~tilde.db",
        "-rf",
        ":memory:.db",
    ],
)
def test_a_name_is_taken_letter_by_letter(tmp_path, clock, name):
    with OpenStore(url(tmp_path / name), clock) as store:
        store.add(job(1))
        assert store.read(lambda tx: tx.jobs.by_id(1))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_directories_on_the_way_are_made(tmp_path, clock):
    with OpenStore(url(tmp_path / "a" / "b" / "wakeful.db"), clock):
        assert (tmp_path / "a" / "b" / "wakeful.db").exists()


def test_a_relative_address_means_where_the_program_was_started(tmp_path, clock, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with OpenStore("sqlite:///file:sub/wakeful.db", clock) as store:
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.add(job(1))
        assert store.read(lambda tx: tx.jobs.by_id(1))
        store.do(store.store.become_engine({}))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert {path.name for path in (tmp_path / "file:sub").iterdir()} == {"wakeful.db", "wakeful.db.lock"}


def test_home_can_be_written_short(tmp_path, monkeypatch, clock):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert make_store("sqlite:///~/wakeful.db", clock).path == str(tmp_path / "wakeful.db")


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://:memory:"])
def test_a_store_in_memory_leaves_no_file_and_is_its_own(tmp_path, clock, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    with OpenStore(address, clock) as one, OpenStore(address, clock) as two:
        one.add(job(1))
        assert one.read(lambda tx: tx.jobs.by_id(1))
        assert two.read(lambda tx: tx.jobs.by_id(1)) is None
        one.do(one.store.become_engine({}))
        two.do(two.store.become_engine({}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    [
        "sqlite://file.db",
        "sqlite:file.db",
        "sqlite",
        "sqlite:///a\0b.db",
        "sqlite:///\ud800.db",
        "mysql://x",
        "",
        None,
        5,
    ],
)
def test_what_is_no_address_is_answered_with_one_that_is(clock, address):
    with pytest.raises(StoreUnusable) as caught:
        make_store(address, clock)
    assert str(caught.value).startswith(f"{address!r} is not a store's address: write ")
    assert "sqlite:///file.db" in str(caught.value)


def test_the_home_of_an_unknown_user_is_no_address(clock):
    with pytest.raises(StoreUnusable, match="write the whole path"):
        make_store("sqlite:///~nobody-of-that-name/wakeful.db", clock)


def test_a_name_that_is_too_long_is_answered_with_the_reason(tmp_path, clock):
    too_long = r"cannot be reached \(File name too long\)"
    with pytest.raises(StoreUnusable, match=too_long), OpenStore(url(tmp_path / ("x" * 300)), clock):
        pass


def test_a_link_to_nothing_becomes_a_store_at_its_end_or_says_why_not(tmp_path, clock):
    (tmp_path / "link.db").symlink_to("real.db")
    a_real_store(tmp_path / "link.db", clock, jobs=1)
    with OpenStore(url(tmp_path / "real.db"), clock) as store:
        assert store.read(lambda tx: tx.jobs.by_id(1))
    (tmp_path / "lost.db").symlink_to("gone/real.db")
    wanted = f"{tmp_path / 'lost.db'} cannot be opened: check that its directory exists and may be written."
    assert refusal(tmp_path / "lost.db", clock) == wanted


@pytest.mark.parametrize("wrong", [5, Path("jobs.db"), None])
def test_what_is_no_text_is_no_address(wrong):
    with pytest.raises(StoreUnusable, match=r"is not a store's address: write sqlite:///file\.db in quotes"):
        Scheduler(wrong)
