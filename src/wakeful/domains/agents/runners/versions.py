"""Which version of a program is installed, without calling it: to ask costs seconds, and some do not know the question.

Programs from npm lie next to the `package.json` of their package; Homebrew names the version in the path.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path

PACKAGES = "node_modules"
LONGEST_FILE, HIGHEST, LONGEST = 1024 * 1024, 5, 100
_BREWED = re.compile(r"/Cellar/[^/]+/([^/]+)/")


def installed_version(program: str, environment: Mapping[str, str]) -> str | None:
    """The version of a program as it would be started with that environment; None where nothing says it."""
    found = shutil.which(program, path=environment.get("PATH", os.defpath))
    if found is None:
        return None
    path = os.path.realpath(found)  # a link into the package
    try:
        return _beside(path, os.stat(path).st_mtime_ns)  # noqa: PTH116 - beside realpath
    except OSError:
        return None


@lru_cache(maxsize=64)
def _beside(path: str, _changed_at: int) -> str | None:
    if PACKAGES in Path(path).parts:
        for folder in islice(Path(path).parents, HIGHEST):
            if folder.name == PACKAGES:
                break
            version = _packaged(folder / "package.json")
            if version is not None:
                return version
    brewed = _BREWED.search(path)
    return brewed[1][:LONGEST] if brewed else None


def _packaged(file: Path) -> str | None:
    try:
        with file.open("rb") as opened:
            version = json.loads(opened.read(LONGEST_FILE)).get("version")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return version[:LONGEST] if isinstance(version, str) else None
