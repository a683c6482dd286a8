"""What `doctor` looks at outside the store: the configuration, the directory of the store, and the disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from wakeful.console.humanize import count
from wakeful.console.store_location import StoreLocation, nearest_config

LEAST_FREE = 100 * 1024 * 1024


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str
    do: str | None = None  # what helps where something is wrong


class Settings(NamedTuple):
    """The file that a server would read here."""

    checks: list[Check]  # whether it could start with it
    notified: str | None = None  # where the file says that alerts are sent


def configuration_of(place: StoreLocation) -> Settings:
    """Whether a server could start with the file that it would read here; what its env_file sets is taken over."""
    from wakeful.config.loading import load
    from wakeful.config.reading import ConfigError
    from wakeful.references import adopt, own_environment

    found = place.config or nearest_config(Path.cwd())
    if found is None:
        return Settings([])
    try:
        loaded = load(found, own_environment())
    except ConfigError as error:
        first = error.faults[0]
        line = f", line {first.line}" if first.line is not None else ""
        said = f"{found} has {count(len(error.faults), 'mistake')}{line}: {first.message}"
        return Settings([Check("settings", ok=False, found=said, do=f"wakeful check {found} lists all; correct them")])
    adopt(loaded.env_file)
    rules = loaded.config.alerts.rules()  # type: ignore[attr-defined]  # of a domain
    return Settings([Check("settings", ok=True, found=str(found))], rules.to)


def folder_of(place: StoreLocation) -> Check:
    """The database needs to write its file, and files next to it."""
    if place.path is None:
        return Check("writable", ok=True, found="decided by the database server")
    file = place.path
    folder = _nearest(file.parent)
    targets = [target for target in (file, folder) if target.exists()]
    closed = [str(target) for target in targets if not os.access(target, os.W_OK)]
    if closed:
        return Check(
            "writable", ok=False, found=f"{closed[0]} may not be written", do="change its owner or permissions"
        )
    return Check("writable", ok=True, found=str(folder))


def disk_of(place: StoreLocation) -> list[Check]:
    """How much is free where the store is."""
    if place.path is None:
        return []
    free = shutil.disk_usage(_nearest(place.path.parent)).free
    found = f"{free / 1024**3:.1f} GiB free" if free > 1024**3 else f"{free / 1024**2:.0f} MiB free"
    return [Check("disk", ok=free >= LEAST_FREE, found=found, do="free some space: nothing can be stored without it")]


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())
