"""Copies of a SQLite store as it was before an upgrade: the only way back to an older version.

A copy lies next to the file and names the schema it has: `wakeful.db.schema-31`. The latest few are kept.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sqlite3
from pathlib import Path

from wakeful.errors import StoreFull, StoreUnusable
from wakeful.private_files import FILE_MODE
from wakeful.store.schema_version import Stored, steps

log = logging.getLogger("wakeful.store")
KEPT = 3
_NAME = re.compile(r"\.schema-(\d+)")


def back_up(connection: sqlite3.Connection, path: str, stored: Stored) -> None:
    """Copy a store that this version is about to change; nothing for one that it does not.

    Where it cannot be copied, nothing is changed: StoreFull or StoreUnusable.
    """
    if not stored.version or stored.is_current():
        return
    coming = stored.after(steps())
    copy = Path(f"{os.path.realpath(path)}.schema-{stored.version}")
    half = copy.with_name(f"{copy.name}.{os.getpid()}")
    try:
        os.close(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
        connection.execute("VACUUM INTO ?", (str(half),))
        if _number_in(half) != stored.number:  # another process has just upgraded it, and has its own copy
            half.unlink()
            return
        half.replace(copy)
    except (OSError, sqlite3.Error) as error:
        with contextlib.suppress(OSError):
            half.unlink()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise
        is_full = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
        message = (
            f"{path} must be upgraded to schema {coming.version} and cannot be copied to {copy} first ({error}): "
            "make room there, and start again; nothing was changed."
        )
        raise (StoreFull if is_full else StoreUnusable)(message) from error
    log.warning("upgrading %s from schema %s to %s; a copy of it as it was is in %s", path, stored.version,
                coming.version, copy)  # fmt: skip
    for old in [file for _, file in copies(path)][:-KEPT]:
        with contextlib.suppress(OSError):
            old.unlink()


def _number_in(file: Path) -> int:
    with contextlib.closing(sqlite3.connect(file)) as copied:
        return int(copied.execute("PRAGMA user_version").fetchone()[0])


def copies(path: str) -> list[tuple[int, Path]]:
    """The copies of a store, each with its schema, the oldest schema first."""
    file = Path(os.path.realpath(path))
    found = [
        (_NAME.fullmatch(one.name.removeprefix(file.name)), one) for one in file.parent.glob(f"{file.name}.schema-*")
    ]
    return sorted((int(match[1]), one) for match, one in found if match is not None)


def way_back(path: str, known: int) -> str:
    """What to do with a store that is too new for a version that knows schema `known`, as the end of a sentence."""
    usable = [file for number, file in copies(path) if number <= known]
    if not usable:
        return "upgrade this one, or use another file"
    return (
        f"upgrade this one; or, to go back to the state before the upgrade and lose what happened since, stop all "
        f"servers, move {path} away with {path}-wal and {path}-shm, and copy {usable[-1]} to {path}"
    )
