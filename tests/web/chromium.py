"""Which Chromium the browser tests use; where there is none, how to get one."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "The tests of the dashboard need a browser: install Chromium (Debian: apt-get install chromium), "
    "or name one with CHROMIUM=/path/to/chromium."
)


def chromium() -> str:
    """The path of a Chromium; Debian's is installed where that works without asking."""
    found = _found() or (_installed() and _found())
    if not found:
        pytest.exit(MISSING, returncode=1)
    return found


def _found() -> str | None:
    named = os.environ.get("CHROMIUM")
    if named:
        return named if os.access(named, os.X_OK) else None
    return next(filter(None, map(shutil.which, NAMES)), None)


def _installed() -> bool:
    if os.environ.get("CHROMIUM") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    print("Installing Debian's chromium for the tests of the dashboard ...")
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    argv = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
    done = subprocess.run(argv, env=quietly, stdin=subprocess.DEVNULL, capture_output=True, timeout=240, check=False)
    return done.returncode == 0
