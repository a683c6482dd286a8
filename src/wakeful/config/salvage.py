"""What is left of a file without its mistakes: it is looked at, too, so that no mistake hides another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful.config.reading import Fault, Where

STAND_IN = {"start": ["true"]}
"""A runner in place of a missing or wrong one: the rest of the agent is read with it, and nothing is ever run."""
OF_RUNNER = ("runner", "untrusted", "budget")
"""What is judged by an agent's runner."""


def holds_any(place: Where, places: Sequence[Where]) -> bool:
    """Whether one of the places is this one or inside it."""
    return any(other[: len(place)] == place for other in places)


def without(data: Any, places: Sequence[Where]) -> Any:
    """The data without what is at these places, or what they are missing in; always less than it was."""
    kept = data
    for target in dict.fromkeys(_target(data, place) for place in places):
        kept = _removed(kept, target)
    return {} if kept == data or not target else kept


def _target(data: Any, place: Where) -> Where:
    """What goes for a place: itself, a list that it is in, or what it is missing in, unless that is an agent."""
    for depth, key in enumerate(place):
        if not isinstance(data, dict) or isinstance(key, int):
            return place[:depth]
        if key not in data:
            return place[: depth + 1] if _is_runner(place[: depth + 1]) else place[:depth]
        data = data[key]
    return place


def _is_runner(place: Where) -> bool:
    return len(place) == len(("agents", "NAME", "runner")) and place[::2] == ("agents", "runner")


def _removed(data: Any, target: Where, above: Where = ()) -> Any:
    if not target or not isinstance(data, dict) or (target[0] not in data and not _is_runner((*above, *target))):
        return data
    key, rest = target[0], target[1:]
    others = {name: value for name, value in data.items() if name != key}
    if rest:
        return {**others, key: _removed(data[key], rest, (*above, key))}
    needs_one = _is_runner((*above, key)) and data.get(key) is not STAND_IN
    return {**others, key: STAND_IN} if needs_one else others


def not_caused(others: Sequence[Fault], faults: Sequence[Fault]) -> list[Fault]:
    """The others without those that one of the faults may be the reason of: at the same place, or inside of it."""
    return [other for other in others if not any(_may_cause(fault, other) for fault in faults)]


def _may_cause(fault: Fault, other: Fault) -> bool:
    first, second = fault.key.split("."), other.key.split(".")
    of_runner = first[2:3] == ["runner"] and first[:2] == second[:2] and "".join(second[2:3]) in OF_RUNNER
    is_another_key = second[2:3] == ["runner"] and len(second) > len(("agents", "NAME", "runner"))
    return (of_runner and not is_another_key) or first[: len(second)] == second
