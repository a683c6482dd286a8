"""Reading files of other programs: of bounded size, and only those that no other user could have written.

What such a file says becomes a command that runs here. So it must belong to the user or to root and not be writable by
everybody, and links below a directory that was named are not followed.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakeful.config.reading import ConfigError, plain_data
from wakeful.errors import SchedulerError

LARGEST = 4 * 1024 * 1024
MOST_FILES = 2_000
DEEPEST = 6
STDIN = "-"


class Unreadable(SchedulerError):
    """A source that cannot be imported; nothing was changed."""

    exit_code = 1
    status = 400
    code = "unreadable"


def read_data(path: Path, most: int = LARGEST, *, linked: bool = True) -> bytes:
    """The content of a regular file. `linked`: a link may lead to it."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if linked else os.O_NOFOLLOW)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            _refuse_distrusted(path, os.fstat(file.fileno()))
            content = file.read(most + 1)
    except OSError as error:
        why = "it is a link, which is not followed" if path.is_symlink() and not linked else error.strerror
        raise Unreadable(f"{path} cannot be read: {why}.") from None
    if len(content) > most:
        raise Unreadable(f"{path} is larger than {most // 1024 // 1024} MiB: this is not what was meant.")
    return content


def _refuse_distrusted(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{path} is not a regular file.")
    if status.st_uid not in {os.geteuid(), 0}:
        raise Unreadable(f"{path} belongs to another user: make a copy of your own, and look at what it runs.")
    if status.st_mode & stat.S_IWOTH:
        raise Unreadable(f"{path} is writable by everybody: chmod o-w it, and look at what it runs.")


def read_text(path: Path, *, linked: bool = True, most: int = LARGEST) -> str:
    """The text of a file; `-` is standard input."""
    if str(path) == STDIN:
        content = sys.stdin.buffer.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise Unreadable(f"Standard input is longer than {LARGEST // 1024 // 1024} MiB.")
    else:
        content = read_data(path, most, linked=linked)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{path} is not UTF-8 text.") from None
    if "\0" in text:
        raise Unreadable(f"{path} is not text.")
    return text


def read_json(path: Path, *, linked: bool = True, most: int = LARGEST) -> Any:
    """The value of a JSON file."""
    try:
        return json.loads(read_text(path, linked=linked, most=most))
    except RecursionError:
        raise Unreadable(f"{path} is nested too deeply.") from None
    except ValueError as error:
        raise Unreadable(f"{path} is not JSON: {error}.") from None


def read_yaml(path: Path, *, linked: bool = True) -> Any:
    """The data of a YAML file, with the bounds of a configuration."""
    try:
        return plain_data(path, read_text(path, linked=linked))
    except ConfigError as error:
        raise Unreadable(str(error)) from None


def files_below(folder: Path, suffixes: tuple[str, ...], depth: int = 1) -> list[Path]:
    """The files below a folder whose names end so, by name; links are passed over."""
    found = sorted(_below(folder, suffixes, min(depth, DEEPEST)))
    if len(found) > MOST_FILES:
        raise Unreadable(f"{folder} has more than {MOST_FILES} files: name a folder that has only what is meant.")
    return found


def _below(folder: Path, suffixes: tuple[str, ...], depth: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            listed = [entry for _, entry in zip(range(MOST_FILES * 5), entries, strict=False)]
    except OSError as error:
        raise Unreadable(f"{folder} cannot be read: {error.strerror}.") from None
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            yield from _below(folder / entry.name, suffixes, depth - 1) if depth > 1 else ()
        elif entry.is_file(follow_symlinks=False) and entry.name.endswith(suffixes):
            yield folder / entry.name


def as_map(value: Any, path: Path) -> dict[str, Any]:
    """The value, if it is a map with names; Unreadable where it is anything else."""
    if not isinstance(value, dict):
        raise Unreadable(f"{path} does not hold a map.")
    return value


def text_in(data: Any, *keys: str) -> str | None:
    """The text at the first of these keys that has one."""
    found = (data.get(key) for key in keys) if isinstance(data, dict) else ()
    return next((value for value in found if isinstance(value, str) and value.strip()), None)


def map_in(data: Any, key: str) -> dict[str, Any]:
    """The map at a key; an empty one where there is none."""
    found = data.get(key) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}
