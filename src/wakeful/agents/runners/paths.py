"""Paths into what a tool prints: dotted names, `[0]` and `[-1]`, and `*` for every value. Pure.

Keys are looked up in maps and numbers in lists, never attributes of objects.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from wakeful.errors import InvalidJob

EVERY = "*"
_PART = re.compile(r"([^.\[\]]+)((?:\[-?\d+\])*)|((?:\[-?\d+\])+)")
_INDEX = re.compile(r"\[(-?\d+)\]")
Step = str | int


@lru_cache(maxsize=256)
def read_path(text: str) -> tuple[Step, ...]:
    """The steps of a path; InvalidJob where it is none."""
    steps: list[Step] = []
    for part in text.split("."):
        found = _PART.fullmatch(part)
        if found is None:
            raise InvalidJob(f"{text!r:.80} is not a path: write names with dots, such as usage.tokens or items[-1].")
        if found[1]:
            steps.append(found[1])
        steps += [int(number) for number in _INDEX.findall(found[2] or found[3] or "")]
    return tuple(steps)


def values_at(data: Any, path: str) -> list[Any]:
    """What lies at a path: nothing, one value, or several where it has `*`."""
    found = [data]
    for step in read_path(path):
        found = [value for one in found for value in _below(one, step)]
    return found


def value_at(data: Any, path: str) -> Any:
    """The first value at a path, or None."""
    found = values_at(data, path)
    return found[0] if found else None


def number_at(data: Any, path: str) -> float | None:
    """The number at a path; the sum of them where it has `*`. None where there is none."""
    found = [value for value in values_at(data, path) if isinstance(value, int | float) and not isinstance(value, bool)]
    return sum(found) if found else None


def _below(value: Any, step: Step) -> list[Any]:
    if isinstance(step, int):
        return [value[step]] if isinstance(value, list) and -len(value) <= step < len(value) else []
    if step == EVERY:
        return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    return [value[step]] if isinstance(value, dict) and step in value else []
