"""The flags of `add` and `edit`: every field of jobs that has one, in groups, and those of the command line alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wakeful.domains import fields_by_kind
from wakeful.domains.command import COMMAND
from wakeful.domains.http import HTTP
from wakeful.domains.monitors import MONITOR
from wakeful.fields import Field, Flag, one_of
from wakeful.kernel.rules.option_fields import OPTIONS
from wakeful.kernel.rules.option_reading import DELIVER_ON
from wakeful.triggers.fields import FIELDS as WHEN


def _as_typed(key: str, value: Any) -> Mapping[str, Any]:
    return {key: value}


# fmt: off
_OF_DELIVERY = Field(
    "deliver_on", _as_typed, one_of(*DELIVER_ON),
    "Which results: `any` (default), `success`, `failure`, `change`.", "failure", Flag("WHICH"))
_OF_AGENTS = (
    Field("agent", _as_typed, {}, "Ask this agent instead of running a command.", "reporter", Flag("AGENT")),
    Field("prompt", _as_typed, {}, "With --agent: the prompt.", "What is new?", Flag("TEXT")),
)
# fmt: on
OF_KINDS: Mapping[str, tuple[Field, ...]] = fields_by_kind()
GROUPS: Mapping[str, tuple[Field, ...]] = {
    "When it runs": WHEN,
    "How it runs": (*OPTIONS, _OF_DELIVERY),
    "What it runs": (*(field for fields in OF_KINDS.values() for field in fields if field not in WHEN), *_OF_AGENTS),
}


def flags() -> Iterator[tuple[str, Field, Flag]]:
    """Each field that can be typed, with the group it is listed in."""
    for group, fields in GROUPS.items():
        yield from ((group, field, field.flag) for field in fields if field.flag is not None)


OWN_KINDS = tuple(kind for kind in OF_KINDS if kind not in (COMMAND, HTTP, MONITOR))
"""The kinds of which this command line knows their fields alone."""


def own_kind(wanted: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first such kind whose flags were typed, with the first of these."""
    return next(((kind, flag) for kind in OWN_KINDS if (flag := given(kind, wanted)) is not None), None)


def given(kind: str, wanted: Mapping[str, Any]) -> str | None:
    """The first flag about a kind of job that was typed; None if there is none."""
    return next((field.option for field in OF_KINDS[kind] if field.flag is not None and field.name in wanted), None)
