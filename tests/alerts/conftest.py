"""The scene of the kernel's tests, for alerts."""

from __future__ import annotations

from tests.kernel.scene import minutely_sweeps, postgres_scene, scene, sqlite_scene

__all__ = ["minutely_sweeps", "postgres_scene", "scene", "sqlite_scene"]
