"""Error messages for wrong settings: our own wording instead of that of the models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WANTED = {
    "int_type": "a whole number", "int_parsing": "a whole number", "int_from_float": "a whole number",
    "string_type": "a text", "list_type": "a list", "model_type": "a section with keys of its own",
    "model_attributes_type": "a section with keys of its own", "bool_type": "true or false",
    "bool_parsing": "true or false", "string_too_short": "a text that is not empty",
    "dict_type": "a section with keys of its own", "float_type": "a number", "float_parsing": "a number",
    "finite_number": "a finite number", "string_pattern_mismatch": "a text that matches {pattern}",
    "string_too_long": "a text of at most {max_length} characters", "too_short": "a list that is not empty",
}  # fmt: skip


EXAMPLES = {
    "heartbeat": ", such as {every: 30m}", "runner": ", such as {preset: claude, cwd: ~/repo}",
    "budget": ", such as {cost_per_day: 5.00}", "untrusted": ", such as {tools: [Read]}",
    "alerts": ", such as {to: phone}", "server": ", such as {port: 7878}", "retention": ", such as {age: 30d}",
    "limits": ", such as {max_running: 4}", "defaults": ", such as {timezone: Europe/Berlin}",
    "agents": ", such as reporter: {runner: {preset: claude}}", "connectors": ", such as log: {type: log}",
    "schedules": ", such as standup: {when: weekdays at 9am, prompt: ...}",
}  # fmt: skip
"""A right form of each section, for who wrote something else."""


def _written(value: object) -> str:
    """A value as the file has it."""
    return (
        {True: "true", False: "false"}[value] if isinstance(value, bool) else "null" if value is None else repr(value)
    )


def complaint(error: Mapping[str, Any], *, secret: bool) -> str:
    """The end of a sentence that begins with the place; the value itself only where it is no secret."""
    kind, context = error["type"], error.get("ctx", {})
    shown = "" if secret or isinstance(error.get("input"), dict | list) else f", not {_written(error['input']):.60}"
    if kind == "value_error":
        said = str(context["error"])
        return f"{said.partition(' (')[0]}." if secret else f"{said}{shown}."
    if kind == "missing":
        return "is missing."
    if kind == "literal_error":
        return f"must be {context['expected']}{shown}."
    bounds = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most")}
    if kind in bounds:
        name, words = bounds[kind]
        bound = context[name]
        return f"must be {words} {int(bound) if bound == int(bound) else bound}{shown}."
    wanted = _WANTED[kind].format(**context) if kind in _WANTED else f"something else: {error['msg']}"
    example = EXAMPLES.get(next(iter(error.get("loc", ())[-1:]), ""), "") if "section" in wanted else ""
    return f"must be {wanted}{example}{shown}."
