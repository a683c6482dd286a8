"""What a command is: the payload of its job, checked before anything is stored or started."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wakeful.errors import InvalidJob, InvalidSetting
from wakeful.references import VARIABLE, filled, references_in, variables_of

ARGUMENTS_MOST = 512 * 1024
ARGUMENT_MOST = 128 * 1024 - 1  # what Linux takes as one argument
STDIN_MOST = 4 * 1024 * 1024
OUTPUT_MOST = 16 * 1024 * 1024
ARGV_MOST = 10_000
ENV_MOST = 1_000
CODES_MOST = 256
TIMEOUT_MOST_MS = 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What to run. Secrets belong in `pass_env` (names), never in `env` (values, stored with the job)."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    env_refs: Mapping[str, str] = field(default_factory=dict)  # values with ${NAME}, looked up for each run
    env_file: str | None = None  # of NAME=value lines, read for each run
    pass_env: tuple[str, ...] = ()
    timeout_ms: int | None = None
    output_limit: int = 64 * 1024
    success_codes: tuple[int, ...] = (0,)
    stdin: str | None = None

    @classmethod
    def from_payload(cls, payload: object) -> CommandSpec:
        """Read a job's payload; InvalidJob says in one sentence what is wrong with it."""
        if not isinstance(payload, Mapping):
            raise InvalidJob('A command needs a payload such as {"argv": ["./backup.sh"]}.')
        given = {key: value for key, value in payload.items() if value is not None}
        for key in given:
            _refuse_unknown(key)
        if "argv" not in given:
            raise InvalidJob('A command needs argv, the program and its arguments: ["./backup.sh", "--full"].')
        spec = cls(**{key: _CHECKS[key](value) for key, value in given.items()})
        if twice := spec.env.keys() & spec.env_refs.keys():
            raise InvalidJob(f"A command's env and env_refs both have {min(twice)!r}: give it once.")
        if sum(len(text.encode()) + 1 for text in (*spec.argv, *spec.env, *spec.env.values())) > ARGUMENTS_MOST:
            raise InvalidJob(f"A command's argv and env may take {ARGUMENTS_MOST} bytes together; use stdin for more.")
        return spec


def check_field(key: str, value: object) -> None:
    """InvalidJob, where this part of the payload cannot be used."""
    _CHECKS[key](value)


def looked_up(spec: CommandSpec, known: Mapping[str, str]) -> CommandSpec:
    """The same with its env_file read and every reference looked up; InvalidJob names the first that leads nowhere.

    What the job names one by one, in env or pass_env, comes before what its file says.
    """
    if not spec.env_refs and spec.env_file is None:
        return spec
    values = _in_file(spec, known) | dict(spec.env)
    for name, text in spec.env_refs.items():
        try:
            values[name] = filled(text, Path("/"), known)
        except InvalidSetting as error:
            raise InvalidJob(f"env {name} {error}") from None
    return replace(spec, env=values, env_refs={}, env_file=None)


def _in_file(spec: CommandSpec, known: Mapping[str, str]) -> dict[str, str]:
    if spec.env_file is None:
        return {}
    try:
        found = variables_of(Path(spec.env_file))
    except InvalidSetting as error:
        raise InvalidJob(f"env_file {error}") from None
    passed = {name for name in spec.pass_env if name in known}
    return {name: text for name, text in found.items() if name not in passed}


def _refuse_unknown(key: object) -> None:
    if key in _CHECKS:
        return
    near = difflib.get_close_matches(str(key), _CHECKS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_CHECKS)}."
    raise InvalidJob(f"A command has no {key!r}: {hint}")


def _argv(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        raise InvalidJob("A command's argv must be a list of strings, not one string: there is no shell to split it.")
    if not isinstance(value, list | tuple) or not value:
        raise InvalidJob("A command's argv must be a non-empty list of strings.")
    _refuse_many("argv", len(value), ARGV_MOST)
    argv = tuple(_text(item, f"argv[{index}]", most=ARGUMENT_MOST) for index, item in enumerate(value))
    if not argv[0]:
        raise InvalidJob("A command's argv must begin with the name of a program.")
    return argv


def _env(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidJob("A command's env must map names to values.")
    _refuse_many("env", len(value), ENV_MOST)
    return {_name(name, "env"): _text(text, f"env[{name!r}]", most=ARGUMENT_MOST) for name, text in value.items()}


def _env_refs(value: object) -> dict[str, str]:
    found = _env(value)
    for name, text in found.items():
        for reference in references_in(text):
            if not (VARIABLE.fullmatch(reference) or reference.startswith("file:/")):
                raise InvalidJob(
                    f"A command's env_refs[{name!r}] has ${{{reference}}}: write ${{NAME}} or ${{file:/path}}."
                )
    return found


def _env_file(value: object) -> str:
    text = _text(value, "env_file", least=1)
    if not text.startswith("/"):
        raise InvalidJob("A command's env_file must be a whole path, such as /etc/backup.env.")
    return text


def _pass_env(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidJob("A command's pass_env must be a list of names of variables.")
    _refuse_many("pass_env", len(value), ENV_MOST)
    return tuple(_name(name, "pass_env") for name in value)


def _success_codes(value: object) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise InvalidJob("A command's success_codes must be a non-empty list of exit codes.")
    _refuse_many("success_codes", len(value), CODES_MOST)
    return tuple(_number(code, "success_codes", 0, 255) for code in value)


def _refuse_many(where: str, count: int, most: int) -> None:
    if count > most:
        raise InvalidJob(f"A command's {where} has {most} entries at most, not {count}.")


def _name(value: object, where: str) -> str:
    name = _text(value, f"{where} name", least=1)
    if "=" in name:
        raise InvalidJob(f"A command's {where} has the name {name!r}, and a variable's name cannot contain '='.")
    return name


def _text(value: object, where: str, *, least: int = 0, most: int = 4096, nul: bool = False) -> str:
    if not isinstance(value, str):
        raise InvalidJob(f"A command's {where} must be a string, not {type(value).__name__}.")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidJob(f"A command's {where} contains half a surrogate pair, which is not text.") from None
    if "\0" in value and not nul:
        raise InvalidJob(f"A command's {where} contains a NUL byte, which no program can be given.")
    if not least <= size <= most:
        raise InvalidJob(f"A command's {where} must have {least} to {most} bytes, not {size}.")
    return value


def _number(value: object, where: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidJob(f"A command's {where} must be a whole number from {least} to {most}.")
    return value


_CHECKS: dict[str, Callable[[object], Any]] = {
    "argv": _argv,
    "cwd": lambda value: _text(value, "cwd", least=1),
    "env": _env,
    "env_refs": _env_refs,
    "env_file": _env_file,
    "pass_env": _pass_env,
    "timeout_ms": lambda value: _number(value, "timeout_ms", 1, TIMEOUT_MOST_MS),
    "output_limit": lambda value: _number(value, "output_limit", 0, OUTPUT_MOST),
    "success_codes": _success_codes,
    "stdin": lambda value: _text(value, "stdin", most=STDIN_MOST, nul=True),
}
