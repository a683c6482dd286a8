"""The files of an open SQLite store, as they were when it was opened: is what lies there still what we have open?

A file that is removed or replaced stays open in every process that has it open: all goes on in a file that nobody else
can see, and that is gone when the process ends.
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

    def note(self) -> None:
        """These are the files we have open now."""
        found = {self._path + part: _which(self._path + part) for part in _PARTS}
        self._known = {file: which for file, which in found.items() if which is not None}

    def check(self) -> None:
        """StoreGone if one of them is not there any more, or another one is in its place."""
        for file, known in self._known.items():
            try:
                found = _which(file)
            except OSError:
                continue  # the disk does not say: whoever writes to it next finds out
            if found != known:
                what = "removed" if found is None else "replaced by another file"
                message = (
                    f"{file} was {what} while it was in use, so nothing is stored or started any more: put the right "
                    "file there, then start again."
                )
                raise StoreGone(message)


def _which(file: str) -> tuple[int, int] | None:
    try:
        found = Path(file).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
