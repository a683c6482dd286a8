"""The scene of the kernel's tests, for deliveries."""

from __future__ import annotations

from tests.delivery.bots import bot, url
from tests.http.conftest import _site, site
from tests.kernel.scene import minutely_sweeps, postgres_scene, scene, sqlite_scene

__all__ = ["_site", "bot", "minutely_sweeps", "postgres_scene", "scene", "site", "sqlite_scene", "url"]
