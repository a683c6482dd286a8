"""Where a backup goes: a file, or a directory with a dated file for each backup, of which the newest are kept."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from wakeful.console.failures import WrongUse
from wakeful.errors import JobExists

#: What lies next to the file of a store and belongs to it.
BESIDE = ("-wal", "-shm", ".lock", ".logs")
SUFFIXES = (".db", ".sqlite", ".sqlite3", ".bak")  # of files
DATED = re.compile(r"wakeful-\d{8}-\d{6}\.db")


def file_for(target: str | None, to: str | None, keep: int | None, now: datetime) -> tuple[Path, Path | None]:
    """The file of a new backup, and the directory where it is one of several; WrongUse where both or none is named."""
    if (target is None) == (to is None):
        raise WrongUse("Name where the backup goes: wakeful backup DIRECTORY, or wakeful backup --to FILE.")
    path = Path(target if target is not None else to or "").expanduser()
    is_directory = target is not None and (keep is not None or target.endswith("/") or path.is_dir())
    if keep is not None and (not is_directory or path.is_file()):
        raise WrongUse("--keep counts the backups in a directory: wakeful backup DIRECTORY --keep 7.")
    if not is_directory:
        return path, None
    if not path.exists() and not (target or "").endswith("/") and path.suffix in SUFFIXES:
        raise WrongUse(f"{path} reads like a file, and --keep makes a directory: wakeful backup backups --keep 7.")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path / f"wakeful-{now:%Y%m%d-%H%M%S}.db", path


def refuse_existing(file: Path) -> None:
    """JobExists with what helps, where there is a file already."""
    if file.exists():
        message = f"{file} exists: replace it with --replace, or name a directory to keep several backups."
        raise JobExists(message)


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[None]:
    """Move an earlier backup aside until the new one is complete; it is put back if that fails."""
    old = file.with_name(file.name + ".before")
    _remove(old)
    _rename(file, old)
    try:
        yield
    except BaseException:
        _remove(file)
        _rename(old, file)
        raise
    _remove(old)


def prune(folder: Path, keep: int) -> list[Path]:
    """Remove all but the newest backups of a directory; returns those that are gone. Other files are left alone."""
    dated = sorted(path for path in folder.iterdir() if DATED.fullmatch(path.name))
    gone = dated[: max(0, len(dated) - keep)]
    for path in gone:
        _remove(path)
    return gone


def _rename(file: Path, to: Path) -> None:
    for part in ("", *BESIDE):
        here = file.with_name(file.name + part)
        if here.exists():
            here.rename(to.with_name(to.name + part))


def _remove(file: Path) -> None:
    for part in ("", *BESIDE):
        path = file.with_name(file.name + part)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
