"""Fleets are tried on both stores, in virtual time."""

from __future__ import annotations

from tests.kernel.scene import postgres_scene, scene, sqlite_scene

__all__ = ["postgres_scene", "scene", "sqlite_scene"]
