"""Agents in virtual time, on both stores."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import VirtualAgents
from tests.kernel.scene import postgres_scene, scene, sqlite_scene

__all__ = ["postgres_scene", "scene", "sqlite_scene"]


@pytest.fixture
def agents(scene):
    """Agents in this test's virtual time."""
    return VirtualAgents(scene)
