"""Scenes on both stores, for what really happens."""

from __future__ import annotations

from tests.kernel.scene import postgres_scene, scene, sqlite_scene

__all__ = ["postgres_scene", "scene", "sqlite_scene"]
