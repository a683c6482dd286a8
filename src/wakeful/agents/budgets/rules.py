"""The rules of budgets: pure functions. Money is counted in millionths, so that sums are exact.

| a run that ended | counts as |
|---|---|
| `noop`, `skipped`, `deferred`, or was never called | nothing |
| with a cost that the agent reported | a run, that cost, the tokens it reported |
| without, also because it crashed, failed or was cancelled | a run, its `max_cost`, the tokens it reported |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from wakeful.triggers.moments import from_ms, to_ms
from wakeful.triggers.zones import place_named

MILLION = 1_000_000
FREE = ("noop", "skipped", "deferred")
RUNS_PER_DAY, COST_PER_DAY = 100, 20.0
"""What all agents together may use where nothing is configured."""
MOST = 2**53  # more than anything costs; higher reports are ignored


class Caps(NamedTuple):
    """What may be used in a day; None: as much as there is."""

    runs: int | None = None
    cost: int | None = None
    tokens: int | None = None


class Spent(NamedTuple):
    """What was used on a day, and what is reserved for runs in progress."""

    runs: int = 0
    cost: int = 0
    tokens: int = 0
    held_runs: int = 0
    held_cost: int = 0


class Charge(NamedTuple):
    """What a run counts as."""

    runs: int = 0
    cost: int = 0
    tokens: int = 0


class Limits(NamedTuple):
    """The budget of all agents together, and the zone of its days."""

    caps: Caps
    zone: str


# -- reading ----------------------------------------------------------------------------------------------------------


def caps_of(written: Mapping[str, Any]) -> Caps:
    """A budget as it is written: `runs_per_day`, `cost_per_day`, `tokens_per_day`."""
    return Caps(written.get("runs_per_day"), in_millionths(written.get("cost_per_day")), written.get("tokens_per_day"))


def written(caps: Caps) -> dict[str, Any]:
    """The same the other way round."""
    cost = None if caps.cost is None else in_units(caps.cost)
    return {"runs_per_day": caps.runs, "cost_per_day": cost, "tokens_per_day": caps.tokens}


def in_millionths(cost: float | None) -> int | None:
    """An amount as it is counted; rounded up, so that many small ones are not nothing."""
    return None if cost is None else math.ceil(round(cost * MILLION, 3))


def in_units(cost: int) -> float:
    return cost / MILLION


# -- deciding ---------------------------------------------------------------------------------------------------------


def over(caps: Caps, spent: Spent, max_cost: int | None) -> str | None:
    """Why one more run that may cost so much is too much, or None."""
    runs = spent.runs + spent.held_runs
    if caps.runs is not None and runs >= caps.runs:
        return f"{runs} of {caps.runs} runs are used today"
    cost = spent.cost + spent.held_cost
    if caps.cost is not None and (cost >= caps.cost or cost + (max_cost or 0) > caps.cost):
        needs = f", and a run may cost {money(max_cost)}" if max_cost and cost < caps.cost else ""
        return f"a cost of {money(cost)} of {money(caps.cost)} is used today{needs}"
    if caps.tokens is not None and spent.tokens >= caps.tokens:
        return f"{spent.tokens:,} of {caps.tokens:,} tokens are used today"
    return None


def charge(outcome: str, usage: Mapping[str, Any] | None, max_cost: int | None) -> Charge:
    """What a run that was claimed counts as, by how it ended and what was reported about it."""
    if outcome in FREE:
        return Charge()
    found = usage or {}
    cost = _amount(found.get("cost"))
    counted = in_millionths(cost) if cost is not None else max_cost
    tokens = sum(int(_amount(found.get(name)) or 0) for name in ("tokens_in", "tokens_out"))
    return Charge(1, counted or 0, tokens)


def _amount(value: Any) -> float | None:
    """A number that a tool reported, if it can be meant."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value if 0 <= value < MOST / MILLION else None


# -- days -------------------------------------------------------------------------------------------------------------


def day_of(now: int, zone: str) -> int:
    """The day it is there, as a number: 20260131."""
    local = from_ms(now).astimezone(place_named(zone))
    return local.year * 10_000 + local.month * 100 + local.day


def next_day(now: int, zone: str) -> int:
    """When the next day begins there; where clocks skip midnight, when they go on."""
    place = place_named(zone)
    local = from_ms(now).astimezone(place)
    following = local.date() + timedelta(days=1)
    at = to_ms(datetime(following.year, following.month, following.day, tzinfo=place))
    while day_of(at, zone) == day_of(now, zone):  # midnight came twice, or not at all
        at += 15 * 60_000
    return at


# -- words ------------------------------------------------------------------------------------------------------------


def money(cost: int) -> str:
    """An amount with two places, or as many as it takes to be more than nothing."""
    text = f"{in_units(cost):,.2f}"
    return text if cost % 10_000 == 0 or float(text.replace(",", "")) > 0 else f"{in_units(cost):f}".rstrip("0")


def spent_words(caps: Caps, spent: Spent) -> str:
    """What was used today beside what may be: "3 of 50 runs, cost 0.12 of 5.00"."""
    parts = [_part(f"{spent.runs + spent.held_runs}", None if caps.runs is None else str(caps.runs), " runs")]
    cost = spent.cost + spent.held_cost
    if cost or caps.cost is not None:
        parts.append(f"cost {_part(money(cost), None if caps.cost is None else money(caps.cost), '')}")
    if spent.tokens or caps.tokens is not None:
        parts.append(_part(f"{spent.tokens:,}", None if caps.tokens is None else f"{caps.tokens:,}", " tokens"))
    return ", ".join(parts)


def _part(used: str, cap: str | None, noun: str) -> str:
    return f"{used}{noun}" if cap is None else f"{used} of {cap}{noun}"
