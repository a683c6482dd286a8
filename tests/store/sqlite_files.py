"""SQLite files for tests: made, looked at, and refused without a change."""

from __future__ import annotations

import os

import pytest

from tests.store.samples import OpenStore, job
from wakeful.errors import StoreUnusable


def url(path):
    return f"sqlite:///{path}"


def everything_in(folder):
    """What lies in a folder: names, kinds, permissions and contents."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if readable(path) else None)
        for path in folder.rglob("*")
    }


def readable(path):
    return path.is_file() and os.access(path, os.R_OK)


def a_real_store(path, clock, jobs=300):
    with OpenStore(url(path), clock) as store:
        store.add(*(job(number, payload=f'"{"x" * 500}"', due_at=number) for number in range(1, jobs + 1)))


def refusal(path, clock, *, create=True):
    """The sentence an attempt to open gets, after looking that it changed nothing."""
    before = everything_in(path.parent)
    with pytest.raises(StoreUnusable) as caught, OpenStore(url(path), clock, create=create):
        pass
    assert everything_in(path.parent) == before
    return str(caught.value)
