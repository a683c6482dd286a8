"""Paths into what a tool prints: dotted names, `[0]` and `[-1]`, and `*` for every value. Pure.

Keys are looked up in maps and numbers in lists, never attributes of objects.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from wakeful.errors import InvalidJob

EVERY = "*"
MOST = 10**15
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
    return _along(data, read_path(path))


def value_at(data: Any, path: str) -> Any:
    """The first value at a path, or None."""
    found = values_at(data, path)
    return found[0] if found else None


def number_at(data: Any, path: str) -> float | None:
    """The number at a path; the sum of them where it has `*`, 0 where that is of nothing. None where there is none.

    Numbers that cannot be counted are none: below 0, not finite, or beyond all reason.
    """
    found = [value for value in values_at(data, path) if isinstance(value, int | float) and not isinstance(value, bool)]
    if not all(0 <= value <= MOST for value in found):
        return None
    if not found and EVERY in (steps := read_path(path)):
        parents = _along(data, steps[: steps.index(EVERY)])
        return 0 if any(isinstance(parent, dict | list) and not parent for parent in parents) else None
    return sum(found) if found else None


def _along(data: Any, steps: tuple[Step, ...]) -> list[Any]:
    found = [data]
    for step in steps:
        found = [value for one in found for value in _below(one, step)]
    return found


def _below(value: Any, step: Step) -> list[Any]:
    if isinstance(step, int):
        return [value[step]] if isinstance(value, list) and -len(value) <= step < len(value) else []
    if step == EVERY:
        return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    return [value[step]] if isinstance(value, dict) and step in value else []
