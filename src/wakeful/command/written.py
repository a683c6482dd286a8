"""How a command is written in a configuration file: `command: ["./backup.sh"]`, and the keys beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wakeful.command.spec import check_field
from wakeful.errors import InvalidJob
from wakeful.kernel.kinds import WrittenForm
from wakeful.references import absolute, references_in, unescaped

_TEXTS = {"type": "array", "items": {"type": "string"}}


def _argv(value: Any, folder: Path) -> Mapping[str, Any]:  # noqa: ARG001 - every key is read this way
    if not isinstance(value, list) or not value:
        raise InvalidJob('command must be a list, such as ["ls", "-l"]; for a shell, ["sh", "-c", "ls | wc -l"].')
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise InvalidJob(f"command has {item!r:.40} as argument {index}, which is not text: put it in quotes.")
    check_field("argv", value)
    return {"argv": value}


def _path(key: str) -> Callable[[Any, Path], Mapping[str, Any]]:
    """A path, from the file's folder on."""

    def read(value: Any, folder: Path) -> Mapping[str, Any]:
        check_field("cwd", value)  # any path, and not a whole one yet
        try:
            return {key: str(folder / Path(value).expanduser())}
        except RuntimeError as error:
            raise InvalidJob(f"{key} {value!r:.80}: {error}") from None

    return read


def _env(value: Any, folder: Path) -> Mapping[str, Any]:
    """Plain values are stored; of the others only what they refer to."""
    if isinstance(value, dict):
        for name, text in value.items():
            if not isinstance(text, str):
                raise InvalidJob(f"env.{name} is {text!r:.40}, which is not text: put it in quotes.")
    check_field("env", value)
    plain = {name: unescaped(text) for name, text in value.items() if not any(references_in(text))}
    kept = {name: absolute(text, folder) for name, text in value.items() if name not in plain}
    check_field("env_refs", kept)
    return {key: part for key, part in (("env", plain), ("env_refs", kept)) if part}


def _same(key: str) -> Callable[[Any, Path], Mapping[str, Any]]:
    def read(value: Any, folder: Path) -> Mapping[str, Any]:  # noqa: ARG001 - every key is read this way
        check_field(key, value)
        return {key: value}

    return read


def _finish(payload: dict[str, Any], folder: Path) -> Mapping[str, Any]:
    """A command runs in the file's folder unless it says where; a relative path to its program begins there, too."""
    program = payload["argv"][0]
    if "cwd" in payload and "/" in program and not program.startswith(("/", "~")):
        payload["argv"] = [str(folder / program), *payload["argv"][1:]]
    return {"cwd": str(folder), **payload}


FORM = WrittenForm(
    key="command",
    fields={
        "command": _argv,
        "cwd": _path("cwd"),
        "env": _env,
        "env_file": _path("env_file"),
        "pass_env": _same("pass_env"),
        "stdin": _same("stdin"),
        "success_codes": _same("success_codes"),
        "output_limit": _same("output_limit"),
    },
    finish=_finish,
    with_references=frozenset({"env"}),
    names={"argv": "command"},
    schema={
        "command": {**_TEXTS, "minItems": 1},
        "cwd": {"type": "string"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "env_file": {"type": "string"},
        "pass_env": _TEXTS,
        "stdin": {"type": "string"},
        "success_codes": {"type": "array", "items": {"type": "integer"}},
        "output_limit": {"type": "integer"},
    },
)
