"""Session servers, and schedulers that talk to them."""

from __future__ import annotations

import pytest

from tests.agents.session_server import SessionServer
from tests.agents.virtual_agents import VirtualAgents
from tests.kernel.scene import postgres_scene, scene, sqlite_scene

__all__ = ["postgres_scene", "scene", "sqlite_scene"]


@pytest.fixture
def agents(scene):
    """Agents in this test's virtual time."""
    return VirtualAgents(scene)


@pytest.fixture
def sessions():
    """A session server of this test's own."""
    with SessionServer() as server:
        yield server
