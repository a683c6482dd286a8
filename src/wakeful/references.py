"""`${NAME}` and `${file:/path}`: references to values that are kept elsewhere, and how they are looked up.

A configuration file is filled in when it is read. A job keeps the reference, and the node that runs it looks the value
up for every run, so that the store never holds it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from wakeful.errors import InvalidSetting

LARGEST_VALUE = 64 * 1024  # of what ${file:…} names

REFERENCE = re.compile(r"\$(\$)?\{([^{}]*)\}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


_adopted: set[str] = set()


def adopt(values: Mapping[str, str]) -> None:
    """Put what an `env_file` sets into the environment of this process, where runs look it up.

    What the environment had before comes first, and what was adopted from an earlier state of the file is replaced.
    """
    for name in _adopted - values.keys():
        os.environ.pop(name, None)
    for name, value in values.items():
        if name in _adopted or name not in os.environ:
            os.environ[name] = value
            _adopted.add(name)
    _adopted.intersection_update(values)


def own_environment() -> dict[str, str]:
    """The environment without what was adopted."""
    return {name: value for name, value in os.environ.items() if name not in _adopted}


def references_in(text: str) -> Iterator[str]:
    """What stands between the braces of every reference, in order."""
    return (match[2] for match in REFERENCE.finditer(text) if not match[1])


def unescaped(text: str) -> str:
    """A text without references: `$${` means `${`."""
    return REFERENCE.sub(lambda match: match[0][1:] if match[1] else match[0], text)


def filled(text: str, folder: Path, known: Mapping[str, str]) -> str:
    """The text with its references replaced; InvalidSetting as `looked_up` raises it."""
    return REFERENCE.sub(lambda match: match[0][1:] if match[1] else looked_up(match[2], folder, known), text)


def looked_up(reference: str, folder: Path, known: Mapping[str, str]) -> str:
    """What a reference stands for; InvalidSetting, as the end of a sentence, where that cannot be found."""
    if reference.startswith("file:"):
        path = Path(reference.removeprefix("file:"))
        try:
            path = folder / path.expanduser()
            return _value_in(path).rstrip("\r\n")
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidSetting(f"needs the file {path}, which cannot be read ({reason(error)}).") from None
    if not VARIABLE.fullmatch(reference):
        raise InvalidSetting(
            f"has ${{{reference}}}: write ${{NAME}}, ${{file:/path}}, or $${{ for the signs themselves."
        )
    if reference not in known:
        raise InvalidSetting(f"needs ${{{reference}}}, which is not set: set it in the environment or in env_file.")
    return known[reference]


def _value_in(path: Path) -> str:
    """A regular file's text, of 64 KiB at most; ValueError says what is wrong. Never waits, as a pipe would."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        return text_of(file, LARGEST_VALUE)


def text_of(file: IO[bytes], most: int) -> str:
    """The text of a file of so many bytes at most; ValueError says what is wrong."""
    content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"larger than {most // 1024} KiB")
    return content.decode("utf-8")


def reason(error: Exception) -> str:
    """Why a file could not be read."""
    if isinstance(error, UnicodeDecodeError):
        return "not a text file"
    return str(getattr(error, "strerror", None) or error)
