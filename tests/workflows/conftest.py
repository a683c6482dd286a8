"""Workflows on SQLite and on PostgreSQL, in virtual time; on the slower one only in the long suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel.scene import postgres_scene, scene, sqlite_scene
from tests.workflows.mailroom import Mailroom

__all__ = ["postgres_scene", "scene", "sqlite_scene"]

HERE = Path(__file__).parent


@pytest.fixture
def room(scene):
    return Mailroom(scene)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of what runs on both stores, one test of each file is enough for every day on the slower one."""
    seen = set()
    for item in items:
        case = getattr(item, "callspec", None)
        if case is None or HERE not in item.path.parents or "postgres" not in case.id.split("-"):
            continue
        if item.path in seen or item.path.stem == "test_crash_matrix":
            item.add_marker(pytest.mark.long)
        seen.add(item.path)
