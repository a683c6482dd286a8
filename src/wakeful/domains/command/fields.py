"""What a job that runs a command is written with: `command: ["./backup.sh"]`, and the keys besides it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.domains.command.spec import ARGV_MOST, CODES_MOST, OUTPUT_MOST, check_field
from wakeful.errors import InvalidJob
from wakeful.fields import Field, Flag, Schema, list_of
from wakeful.references import absolute, references_in, unescaped

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}


def _argv(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, list) or not value:
        raise InvalidJob(f'{key} must be a list, such as ["ls", "-l"]; for a shell, ["sh", "-c", "ls | wc -l"].')
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise InvalidJob(f"{key} has {item!r:.40} as argument {index}, which is not text: put it in quotes.")
    check_field("argv", value)
    return {"argv": value}


def _path(key: str, value: Any) -> Mapping[str, Any]:
    check_field("cwd", value)  # any path, and not a whole one yet
    try:
        return {key: str(Path(value).expanduser())}
    except RuntimeError as error:
        raise InvalidJob(f"{key} {value!r:.80}: {error}") from None


def _env(key: str, value: Any) -> Mapping[str, Any]:
    """Plain values are stored; of the others only what they refer to."""
    for name, text in value.items() if isinstance(value, dict) else ():
        if not isinstance(text, str):
            raise InvalidJob(f"{key}.{name} is {text!r:.40}, which is not text: put it in quotes.")
    check_field("env", value)
    plain = {name: unescaped(text) for name, text in value.items() if not any(references_in(text))}
    kept = {name: text for name, text in value.items() if name not in plain}
    try:
        check_field("env_refs", _whole(kept, Path("/")))
    except RuntimeError as error:
        raise InvalidJob(f"{key}: {error}") from None
    return {name: part for name, part in (("env", plain), ("env_refs", kept)) if part}


def _whole(references: Mapping[str, str], folder: Path) -> dict[str, str]:
    return {name: absolute(text, folder) for name, text in references.items()}


def _same(key: str, value: Any) -> Mapping[str, Any]:
    check_field(key, value)
    return {key: value}


def finish(payload: dict[str, Any], folder: Path) -> Mapping[str, Any]:
    """A command runs in the file's folder unless it says where; relative paths begin there, its program's too."""
    program = payload["argv"][0]
    if "cwd" in payload and "/" in program and not program.startswith(("/", "~")):
        payload["argv"] = [str(folder / program), *payload["argv"][1:]]
    paths: dict[str, Any] = {key: str(folder / payload[key]) for key in ("cwd", "env_file") if key in payload}
    kept = {"env_refs": _whole(payload["env_refs"], folder)} if "env_refs" in payload else {}
    return {"cwd": str(folder), **payload, **paths, **kept}


_CODES = list_of({"type": "integer", "minimum": 0, "maximum": 255}, least=1, most=CODES_MOST)
# fmt: off
FIELDS = (
    Field("command", _argv, {**_TEXTS, "minItems": 1, "maxItems": ARGV_MOST},
          "The program and its arguments; there is no shell. For admins.",
          ["./backup.sh", "--full"], stored="argv"),
    Field("cwd", _path, _TEXT, "Directory to run in (default: this one).", "/srv/backup", Flag("DIR", "path")),
    Field("env", _env, {"type": "object", "additionalProperties": _TEXT},
          "Variables, stored with the job.", {"LEVEL": "full"}, Flag("K=V", "pair", many=True), refers=True),
    Field("env_file", _path, _TEXT,
          "NAME=value lines, read at every run, not stored.", "backup.env", Flag("FILE", "path")),
    Field("pass_env", _same, _TEXTS,
          "Variables of the server that are passed on.", ["HOME"], Flag("NAME", many=True)),
    Field("stdin", _same, _TEXT,
          "Standard input; on the command line, - reads it now, from here.", "yes", Flag("TEXT", "input")),
    Field("success_codes", _same, _CODES,
          "Exit codes that mean success, such as 0,3 (default: 0).", [0, 3], Flag("CODES", "codes")),
    Field("output_limit", _same, {"type": "integer", "minimum": 0, "maximum": OUTPUT_MOST},
          "How many bytes of its output are kept (default: 65536).", 65_536, Flag("BYTES", "count")),
)
# fmt: on
