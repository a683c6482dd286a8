"""The stores that the contract is held against."""

from __future__ import annotations

import pytest

from tests.store.postgres_server import emptied_url, postgres_url
from tests.store.samples import OpenStore
from tests.store.sqlite_template import lay_out
from wakeful.clock import ManualClock


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request, tmp_path):
    """An empty store of each dialect, with its tables."""
    return emptied_url() if request.param == "postgres" else lay_out(tmp_path / "wakeful.db")


@pytest.fixture(params=["sqlite", "postgres"])
def bare_url(request):
    """A place for a store of each dialect, without tables."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def file(tmp_path):
    """Where a SQLite store may be."""
    return tmp_path / "wakeful.db"


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'wakeful.db'}"


@pytest.fixture(name="postgres_url")
def fresh_database():
    return postgres_url()


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(store_url, clock):
    with OpenStore(store_url, clock) as opened:
        yield opened
