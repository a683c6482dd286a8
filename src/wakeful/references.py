"""`${NAME}` and `${file:/path}`: references to values that are kept elsewhere, and how they are looked up.

A configuration file is filled in when it is read. A job keeps the reference, and the node that runs it looks the value
up for every run, so that the store never holds it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from wakeful.errors import InvalidSetting
from wakeful.trust import ADVICE, distrust_below, is_read_only

LARGEST_VALUE = 64 * 1024  # of what ${file:…} names

REFERENCE = re.compile(r"\$(\$)?\{([^{}]*)\}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENV_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")


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
    return (match[2] for match in REFERENCE.finditer(text) if not match[1]) if "${" in text else iter(())


def references_below(value: object, where: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every reference in plain data, with the place of its text."""
    if isinstance(value, str):
        yield from ((where, reference) for reference in references_in(value))
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in parts:
        yield from references_below(item, (*where, key))


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed; names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: map_texts(one, change) for name, one in value.items()}
    return [map_texts(one, change) for one in value] if isinstance(value, list | tuple) else value


def may_refer(data: object) -> bool:
    """Whether plain data has anything like a reference in it: one look, where most has none."""
    return "${" in repr(data)


def unescaped(text: str) -> str:
    """A text without references: `$${` means `${`."""
    return REFERENCE.sub(lambda match: match[0][1:] if match[1] else match[0], text)


def filled(text: str, folder: Path, known: Mapping[str, str]) -> str:
    """The text with its references replaced; InvalidSetting as `looked_up` raises it."""
    return REFERENCE.sub(lambda match: match[0][1:] if match[1] else looked_up(match[2], folder, known), text)


def looked_up(reference: str, folder: Path, known: Mapping[str, str], named_by: Path | None = None) -> str:
    """The value of a reference; InvalidSetting, as the end of a sentence, if it cannot be found.

    `named_by`: the configuration that has the reference, whose owner may also own the file.
    """
    if reference.startswith("file:"):
        path = Path(reference.removeprefix("file:"))
        try:
            path = folder / path.expanduser()
            # Secrets are often mounted for reading, and belong to whoever is outside of the container.
            doubt = None if is_read_only(path) else distrust_below(path, named_by=named_by)
            if doubt is None:
                return _value_in(path).rstrip("\r\n")
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidSetting(f"needs the file {path}, which cannot be read ({reason(error)}).") from None
        raise InvalidSetting(f"needs the file {path}, which is not used because {doubt}: {ADVICE}.")
    if not VARIABLE.fullmatch(reference):
        raise InvalidSetting(f"has ${{{reference}}}: write ${{NAME}}, ${{file:/path}}, or $${{ for a literal ${{.")
    if reference not in known:
        raise InvalidSetting(f"needs ${{{reference}}}, which is not set: set it in the environment or in env_file.")
    return known[reference]


def absolute(text: str, folder: Path) -> str:
    """With `${file:…}` as an absolute path: the code that looks it up does not know where the file was."""

    def replace(match: re.Match[str]) -> str:
        name = str(match[2])
        if match[1] or not name.startswith("file:"):
            return str(match[0])
        return f"${{file:{folder / Path(name.removeprefix('file:')).expanduser()}}}"

    return REFERENCE.sub(replace, text)


NOT_A_VARIABLE = "This line is not NAME=value."


def variables_in(lines: Iterable[str]) -> tuple[dict[str, str], int | None]:
    """What NAME=value lines set, and the number of the first line that is something else.

    That line is not repeated: there may be a secret in it.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ENV_LINE.fullmatch(line.strip())
        if match is None:
            return found, number
        found[match[1]] = _unquoted(match[2])
    return found, None


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return re.split(r"\s+#", text, maxsplit=1)[0].rstrip()


def variables_of(path: Path) -> dict[str, str]:
    """What a file of NAME=value lines sets; InvalidSetting, as the end of a sentence, where it cannot be read."""
    if (doubt := distrust_below(path)) is not None:
        raise InvalidSetting(f"{path} is not used because {doubt}: {ADVICE}.")
    try:
        found, wrong = variables_in(_value_in(path).splitlines())
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"{path} cannot be read ({reason(error)}).") from None
    if wrong is not None:
        raise InvalidSetting(f"{path}, line {wrong}: {NOT_A_VARIABLE}")
    return found


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
