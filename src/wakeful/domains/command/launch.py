"""Starting a command's program: what it is given, and why it could not be started.

What would keep a program from being started is said beforehand, as far as can be seen.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.child_processes import DEVNULL, clean_environment, is_ordinary, start_process, stdin_file
from wakeful.domains.command.process_group import ProcessGroup
from wakeful.domains.command.result import ArgumentsRefused, CommandFailed
from wakeful.domains.command.spec import CommandSpec
from wakeful.trust import ADVICE, distrust_below

WIDEST = 1024 * 1024  # bytes: more needs the rights of root
LOGIN = "LOGNAME"  # some scripts ask for it besides USER


def environment(spec: CommandSpec, run_env: Mapping[str, str]) -> dict[str, str]:
    """What the command sees. A name in `pass_env` that we do not have is left out; nothing overrides `run_env`."""
    return clean_environment([LOGIN, *spec.pass_env], {**spec.env, **run_env})


def secret_values(spec: CommandSpec) -> set[str]:
    """What the job gives its command by `env` and `pass_env`: any of it may be a secret, ordinary settings apart."""
    passed = {name: os.environ[name] for name in spec.pass_env if name in os.environ}
    given = passed | dict(spec.env)
    return {text for name, text in given.items() if name != LOGIN and not is_ordinary(name)}


def launch(spec: CommandSpec, env: dict[str, str], stderr: int | None = None) -> tuple[ProcessGroup, int]:
    """Start the program; its group and the reading end of the one pipe that takes both its streams, in order.

    With `stderr`, a descriptor, the pipe takes what is printed to the standard output alone, and is as wide as it can
    be: programs on Node.js that exit with much to say lose what the pipe does not hold.

    Done on the loop: the interpreter is blocked until the new program is loaded, so a thread would gain nothing.
    """
    cwd = os.path.expanduser(spec.cwd) if spec.cwd else None  # noqa: PTH111 - an unknown ~user stays as it is
    try:
        with contextlib.ExitStack() as stack:
            stdin = stack.enter_context(stdin_file(spec.stdin.encode())) if spec.stdin is not None else DEVNULL
            pipe, write_end = os.pipe()
            stack.callback(os.close, write_end)
            if stderr is not None:
                _widen(write_end)
            on_failure = stack.enter_context(contextlib.ExitStack())
            on_failure.callback(os.close, pipe)
            errors = write_end if stderr is None else stderr
            group = ProcessGroup(
                start_process(spec.argv, env=env, cwd=cwd, stdin=stdin, stdout=write_end, stderr=errors)
            )
            on_failure.pop_all()
            return group, pipe
    except (OSError, ValueError) as error:
        is_argument = isinstance(error, ValueError) or error.errno == errno.E2BIG
        kind = ArgumentsRefused if is_argument else CommandFailed
        raise kind(_why_not_started(spec.argv[0], cwd, env, error)) from error


def _widen(pipe: int) -> None:
    """Make room in a pipe, as far as the system allows that."""
    if sys.platform == "linux":
        for size in (WIDEST, WIDEST // 4):
            # Refused where a user's pipes together take up too much.
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)
                return


def _why_not_started(program: str, cwd: str | None, env: Mapping[str, str], error: OSError | ValueError) -> str:
    number = error.errno if isinstance(error, OSError) else None
    reason = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, OSError) and cwd is not None and error.filename == cwd:
        return f"the command's cwd {cwd!r} cannot be used: {reason}"
    path = env.get("PATH", os.defpath)
    is_path = "/" in program
    found = shutil.which(str(Path(cwd or "", program)) if is_path else program, mode=os.F_OK, path=path)
    # A folder on PATH that we may not read is reported in place of the program that is nowhere.
    if number in (errno.ENOENT, errno.ENOTDIR) or (number == errno.EACCES and not found and not is_path):
        if found:
            return f"{program!r} names an interpreter in its first line that does not exist"
        if not is_path:
            return f"{program!r} was not found on PATH ({path})"
        return f"{program!r} does not exist" + (f" in {cwd!r}" if cwd and program[0] != "/" else "")
    if number == errno.EACCES:
        return f"{program!r} may not be executed: {reason}; try chmod +x"
    if number == errno.ENOEXEC:
        return f"{program!r} is not a program: a script needs a first line such as #!/bin/sh"
    return f"{program!r} could not be started: {reason}"


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
