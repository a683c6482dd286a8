"""Names for jobs that had none: from what they run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

LONGEST = 60
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS = (
    "env", "exec", "nice", "ionice", "nohup", "sudo", "time", "timeout", "flock", "chronic", "setsid", "command", "cd",
    "test", "[", "[[", "if", "then",
)  # fmt: skip
_INTERPRETERS = (
    "sh", "bash", "dash", "zsh", "ksh", "python", "python2", "python3", "perl", "php", "ruby", "node", "deno", "bun",
    "uv", "uvx", "npx", "poetry", "pipenv", "run", "java",
)  # fmt: skip
_PASSED_OVER = frozenset({*_WRAPPERS, *_INTERPRETERS})
_PARTS = re.compile(r"&&|\|\||;")
_STEM = re.compile(r"[^A-Za-z0-9_-]+")


def slug(text: str, default: str = "job") -> str:
    """As much of a text as is pleasant in a name: letters, digits, dashes."""
    return _STEM.sub("-", text).strip("-_")[:LONGEST].strip("-_") or default


def name_of_command(command: str) -> str:
    """What to call a job that runs this line of a shell: after its program, or the script that it interprets."""
    for word in _words(command):
        program = word.rpartition("/")[2]
        passed = word.startswith(("-", "/dev/", ">", "<", "&", "|", "$", "~")) or program in _PASSED_OVER
        if not passed and not _ASSIGNMENT.match(word) and not word.isdecimal():
            stem = program.partition(".")[0] if not program.startswith(".") else program
            return slug(stem or program)
    return "job"


def _words(command: str) -> list[str]:
    """The words of the first command in a line that does more than change the folder."""
    parts = _PARTS.split(command)
    part = next((one for one in parts if one.split()[:1] not in (["cd"], [])), command)
    try:
        return shlex.split(part, comments=False)
    except ValueError:
        return part.split()


class Names:
    """Gives every entry a name of its own: `backup`, `backup-2`."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def free(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}-{number}"
        self._taken.add(name)
        return name
