"""The files of an open SQLite store, as they were when it was opened: is what lies there still what we have open?

A file that is removed or replaced stays open in every process that has it open: all goes on in a file that nobody else
can see, and that is gone when the process ends. A file that another one is copied over, as people do who restore a
backup by hand, is part old and part new: it is noticed if that made it shorter.
"""

from __future__ import annotations

import os
from pathlib import Path

from wakeful.errors import StoreGone

#: The database, what was written ahead of it, and what coordinates its processes; SQLite keeps all three while it is
#: open anywhere.
_PARTS = ("", "-wal", "-shm")


class OpenFiles:
    """Which files they are; `check` compares."""

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        self._known: dict[str, tuple[int, int]] = {}
        self._size = 0  # of the database's file, in bytes
        self._overwritten = False

    def note(self) -> None:
        """These are the files we have open now."""
        found = {self._path + part: _which(self._path + part) for part in _PARTS}
        self._known = {file: which for file, which in found.items() if which is not None}
        self._size, self._overwritten = 0, False

    def check(self) -> None:
        """StoreGone if one of them is not there any more, or another one is in its place."""
        if self._overwritten:
            raise _gone(self._path, "overwritten")
        for file, known in self._known.items():
            try:
                found = _which(file)
            except OSError:
                continue  # the disk does not say: whoever writes to it next finds out
            if found != known:
                raise _gone(file, "removed" if found is None else "replaced by another file")

    def is_shorter(self) -> bool:
        """Whether the database's file has become shorter; in regular use only VACUUM makes it so."""
        try:
            size = Path(self._path).stat().st_size if self._known else 0
        except OSError:
            return False  # `check` finds out
        self._size = max(self._size, size)
        return size < self._size

    def explain_shorter(self, *, vacuumed: bool) -> None:
        """StoreGone unless the file is shorter because it was vacuumed."""
        self._size, self._overwritten = 0, not vacuumed
        self.check()


def _gone(file: str, what: str) -> StoreGone:
    message = (
        f"{file} was {what} while it was in use, so nothing is stored or started any more: put the right "
        "file there, then start again."
    )
    return StoreGone(message)


def _which(file: str) -> tuple[int, int] | None:
    try:
        found = Path(file).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
