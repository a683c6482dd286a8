"""Rows of SQLite files of other programs: read from a copy, so that theirs is left as it is."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wakeful.moving.sources import Unreadable, read_data
from wakeful.store.foreign import FileRefused, read_rows, table_names

LARGEST = 256 * 1024 * 1024
MOST_ROWS = 100_000
HEAD = b"SQLite format 3\0"


def is_sqlite(path: Path) -> bool:
    """Whether a file begins as SQLite's do."""
    try:
        with path.open("rb") as file:
            return file.read(len(HEAD)) == HEAD
    except OSError:
        return False


def rows_of(path: Path, table: str, columns: Sequence[str], *, optional: Sequence[str] = ()) -> list[Mapping[str, Any]]:
    """The rows of a table by its columns; those that are `optional` may be missing there."""
    with tempfile.TemporaryDirectory(prefix="wakeful-import-") as folder:
        copy = _copied(path, Path(folder))
        try:
            return read_rows(copy, table, columns, optional=optional, most=MOST_ROWS)
        except FileRefused as error:
            raise Unreadable(f"{path} {error}.") from None


def tables_of(path: Path) -> set[str]:
    """The names of its tables."""
    with tempfile.TemporaryDirectory(prefix="wakeful-import-") as folder:
        try:
            return table_names(_copied(path, Path(folder)))
        except FileRefused as error:
            raise Unreadable(f"{path} {error}.") from None


def _copied(path: Path, folder: Path) -> Path:
    """A copy with what its program has written and not yet put into the file."""
    data = read_data(path, LARGEST)
    if not data.startswith(HEAD):
        raise Unreadable(f"{path} is not a SQLite file.")
    copy = folder / "copy.db"
    copy.write_bytes(data)
    log = path.with_name(f"{path.name}-wal")
    if log.is_file() and not log.is_symlink():
        (folder / "copy.db-wal").write_bytes(read_data(log, LARGEST, linked=False))
    return copy
