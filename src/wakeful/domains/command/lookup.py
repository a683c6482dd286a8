"""What would keep a command from being started, as far as can be seen without starting it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wakeful.domains.command.launch import environment
from wakeful.domains.command.spec import CommandSpec
from wakeful.trust import ADVICE, distrust_below

_SHELL_SIGNS = frozenset(" |;&<>$")


def obstacles(spec: CommandSpec, here: Path | None) -> list[str]:
    """Sentences about a directory or program that is not there, looked for as a run does: with its `cwd` and `env`.

    `here` is where a command without a `cwd` would run; None where that is not known.
    """
    return [*_env_file(spec), *_cannot_start(spec, here)]


def obstacles_of_payload(payload: Any, here: Path | None) -> list[str]:
    """The same for what a job has stored."""
    return obstacles(CommandSpec.from_payload(payload), here)


def _env_file(spec: CommandSpec) -> list[str]:
    if spec.env_file is None:
        return []
    if not Path(spec.env_file).exists():
        return [f"The env file {spec.env_file} does not exist here; it is read at every run."]
    doubt = distrust_below(Path(spec.env_file))
    return [] if doubt is None else [f"The env file {spec.env_file} is not used because {doubt}: {ADVICE}."]


def _cannot_start(spec: CommandSpec, here: Path | None) -> list[str]:
    program = spec.argv[0]
    if spec.cwd is None and here is None and "/" in program and not program.startswith(("/", "~")):
        return []
    cwd = Path(os.path.expanduser(spec.cwd)) if spec.cwd is not None else Path()  # noqa: PTH111 - as launch does
    folder = (here or Path.cwd()) / cwd
    if not folder.is_dir():
        found = [f"The directory {folder} does not exist here."]
        return found if "/" in program and not program.startswith("/") else [*found, *_program(spec, folder)]
    return _program(spec, folder)


def _program(spec: CommandSpec, folder: Path) -> list[str]:
    program = spec.argv[0]
    if program.startswith("~"):
        return [f"{program!r} begins with ~, which only a shell expands: write the whole path."]
    if "/" in program:
        path = folder / program
        if not path.exists():
            return [f"{program!r} does not exist{'' if program.startswith('/') else f' in {folder}'}."]
        return [] if path.is_file() and os.access(path, os.X_OK) else [_not_executable(program, path)]
    if "PATH" in spec.env_refs or _is_on_path(program, spec, folder):
        return []
    shell = " There is no shell: for one, write -- sh -c '...'." if _SHELL_SIGNS & set(program) else ""
    return [f"{program!r} was not found on PATH here.{shell}"]


def _not_executable(program: str, path: Path) -> str:
    if path.is_dir():
        return f"{program!r} is a directory, not a program."
    return f"{program!r} is not executable: chmod +x it."


def _is_on_path(program: str, spec: CommandSpec, folder: Path) -> bool:
    """A directory on PATH that is not absolute counts from where the command runs."""
    places = (folder / place / program for place in os.get_exec_path(environment(spec, {})))
    return any(path.is_file() and os.access(path, os.X_OK) for path in places)
