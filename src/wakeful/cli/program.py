"""Jobs that run a command, on the command line: from options to a payload, and what looks wrong about it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.cli.failures import WrongUse

if TYPE_CHECKING:
    from wakeful.cli.definition import Definition

COMMAND = "command"
NONE = "none"
OPTIONS = ("cwd", "env", "env_file", "pass_env", "stdin", "success_codes")


def given(wanted: Definition) -> str | None:
    """The first option about a command that was given; None when there is none."""
    return next((f"--{name.replace('_', '-')}" for name in OPTIONS if getattr(wanted, name) is not None), None)


def command_payload(
    wanted: Definition,
    argv: Sequence[str] | None,
    here: Path,
    old: Mapping[str, Any] | None = None,
    read_input: Callable[[], str] = lambda: "",
) -> dict[str, Any] | None:
    """The payload of the command, or None where nothing about it was said. `--stdin -` is what `read_input` gives."""
    changes: dict[str, Any] = {}
    if argv is not None:
        if not argv:
            raise WrongUse("There is nothing after --: say what to run.")
        changes["argv"] = list(argv)
    if wanted.cwd is not None or old is None:
        changes["cwd"] = str(here / Path(wanted.cwd or ".").expanduser())
    if wanted.env is not None:
        changes["env"] = None if wanted.env == [NONE] else dict(_pair("--env", text) for text in wanted.env)
    if wanted.env_file is not None:
        changes["env_file"] = None if wanted.env_file == NONE else str(here / Path(wanted.env_file).expanduser())
    if wanted.pass_env is not None:
        changes["pass_env"] = None if wanted.pass_env == [NONE] else wanted.pass_env
    if wanted.stdin is not None:
        text = read_input() if wanted.stdin == "-" else wanted.stdin
        changes["stdin"] = None if wanted.stdin == NONE else text
    if wanted.success_codes is not None:
        changes["success_codes"] = None if wanted.success_codes == NONE else _codes(wanted.success_codes)
    if not changes:
        return None
    return {key: value for key, value in {**(old or {}), **changes}.items() if value is not None}


def _codes(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not (word.isascii() and word.isdecimal() and len(word) < 4 and int(word) < 256):
            raise WrongUse(f"--success-codes {text!r} is not a list of exit codes: write 0,3.")
    return [int(word) for word in words]


def _pair(option: str, text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise WrongUse(
            f"{option} {text!r} is not NAME=VALUE; to pass a variable on without storing it: --pass-env NAME."
        )
    return name, value


def oddities(payload: Mapping[str, Any]) -> Iterator[str]:
    """What cannot be found from here; it may exist where the server runs, so it is worth a word, not a refusal."""
    program, cwd = payload["argv"][0], payload.get("cwd")
    if cwd is not None and not Path(cwd).is_dir():
        yield f"The directory {cwd} does not exist here."
    env_file = payload.get("env_file")
    if env_file is not None and not Path(env_file).exists():
        yield f"The env file {env_file} does not exist here; it is read at every run."
    if "/" in program:
        path = Path(cwd or ".", Path(program).expanduser() if program.startswith("~") else program)
        if program.startswith("~"):
            yield f"{program!r} begins with ~, which only a shell expands: write the whole path."
        elif not path.exists():
            yield f"{program!r} does not exist in {cwd}." if program[0] != "/" else f"{program!r} does not exist."
        elif not os.access(path, os.X_OK):
            yield f"{program!r} is not executable: chmod +x it."
    elif shutil.which(program) is None:
        shell = " There is no shell: for one, write -- sh -c '...'." if any(c in program for c in " |;&<>$") else ""
        yield f"{program!r} was not found on PATH here.{shell}"
