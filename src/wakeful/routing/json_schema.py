"""What a job's trigger and options may look like, as JSON Schema: for the API's description of itself.

The kernel reads and validates them. These are the same rules for programs that validate before they send;
what no schema can say (a zone there is none of, a cron line that never comes) is refused with 400.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field as Limit
from pydantic.alias_generators import to_camel

from wakeful.domains import fields_by_kind
from wakeful.fields import DURATION, LONGEST_S, Schema
from wakeful.kernel.rules import option_fields
from wakeful.triggers.fields import BESIDE, BY_WORD, FIELDS, HOURS, PING, TIMED

NULL: Schema = {"type": "null"}


def nullable(schema: Schema) -> Schema:
    """Null counts as if the field were left out."""
    return {"anyOf": [schema, NULL]}


def plain_type(schema: Schema) -> Any:
    """What a field of this schema is read as: of the wrong type it is refused before its reader sees it."""
    if schema.get("type") == "string":
        return Annotated[str, Limit(max_length=schema["maxLength"])]
    if "const" in schema:
        return bool
    if "enum" in schema:
        return str
    types: dict[str, Any] = {
        "boolean": bool,
        "integer": int,
        "number": float,
        "array": list[Any],
        "object": dict[str, Any],
    }
    return types.get(schema.get("type", ""), Any)


def _map(needed: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    others = {name: nullable(one) for name, one in (optional or {}).items()}
    found: Schema = {"type": "object", "properties": {**needed, **others}, "additionalProperties": False}
    return {**found, "required": list(needed)} if needed else found


def _beside(*names: str) -> dict[str, Schema]:
    return {name: BESIDE[name].schema for name in names}


#: The rhythms in which a ping may be expected.
EXPECTED = ("when", "cron", "every", "interval")


def _forms() -> list[Schema]:
    short, long = dict[str, Schema](), dict[str, Schema]()
    for word, (field, make, value, beside) in BY_WORD.items():
        short[word] = _map({word: field.schema}, _beside(*beside))
        own = {} if value is None else {value: field.schema}
        long[word] = _map({"type": {"const": make.type}, **own}, _beside(*beside))
    pings = [
        _map({"ping": PING.schema, word: BY_WORD[word].field.schema}, _beside(*BY_WORD[word].beside, "grace"))
        for word in EXPECTED
    ]
    schedule = {"anyOf": [long[word] for word in EXPECTED]}
    pings.append(_map({"type": {"const": "ping"}, "schedule": schedule}, _beside("grace")))
    return [*short.values(), *long.values(), *pings]


TRIGGER: Schema = {
    "description": 'When: a short form such as {"every": "6h"}, or the long one with a type.',
    "anyOf": _forms(),
    "examples": [{"cron": "0 9 * * 1-5", "tz": "Europe/Berlin"}, {"type": "every", "interval": "6h"}],
}
OPTIONS: dict[str, Schema] = {field.name: field.described for field in option_fields.OPTIONS}
NESTED = _map({}, {**OPTIONS, **{field.name: {"description": field.help} for field in option_fields.INTERNAL}})
WHEN: dict[str, Schema] = {
    field.name: field.schema for field in FIELDS if field.flag is not None
}  # what others start is written as a trigger
COMMAND = fields_by_kind()["command"][0]


def one_trigger(schema: Schema, _: object, *, keeps: bool = False, examples: list[Any] | None = None) -> None:
    """Rewrite a job's schema: its trigger in a field of that name, or a short form besides the other fields.

    Where a trigger may be kept, name, kind and enabled are left out rather than null.
    """
    fields, needed = schema["properties"], schema.pop("required", [])
    plain = {name: one for name, one in fields.items() if name not in (*WHEN, "trigger")}
    if keeps:
        plain |= {name: _without_null(plain[name]) for name in ("name", "kind", "enabled")}
    short = {name: nullable(one) for name, one in WHEN.items()}
    ways: list[tuple[dict[str, Schema], list[str]]] = [
        ({**plain, "trigger": TRIGGER}, [*needed, "trigger"]),
        ({**plain, **short}, needed),
    ]
    _rewrite(schema, ways, examples)


def one_of(schema: Schema, _: object, *, words: tuple[str, ...], examples: list[Any] | None = None) -> None:
    """Rewrite a schema of which exactly one of these fields is to be given."""
    fields, always = schema["properties"], schema.get("required", [])
    forms = [
        ({**fields, **dict.fromkeys(words, NULL), word: _without_null(fields[word])}, [word, *always]) for word in words
    ]
    _rewrite(schema, forms, examples)


def ended(schema: Schema, _: object) -> None:
    """Rewrite the schema of a report: a success, or an error with its text."""
    fields = schema["properties"]
    success = {**fields, "outcome": {"enum": ["success", None]}, "error": NULL}
    _rewrite(schema, [(success, []), ({**fields, "outcome": {"enum": ["error", None]}}, [])], None)


def carries(schema: Schema, _: object, *, state: tuple[str, ...], examples: list[Any] | None = None) -> None:
    """A request may carry along what answers say of how things stand; nothing is done with it."""
    schema["properties"] |= {name: {"description": "ignored"} for name in state if name not in schema["properties"]}
    if examples is not None:
        schema["examples"] = examples


def says_something(schema: Schema, _: object, *, state: tuple[str, ...], parts: tuple[str, ...]) -> None:
    """The same for a change: it names at least one of its parts, and those but the last are never null."""
    carries(schema, _, state=state)
    for name in parts[:-1]:
        schema["properties"][name] = _without_null(schema["properties"][name])
    schema["anyOf"] = [{"required": [name]} for name in parts]


def _camel(names: dict[str, Schema]) -> dict[str, Schema]:
    return {to_camel(name): one for name, one in names.items()}


_ZONED = {"timezone": BESIDE["tz"].schema, **_camel(_beside(*(name for name in TIMED if name != "tz")))}
_MINUTES: Schema = {
    "type": "number",
    "exclusiveMinimum": 0,
    "maximum": LONGEST_S // 60,
    "description": "not below the server's minimum",
}
SCHEDULE_OPTIONS = _map({}, {**_camel(OPTIONS), "hooks": OPTIONS["deliver"], "bounded": {"description": "ignored"}})
TIMING: Schema = {
    "description": (
        "When: `cron` has an expression, `interval` minutes after each run, `once` a time, `after` a job, `when` words."
    ),
    "anyOf": [
        _map({"type": {"const": "cron"}, "expression": BY_WORD["cron"].field.schema}, _ZONED),
        _map({"type": {"enum": ["interval", "every"]}, "intervalMinutes": _MINUTES}, {**_beside("anchor"), **_ZONED}),
        _map({"type": {"enum": ["once", "at"]}, "at": BY_WORD["at"].field.schema}, _ZONED),
        _map({"type": {"const": "after"}, "job": BY_WORD["after"].field.schema}, _beside("on")),
        _map({"type": {"const": "when"}, "words": BY_WORD["when"].field.schema}, _ZONED),
    ],
}


def instead(other: Schema) -> Callable[[Schema], None]:
    """For a model whose schema is written here."""

    def replaced(schema: Schema) -> None:
        title = schema["title"]
        schema.clear()
        schema.update({"title": title, **other})

    return replaced


def _rewrite(schema: Schema, forms: list[tuple[dict[str, Schema], list[str]]], examples: list[Any] | None) -> None:
    for key in ("properties", "required", "type", "additionalProperties"):
        schema.pop(key, None)
    schema["anyOf"] = [
        {"type": "object", "properties": fields, "required": needed, "additionalProperties": False}
        for fields, needed in forms
    ]
    if examples is not None:
        schema["examples"] = examples


def _without_null(schema: Schema) -> Schema:
    said = [one for one in schema.get("anyOf", []) if one != NULL]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**said[0], **rest} if len(said) == 1 else {"anyOf": said, **rest} if said else schema


#: Schemas that are used in many places are described once.
SHARED: dict[str, Schema] = {"Trigger": TRIGGER, "Duration": DURATION, "ActiveHours": HOURS}


def shared(part: Any, within: str | None = None) -> Any:
    """A description in which what many share is referred to by name."""
    if isinstance(part, dict):
        for name, schema in SHARED.items():
            if name != within and part == schema:
                return {"$ref": f"#/components/schemas/{name}"}
        return {key: shared(value) for key, value in part.items()}
    return [shared(one) for one in part] if isinstance(part, list) else part


def whole(value: Any) -> Any:
    """JSON does not distinguish 5 and 5.0; the kernel does."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    return [whole(one) for one in value] if isinstance(value, list) else value
