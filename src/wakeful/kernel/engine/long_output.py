"""Files next to the store, for what is too long for a row: one per run, removed with it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from wakeful import ids
from wakeful.kernel.rules.outcome import Result, shortened
from wakeful.private_files import make_private_folder, open_private

log = logging.getLogger("wakeful.engine")

MAX_FILE = 100 * 1024 * 1024


def log_path(folder: Path, run_id: str) -> Path:
    """Where a command's output goes as it arrives."""
    return folder / f"{run_id}.log"


def output_path(folder: Path, run_id: str) -> Path:
    """Where a handler's long output goes."""
    return folder / f"{run_id}.json"


def keep_long_output(folder: Path | None, run_id: str, result: Result) -> Result:
    """The result with a bounded output; the whole of it in a file, if there is a place and room for one."""
    text = result.output or ""
    if folder is None or len(text) > MAX_FILE:
        return shortened(result, None)
    path = output_path(folder, run_id)
    try:
        make_private_folder(folder)
        with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        log.warning("cannot write the full output of %s: %s", run_id, error)
        return shortened(result, None)
    return shortened(result, str(path))


def remove_older_files(folder: Path, before: int, but: set[int]) -> None:
    """Delete the files of ended runs below that id; `but` have not ended. What runs kept of their output stays."""
    if not folder.exists():
        return
    found = (ids.number_of("run", path.stem) for path in folder.iterdir() if path.suffix in (".log", ".json"))
    remove_files(folder, [number for number in found if number is not None and number < before and number not in but])


def remove_files(folder: Path, run_ids: list[int]) -> None:
    """Delete the files of runs that are no longer on record."""
    if not folder.exists():
        return
    why: OSError | None = None
    for text in map(ids.run_text, run_ids):
        for path in (log_path(folder, text), output_path(folder, text)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                why = error
    if why is not None:  # once, not for each of thousands
        log.warning("cannot remove files of runs that are no longer on record: %s", why)
