"""Starting a command's program: what it is given, and why it could not be started."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from wakeful.command.process_group import ProcessGroup
from wakeful.command.result import CommandFailed
from wakeful.command.spec import CommandSpec

INHERITED = ("PATH", "HOME", "LANG", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")


def environment(spec: CommandSpec, run_env: Mapping[str, str]) -> dict[str, str]:
    """What the command sees. A name in `pass_env` that we do not have is left out; nothing overrides `run_env`."""
    inherited = {name: text for name, text in os.environ.items() if name in INHERITED or name.startswith("LC_")}
    passed = {name: os.environ[name] for name in spec.pass_env if name in os.environ}
    return inherited | passed | dict(spec.env) | dict(run_env)


def secret_values(spec: CommandSpec) -> set[str]:
    """What the job gives its command by `env` and `pass_env`: any of it may be a secret, ordinary settings apart."""
    passed = {name: os.environ[name] for name in spec.pass_env if name in os.environ}
    given = passed | dict(spec.env)
    return {text for name, text in given.items() if name not in INHERITED and not name.startswith("LC_")}


def launch(spec: CommandSpec, env: dict[str, str], stderr: int | None = None) -> tuple[ProcessGroup, int]:
    """Start the program; its group and the reading end of the one pipe that takes both its streams, in order.

    With `stderr`, a descriptor, the pipe takes what is printed to the standard output alone.

    Done on the loop: the interpreter is blocked until the new program is loaded, so a thread would gain nothing.
    """
    cwd = os.path.expanduser(spec.cwd) if spec.cwd else None  # noqa: PTH111 - an unknown ~user stays as it is
    try:
        with contextlib.ExitStack() as stack:
            stdin = stack.enter_context(_stdin_file(spec.stdin)) if spec.stdin is not None else subprocess.DEVNULL
            pipe, write_end = os.pipe()
            stack.callback(os.close, write_end)
            on_failure = stack.enter_context(contextlib.ExitStack())
            on_failure.callback(os.close, pipe)
            errors = write_end if stderr is None else stderr
            popen = subprocess.Popen(  # noqa: S603 - running what the job says is what this kind is for
                spec.argv, stdin=stdin, stdout=write_end, stderr=errors, cwd=cwd, env=env, start_new_session=True
            )
            group = ProcessGroup(popen)
            on_failure.pop_all()
            return group, pipe
    except (OSError, ValueError) as error:
        raise CommandFailed(_why_not_started(spec.argv[0], cwd, env, error)) from error


def _stdin_file(text: str) -> IO[bytes]:
    """A file without a name: unlike a pipe it needs no writer, and no program can block on it."""
    with contextlib.ExitStack() as on_failure:
        if sys.platform == "linux":
            file: IO[bytes] = on_failure.enter_context(os.fdopen(os.memfd_create("stdin"), "w+b"))
        else:
            file = on_failure.enter_context(tempfile.TemporaryFile())
        file.write(text.encode())
        file.seek(0)
        on_failure.pop_all()
    return file


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
