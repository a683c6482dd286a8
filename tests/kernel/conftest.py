"""The scene of the kernel's tests: on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

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

HERE = Path(__file__).parent
WEEKS_OF_HISTORY = ("test_retention", "test_slots_without_history")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Each test runs on both stores every time; of its many cases on the slower one, all but the first are long, and
    so are weeks of history.
    """
    seen = set()
    for item in items:
        case = getattr(item, "callspec", None)
        if case is None or HERE not in item.path.parents or "postgres" not in case.id.split("-"):
            continue
        if item.function in seen or item.path.stem in WEEKS_OF_HISTORY:
            item.add_marker(pytest.mark.long)
        seen.add(item.function)
