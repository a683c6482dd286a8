"""Writes docs/keys.md, every key of jobs and schedules, from the schema for editors, and the guide's list of options.

python -m tools.keys
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wakeful.config.loading import json_schema
from wakeful.kernel.rules.option_fields import OPTIONS

PAGE = Path(__file__).parent.parent / "docs" / "keys.md"
GUIDE = PAGE.parent / "configuration.md"
HEAD = """# Keys of jobs and schedules

This page lists every key that a job of [wakeful.yaml](configuration.md#jobs) and a schedule of an
[agent](agents.md#schedules) take. It is made from the schema that `wakeful schema` prints (`python -m tools.keys`).
"""


def render() -> str:
    """The page."""
    whole = json_schema()["$defs"]
    jobs, schedules = whole["JobsSection"]["additionalProperties"], whole["AgentSchedule"]
    return "\n".join([HEAD, _part("Jobs", jobs), _part("Schedules of agents", schedules)])


def guide(text: str) -> str:
    """The guide to `wakeful.yaml`, with all options of jobs in its table."""
    row = f"| how | {', '.join(f'`{option.name}`' for option in OPTIONS)} |"
    return re.sub(r"^\| how \| .*$", row, text, flags=re.MULTILINE)


def _part(name: str, part: Mapping[str, Any]) -> str:
    rows = "".join(
        f"| `{key}` | {_takes(one)} | {_cell(one.get('description', ''))} |\n"
        for key, one in part["properties"].items()
    )
    return f"## {name}\n\n| key | takes | means |\n|---|---|---|\n{rows}"


def _takes(one: Mapping[str, Any]) -> str:
    return _cell(", or ".join(dict.fromkeys(_forms(one))) or "any value")


def _forms(one: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in one:
        yield "a section"
    elif "anyOf" in one:
        for each in one["anyOf"]:
            yield from _forms(each)
    elif "enum" in one:
        yield from (f"`{value}`" for value in one["enum"])
    elif "const" in one:
        yield f"`{str(one['const']).lower()}`"
    elif one.get("description") != "seconds":  # which a file says with a unit
        yield from _by_type(one)


def _by_type(one: Mapping[str, Any]) -> Iterator[str]:
    kind, examples = one.get("type"), one.get("examples", ())
    if isinstance(kind, list):
        for each in kind:
            yield from _by_type({**one, "type": each})
        return
    if kind == "string":
        yield " ".join(f"`{example}`" for example in examples) or "text"
    elif kind == "array":
        yield f"a list of {' or '.join(_forms(one.get('items', {}))) or 'values'}"
    elif kind == "object":
        yield "a section"
    elif kind not in (None, "null"):
        yield {"integer": "a whole number", "number": "a number", "boolean": "`true`, or `false`"}[kind]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    GUIDE.write_text(guide(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
