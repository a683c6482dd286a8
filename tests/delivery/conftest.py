"""The scene of the kernel's tests, for deliveries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.delivery.bots import bot, url
from tests.http.conftest import _site, site
from tests.kernel.scene import minutely_sweeps, postgres_scene, scene, sqlite_scene

__all__ = ["_site", "bot", "minutely_sweeps", "postgres_scene", "scene", "site", "sqlite_scene", "url"]

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """As in the kernel's tests: of many cases on the slower store, all but the first are long."""
    seen = set()
    for item in items:
        case = getattr(item, "callspec", None)
        if case is None or HERE not in item.path.parents or "postgres" not in case.id.split("-"):
            continue
        if item.function in seen:
            item.add_marker(pytest.mark.long)
        seen.add(item.function)
