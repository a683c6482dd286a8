"""A field of a job, described once: every surface that reads, offers or documents it takes it from here.

The tables are in the rooms: `triggers/fields.py` has rhythms and their modifiers, `kernel/rules/option_fields.py` has
options, and each kind has its own (`Kind.fields`). The models and the description of the HTTP API, the keys and the
schema of `wakeful.yaml`, the flags of the command line and their completion are loops over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Schema = dict[str, Any]
Reader = Callable[[str, Any], Mapping[str, Any]]


class Flag(NamedTuple):
    """How a field is typed on the command line: `--catch-up once`."""

    metavar: str | None = None  # None: it takes no value
    form: str = "text"  # how its text is read; the command line has a reader for each form
    many: bool = False  # may be given several times, each adding a value
    name: str = ""  # where it is not that of the field


def as_it_is(value: Any) -> Any:
    """For what is kept as it is written."""
    return value


class Field(NamedTuple):
    """One field: its name in Python, YAML and JSON, what it means, and what it may hold.

    `read` turns what users write into what is kept and refuses the rest with a sentence; `schema` says the same to
    programs that validate before they send. `write` is the other way.
    """

    name: str
    read: Reader
    schema: Schema
    help: str
    example: Any
    flag: Flag | None = None
    write: Callable[[Any], Any] = as_it_is
    stored: str = ""  # its name in the payload, where that is another
    refers: bool = (
        False  # its texts may hold `${NAME}` in a file: the payload keeps it, and it is looked up for each run
    )

    @property
    def option(self) -> str:
        """Its flag, as it is typed."""
        return (self.flag and self.flag.name) or f"--{self.name.replace('_', '-')}"

    @property
    def described(self) -> Schema:
        """The schema with what the field means."""
        return {**self.schema, "description": self.help}

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it may be, for completion."""
        for schema in (self.schema, *self.schema.get("anyOf", ())):
            if "enum" in schema:
                return tuple(schema["enum"])
        return ()


LASTING, TIME, NUMBER = Flag("DURATION", "duration"), Flag("TIME", "moment"), Flag("N", "count")
LONGEST_S = 36_500 * 86_400
DURATION: Schema = {
    "anyOf": [
        {"type": "string", "pattern": r"^\s*0*[1-9][0-9]*[smhd]\s*$", "maxLength": 20, "examples": ["30s", "5m", "6h"]},
        {"type": "number", "minimum": 0.001, "maximum": LONGEST_S, "description": "seconds"},
    ]
}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 1_000_000}


def one_of(*words: str) -> Schema:
    """One of these words."""
    return {"enum": list(words)}


def list_of(schema: Schema, *, least: int = 0, most: int) -> Schema:
    """A list of up to so many."""
    found: Schema = {"type": "array", "items": schema, "maxItems": most}
    return {**found, "minItems": least} if least else found


def map_of(needed: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """A map with these keys and no others."""
    found: Schema = {
        "type": "object",
        "properties": {**needed, **(optional or {})},
        "additionalProperties": False,
    }
    return {**found, "required": list(needed)} if needed else found
