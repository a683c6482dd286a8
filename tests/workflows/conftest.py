"""Workflows on SQLite and on PostgreSQL, in virtual time."""

from __future__ import annotations

import pytest

from tests.kernel.scene import minutely_sweeps, postgres_scene, scene, sqlite_scene
from tests.workflows.mailroom import Mailroom

__all__ = ["minutely_sweeps", "postgres_scene", "scene", "sqlite_scene"]


@pytest.fixture
def room(scene):
    return Mailroom(scene)
