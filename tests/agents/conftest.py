"""Session servers, and schedulers that talk to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.session_server import SessionServer
from tests.agents.virtual_agents import VirtualAgents
from tests.kernel.scene import postgres_scene, scene, sqlite_scene

__all__ = ["postgres_scene", "scene", "sqlite_scene"]

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Days of sessions in virtual time: every time on SQLite, and on PostgreSQL among the long ones."""
    for item in items:
        case = getattr(item, "callspec", None)
        if case is not None and HERE in item.path.parents and "postgres" in case.id.split("-"):
            item.add_marker(pytest.mark.long)


@pytest.fixture
def agents(scene):
    """Agents in this test's virtual time."""
    return VirtualAgents(scene)


@pytest.fixture
def sessions():
    """A session server of this test's own."""
    with SessionServer() as server:
        yield server
