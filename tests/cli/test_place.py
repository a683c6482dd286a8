"""Which store a command works on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wakeful import Scheduler
from wakeful.console.failures import WrongUse
from wakeful.console.store_location import find_place
from wakeful.errors import StoreUnusable


@pytest.fixture
def nowhere(tmp_path):
    """A directory below which nothing has a store."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    return folder


def test_the_option_comes_first_then_the_environment_then_the_nearest_folder_then_ones_own(nowhere):
    environ = {"HOME": str(nowhere / "home"), "WAKEFUL_DB": str(nowhere / "env.db")}
    assert find_place("given.db", environ, nowhere).path == nowhere / "given.db"
    assert find_place(None, environ, nowhere).path == nowhere / "env.db"
    del environ["WAKEFUL_DB"]
    own = find_place(None, environ, nowhere).path
    assert own is not None
    assert own.is_relative_to(nowhere / "home")
    (nowhere.parent / ".wakeful").mkdir()
    assert find_place(None, environ, nowhere).path == nowhere.parent / ".wakeful" / "wakeful.db"
    (nowhere / ".wakeful").mkdir()
    assert find_place(None, environ, nowhere).path == nowhere / ".wakeful" / "wakeful.db"


def test_a_store_of_ones_own_lies_where_the_platform_keeps_data(nowhere, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    home = {"HOME": "/h"}
    assert find_place(None, home, nowhere).path == Path("/h/.local/share/wakeful/wakeful.db")
    assert find_place(None, {**home, "XDG_DATA_HOME": "/x"}, nowhere).path == Path("/x/wakeful/wakeful.db")
    assert find_place(None, {**home, "XDG_DATA_HOME": "relative"}, nowhere).path == Path(
        "/h/.local/share/wakeful/wakeful.db"
    )
    monkeypatch.setattr(sys, "platform", "darwin")
    assert find_place(None, home, nowhere).path == Path("/h/Library/Application Support/wakeful/wakeful.db")


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("jobs.db", "{here}/jobs.db"),
        ("./x/../jobs.db", "{here}/jobs.db"),
        ("/data/jobs.db", "/data/jobs.db"),
        ("sqlite:///jobs.db", "{here}/jobs.db"),
        ("sqlite:////data/jobs.db", "/data/jobs.db"),
    ],
)
def test_a_file_may_be_named_plainly_or_as_an_address(nowhere, said, path):
    place = find_place(said, {}, nowhere)
    assert str(place.path) == path.format(here=nowhere)
    assert place.url == f"sqlite:///{place.path}"


@pytest.mark.parametrize("said", ["", "  ", "sqlite://", "sqlite:///:memory:", "sqlite:jobs.db", "sqlite://jobs.db"])
def test_what_is_no_store_for_a_command_is_refused(nowhere, said):
    with pytest.raises(WrongUse, match="store"):
        find_place(said, {}, nowhere)


def test_an_empty_setting_counts_as_none(nowhere):
    (nowhere / ".wakeful").mkdir()
    assert find_place(None, {"WAKEFUL_DB": ""}, nowhere).path == nowhere / ".wakeful" / "wakeful.db"


def test_an_empty_file_is_not_yet_a_store(nowhere):
    (nowhere / "empty.db").touch()
    assert not find_place("empty.db", {}, nowhere).exists


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("postgresql://ada@db/wakeful", "postgresql://ada@db/wakeful"),
        ("postgresql://ada:secret@db:5432/wakeful", "postgresql://ada@db:5432/wakeful"),
        ("postgresql://ada:sec:r@et@db/wakeful", "postgresql://ada@db/wakeful"),
        ("postgresql://:secret@/wakeful", "postgresql://@/wakeful"),
        (
            "postgresql://db/wakeful?user=ada&password=secret&sslmode=require",
            "postgresql://db/wakeful?user=ada&sslmode=require",
        ),
        ("postgresql://db/wakeful?password=secret", "postgresql://db/wakeful"),
        ("postgresql://db/wakeful?password=se@cret&sslmode=require", "postgresql://db/wakeful?sslmode=require"),
        ("postgresql://ada:secret@db/wakeful?password=se:cr@et", "postgresql://ada@db/wakeful"),
        ("postgresql://db/wakeful?sslpassword=secret&sslkey=k.pem", "postgresql://db/wakeful?sslkey=k.pem"),
        ("postgresql://db/wakeful?pass%77ord=secret", "postgresql://db/wakeful"),
        ("postgresql://db/wakeful?dbname=host%3Dx%20password%3Dsecret", "postgresql://db/wakeful"),
        (
            "postgresql://db/wakeful?options=-csearch_path%3Dshop",
            "postgresql://db/wakeful?options=-csearch_path%3Dshop",
        ),
        ("postgresql://ada:sec?ret@db/wakeful", "postgresql://ada@db/wakeful"),
        ("postgresql://ada:sec/secret@db/wakeful", "postgresql://…"),
        ("postgresql://ada:1/secret@db/wakeful", "postgresql://…"),
        ("postgresql://db?password=secret@x", "postgresql://…"),
        ("postgresql://db/host%3Dx%20password%3Dsecret", "postgresql://…"),
        ("postgresql://a:1,b:2/wakeful", "postgresql://a:1,b:2/wakeful"),
        ("postgresql://[::1]:5432/wakeful", "postgresql://[::1]:5432/wakeful"),
        ("postgresql://%2Frun%2Fpg/wakeful", "postgresql://%2Frun%2Fpg/wakeful"),
    ],
)
def test_a_password_is_never_shown(nowhere, said, shown):
    place = find_place(said, {}, nowhere)
    assert (str(place), place.url) == (shown, said)


def test_the_refusal_of_another_database_shows_no_password(nowhere):
    with pytest.raises(WrongUse) as refused:
        find_place("mysql://ada:secret@db/wakeful?key=secret", {}, nowhere)
    assert "'mysql://ada@db/wakeful' is not a store's address" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("host=db password=secret user=ada dbname=wakeful", "postgresql://ada@db/wakeful"),
        ("user=ada password = 'se cret' host=db port=5433", "postgresql://ada@db:5433/database"),
        (r"password='se\'cret' dbname=wakeful host=db sslmode=require", "postgresql://db/wakeful?sslmode=require"),
        ("password=a://secret", "postgresql://host/database"),
        ("  service=shop", "postgresql://host/database?service=shop"),
        ("ada:secret@db/wakeful", "postgresql://user@host:5432/database"),
        ("postgresql:ada:secret@db/wakeful", "postgresql://user@host:5432/database"),
        ("postgres:host=db password=secret", "postgresql://host/database"),
    ],
)
def test_a_connection_string_is_refused_with_the_address_to_write_and_without_its_password(nowhere, said, shown):
    with pytest.raises(WrongUse) as refused:
        find_place(said, {}, nowhere)
    assert shown in str(refused.value)
    assert "cret" not in str(refused.value)
    with pytest.raises(StoreUnusable) as refused:
        Scheduler(said)
    assert "cret" not in str(refused.value)
    assert list(nowhere.iterdir()) == []


@pytest.mark.parametrize("said", ["./user=1/jobs.db", "a b.db", "data/host=1.db"])
def test_a_file_may_have_an_unusual_name(nowhere, said):
    assert find_place(said, {}, nowhere).path == nowhere / said


@pytest.mark.parametrize("said", ["mysql://ada:secret@db/x", "mysql:ada:secret", "mysql://db/x?password=secret"])
def test_an_address_of_an_unknown_kind_is_refused_without_its_password(said):
    with pytest.raises(StoreUnusable) as refused:
        Scheduler(said)
    assert "secret" not in str(refused.value)
