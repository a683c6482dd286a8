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
    for place in places:
        kept = _without(kept, place, ())
    return {} if kept == data else kept


def _without(data: Any, place: Where, above: Where) -> Any:
    """A list goes as a whole, and an agent whose runner is missing or goes gets one."""
    key = place[0] if place else None
    if not isinstance(data, dict) or key is None or isinstance(key, int):
        return None
    is_runner = key == "runner" and len(above) == len(("agents", "NAME")) and above[0] == "agents"
    if key not in data and not is_runner:
        return None
    rest = _without(data[key], place[1:], (*above, key)) if len(place) > 1 and key in data else None
    if rest is None and is_runner and data.get(key) is not STAND_IN:
        rest = STAND_IN
    others = {name: value for name, value in data.items() if name != key}
    return others if rest is None else {**others, key: rest}


def not_caused(others: Sequence[Fault], faults: Sequence[Fault]) -> list[Fault]:
    """The others without those that one of the faults may be the reason of: at the same place, or inside of it."""
    return [other for other in others if not any(_may_cause(fault, other) for fault in faults)]


def _may_cause(fault: Fault, other: Fault) -> bool:
    first, second = fault.key.split("."), other.key.split(".")
    of_runner = first[2:3] == ["runner"] and first[:2] == second[:2] and "".join(second[2:3]) in OF_RUNNER
    return of_runner or first[: len(second)] == second
