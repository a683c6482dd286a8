"""The arguments of tools: their JSON Schema, and a check that says in one sentence what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from wakeful.counting import counted
from wakeful.errors import IntervalParseError, InvalidJob
from wakeful.triggers.durations import interval_ms

Schema = Mapping[str, Any]
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "number": (int, float),
}
_HALF = re.compile("[\ud800-\udfff]")  # a surrogate that stands alone
_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a map",
}


def text(description: str, *, most: int = 1000, **more: Any) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description, **more}


def whole(description: str, least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def checked(given: Any, fields: Mapping[str, Schema], required: tuple[str, ...]) -> dict[str, Any]:
    """The arguments, without those that are null; InvalidJob names the first that is wrong."""
    if not isinstance(given, Mapping):
        raise InvalidJob("The arguments are a map of names and values.")
    for name in given:
        if name not in fields:
            near = get_close_matches(str(name), fields, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            known = f"it takes {', '.join(fields)}" if fields else "it takes none"
            raise InvalidJob(f"There is no argument {str(name)!r:.60}: {known}.{hint}")
    found = {name: _one(name, value, fields[name]) for name, value in given.items() if value is not None}
    missing = next((name for name in required if name not in found), None)
    if missing is not None:
        raise InvalidJob(f"The argument {missing} is missing: {fields[missing]['description']}")
    return found


def _one(name: str, value: Any, schema: Schema) -> Any:
    if "anyOf" in schema:
        kinds = [one["type"] for one in schema["anyOf"]]
        fitting = next((one for one in schema["anyOf"] if _fits(value, one["type"])), None)
        if fitting is None:
            raise InvalidJob(f"{name} is {' or '.join(_WORDS[kind] for kind in kinds)}, not {value!r:.40}.")
        return _one(name, value, fitting)
    kind = schema.get("type")
    if kind is not None and not _fits(value, kind):
        raise InvalidJob(f"{name} is {_WORDS[kind]}, not {value!r:.40}.")
    if kind == "string":
        _check_text(name, value, schema)
    elif kind == "integer" and not schema["minimum"] <= value <= schema["maximum"]:
        raise InvalidJob(f"{name} is from {schema['minimum']} to {schema['maximum']}, not {value!r:.40}.")
    elif kind == "array":
        _check_list(name, value, schema)
    return value


def milliseconds(given: Mapping[str, Any], name: str, example: str) -> int | None:
    """How long an argument says, None where it is not given; InvalidJob names it."""
    if name not in given:
        return None
    try:
        return interval_ms(given[name])
    except IntervalParseError as error:
        raise InvalidJob(f"{name} is a duration such as {example}, not {given[name]!r:.40}: {error}") from None


def _fits(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _check_text(name: str, value: str, schema: Schema) -> None:
    if not value.strip():
        raise InvalidJob(f"{name} is empty: give a text, or leave it out.")
    if len(value) > schema["maxLength"]:
        raise InvalidJob(f"{name} has at most {counted(schema['maxLength'], 'character')}, not {len(value)}.")
    if "\0" in value or _HALF.search(value):
        raise InvalidJob(f"{name} contains a character that cannot be stored, such as NUL or half of a pair.")


def _check_list(name: str, value: list[Any], schema: Schema) -> None:
    if not 1 <= len(value) <= schema["maxItems"]:
        raise InvalidJob(f"{name} has at least 1 and at most {counted(schema['maxItems'], 'item')}, not {len(value)}.")
    for item in value:
        _one(f"each item of {name}", item, schema["items"])
