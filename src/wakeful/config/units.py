"""Durations in a file have units: 30 could be seconds or minutes, and other tools read it as either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DURATIONS = frozenset({
    "every", "interval", "timeout", "grace", "stagger", "error_span", "within", "cooldown", "tolerance", "max_age",
    "min_interval", "max_ahead", "expires", "deadline",
})  # fmt: skip
"""Keys whose value is a duration, in whatever section."""
LISTS = frozenset({"retry", "backoff", "delays"})
"""Keys that may hold a list of durations."""
OTHERS = frozenset({"env", "headers", "body", "config"})
"""Sections whose keys are not ours."""

Where = tuple[str | int, ...]


def without_unit(data: Any, where: Where = ()) -> Iterator[tuple[Where, str]]:
    """Each whole number that is written where a duration belongs: its place, and what to write instead."""
    for key, value in data.items() if isinstance(data, dict) else ():
        place = (*where, key)
        if key in DURATIONS and _is_bare(value):
            yield place, _complaint(place, value)
        elif key in LISTS and isinstance(value, list):
            bare = [(index, one) for index, one in enumerate(value) if _is_bare(one)]
            yield from (((*place, index), _complaint((*place, index), one)) for index, one in bare)
        elif key not in OTHERS:
            yield from without_unit(value, place)


def _is_bare(value: Any) -> bool:
    return type(value) is int and value > 0


def _complaint(place: Where, value: int) -> str:
    shown = ".".join(map(str, place))
    return f"{shown} has no unit: write {value}s for seconds, or {value}m for minutes."
