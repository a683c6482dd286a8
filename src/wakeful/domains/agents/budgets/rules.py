"""The rules of budgets: pure functions. Money is counted in millionths, so that sums are exact.

| a run that ended | counts as |
|---|---|
| without a call: `noop`, `skipped`, `deferred`, never started, or a runner that cannot be used | nothing |
| with a cost that was reported, also of a call that failed or met a limit | a run, that cost, the tokens reported |
| without one, also because it timed out, crashed or was cancelled | a run, its `max_cost`, the tokens reported |
| without one and without a `max_cost` | a run, the mean of the agent's last 20 reported costs |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from types import EllipsisType
from typing import Any, NamedTuple

from wakeful.counting import counted
from wakeful.errors import InvalidSetting
from wakeful.triggers.moments import from_ms, to_ms
from wakeful.triggers.zones import place_named

MILLION = 1_000_000
FREE = ("noop", "skipped", "deferred")
RUNS_PER_DAY, COST_PER_DAY = 100, 20.0
"""Where nothing is configured: how often each agent may run, and what all of them together may cost."""
MOST_COST, MOST_TOKENS = 1_000_000, 10**12  # more than any run uses; higher reports are no reports
REPORTED, AT_MOST, MEAN, UNKNOWN = "reported", "max_cost", "mean", "unknown"  # where the cost of a run is from
MOST_CAP = 10**12  # the highest budget
RECENT = 20  # reported costs whose mean stands for one that was not


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


class Assumed(NamedTuple):
    """What a run costs that does not report it, and why so much."""

    cost: int = 0
    basis: str = UNKNOWN


class Charge(NamedTuple):
    """What a run counts as; `basis`: where its cost is from."""

    runs: int = 0
    cost: int = 0
    tokens: int = 0
    basis: str = UNKNOWN


class BudgetLimits(NamedTuple):
    """The budget of all agents together, and the zone of its days; `each`: the runs of one whose budget names none."""

    caps: Caps
    zone: str
    each: int | None = None


# -- reading ----------------------------------------------------------------------------------------------------------


def caps_of(written: Mapping[str, Any]) -> Caps:
    """A budget as it is written: `runs_per_day`, `cost_per_day`, `tokens_per_day`."""
    return Caps(written.get("runs_per_day"), in_millionths(written.get("cost_per_day")), written.get("tokens_per_day"))


def own_budget(given: Mapping[str, Any] | None, limits: BudgetLimits) -> dict[str, Any]:
    """An agent's budget as it applies: with the default where neither it nor the budget of all says how many runs."""
    default = {} if limits.each is None else {"runs_per_day": limits.each}
    return {key: value for key, value in {**default, **(given or {})}.items() if value is not None}


def given_limits(
    runs_per_day: int | EllipsisType | None, cost_per_day: float | None, tokens_per_day: int | None, *, zone: str
) -> BudgetLimits:
    """The budget of all agents as it was given; `...`: nothing was said about runs. InvalidSetting names a mistake."""
    runs = None if runs_per_day is ... else runs_per_day
    said = {"runs_per_day": runs, "cost_per_day": cost_per_day, "tokens_per_day": tokens_per_day}
    for name, value in said.items():
        in_money = name == "cost_per_day"
        if value is not None and (amount(value, MOST_CAP) is None or not (in_money or isinstance(value, int))):
            kind = "an amount" if in_money else "a whole number"
            raise InvalidSetting(f"{name} is {kind} from 0 to {MOST_CAP:,}, or None for no limit, not {value!r:.40}.")
    return BudgetLimits(caps_of(said), zone, RUNS_PER_DAY if runs_per_day is ... else None)


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
        return f"{runs} of {counted(caps.runs, 'run')} {'is' if caps.runs == 1 else 'are'} used today"
    cost = spent.cost + spent.held_cost
    if caps.cost is not None and (cost >= caps.cost or cost + (max_cost or 0) > caps.cost):
        needs = f", and a run may cost {money(max_cost)}" if max_cost and cost < caps.cost else ""
        return f"a cost of {money(cost)} of {money(caps.cost)} is used today{needs}"
    if caps.tokens is not None and spent.tokens >= caps.tokens:
        most = "1 token is" if caps.tokens == 1 else f"{caps.tokens:,} tokens are"
        return f"{spent.tokens:,} of {most} used today"
    return None


def assumed(max_cost: int | None, reported: Sequence[int]) -> Assumed:
    """What a run costs that does not report it: its limit, or the mean of what the agent's last runs reported."""
    if max_cost is not None:
        return Assumed(max_cost, AT_MOST)
    recent = reported[:RECENT]
    return Assumed(-(-sum(recent) // len(recent)), MEAN) if recent else Assumed()


def charge(outcome: str, usage: Mapping[str, Any] | None, otherwise: Assumed) -> Charge:
    """What a run that was claimed counts as, by how it ended and what was reported; `usage` is None without a call."""
    if outcome in FREE and usage is None:
        return Charge()
    found = usage or {}
    tokens = sum(int(amount(found.get(name), MOST_TOKENS) or 0) for name in ("tokens_in", "tokens_out"))
    cost = in_millionths(amount(found.get("cost"), MOST_COST))
    return Charge(1, otherwise.cost, tokens, otherwise.basis) if cost is None else Charge(1, cost, tokens, REPORTED)


def amount(value: Any, most: int) -> float | None:
    """A number that was reported, if it can be meant: none below nothing, none beyond all reason."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value <= most:
        return None  # no comparison is true of NaN
    return float(value) if isinstance(value, Decimal) else value


# -- days -------------------------------------------------------------------------------------------------------------


def day_of(now: int, zone: str) -> int:
    """The day it is there, as a number: 20260131."""
    local = from_ms(now).astimezone(place_named(zone))
    return local.year * 10_000 + local.month * 100 + local.day


def next_day(now: int, zone: str) -> int:
    """When the next day begins there; where clocks skip midnight, when they continue."""
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
    """What was used today besides what may be: "3 of 50 runs, cost 0.12 of 5.00"."""
    parts = [_part(spent.runs + spent.held_runs, caps.runs, "run")]
    cost = spent.cost + spent.held_cost
    if cost or caps.cost is not None:
        parts.append(f"cost {money(cost)}{'' if caps.cost is None else f' of {money(caps.cost)}'}")
    if spent.tokens or caps.tokens is not None:
        parts.append(_part(spent.tokens, caps.tokens, "token"))
    return ", ".join(parts)


def _part(used: int, cap: int | None, noun: str) -> str:
    last = used if cap is None else cap
    whole = f"{used:,}" if cap is None else f"{used:,} of {cap:,}"
    return f"{whole} {noun if last == 1 else f'{noun}s'}"
