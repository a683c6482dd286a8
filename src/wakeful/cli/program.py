"""Jobs that run a command, on the command line: from options to a payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.cli.failures import WrongUse

if TYPE_CHECKING:
    from wakeful.cli.definition import Definition

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
    """The payload of the command, or None if no option about it was given. `--stdin -` is what `read_input` gives."""
    changes: dict[str, Any] = {}
    if argv is not None:
        if not argv:
            raise WrongUse("There is nothing after --: give the command to run.")
        changes["argv"] = list(argv)
    if wanted.cwd is not None or old is None:
        given = wanted.cwd if wanted.cwd not in (None, NONE) else "."
        changes["cwd"] = str(here / Path(given or ".").expanduser())
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
