"""The scene of the kernel's tests: on SQLite and on PostgreSQL."""

from __future__ import annotations

from tests.kernel.commanding import has_children, lifeline, log_path, run
from tests.kernel.scene import minutely_sweeps, postgres_scene, scene, sqlite_scene

__all__ = [
    "has_children",
    "lifeline",
    "log_path",
    "minutely_sweeps",
    "postgres_scene",
    "run",
    "scene",
    "sqlite_scene",
]
