"""Forecasts within budgets: when each is used up, and how much of what is asked for runs until then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.foresight.forecasting import JobForecast
    from wakeful.kernel.domain import Budget

WHOLE = 1.0  # a budget lasts for all of a day
MEASURES = 3  # runs, cost and tokens

Amounts = Sequence[float]
"""Runs, cost and tokens."""


class Reached(NamedTuple):
    """A budget, and when it is expected to be used up for the first time; None: not within the forecast."""

    agent: str | None
    cap: Mapping[str, float]
    reached_at: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        at = None if self.reached_at is None else iso(self.reached_at)
        return {"agent": self.agent, "cap": dict(self.cap), "reached_at": at}


def within_budgets(
    jobs: Sequence[JobForecast], budgets: Sequence[Budget], bounds: Sequence[int]
) -> tuple[list[JobForecast], list[Reached]]:
    """The forecasts of jobs with what budgets let start of them, and when each budget is used up.

    Within a day, runs are taken as spread evenly. When a budget is used up, the rest of its day is left out.
    """
    asked = _asked_by_agent(jobs, len(bounds) - 1)
    own = {one.owner: _lasting(one, {one.owner: asked[one.owner]}, {}) for one in budgets if one.owner in asked}
    shared = [_lasting(one, asked, own) for one in budgets if one.owner is None]
    lasting = {agent: _shortest([*shared, *([own[agent]] if agent in own else [])]) for agent in asked}
    held = [_held(job, lasting.get(job.agent)) for job in jobs]
    unused = [WHOLE] * (len(bounds) - 1)
    of_all = iter(shared)
    parts = [next(of_all) if one.owner is None else own.get(one.owner, unused) for one in budgets]
    return held, [_reached(*pair, bounds) for pair in zip(budgets, parts, strict=True)]


def _asked_by_agent(jobs: Iterable[JobForecast], days: int) -> dict[str | None, list[list[float]]]:
    """What the jobs of each agent ask for, by day."""
    found: dict[str | None, list[list[float]]] = {}
    for job in jobs:
        if job.agent is None or not job.called:
            continue
        sums = found.setdefault(job.agent, [[0.0] * MEASURES for _ in range(days)])
        each = (job.called, job.history.cost, job.history.tokens)
        for number, count in enumerate(job.counts):
            if count:
                sums[number] = [known + count * one for known, one in zip(sums[number], each, strict=True)]
    return found


def _lasting(
    budget: Budget, asked: Mapping[str | None, Sequence[Amounts]], own: Mapping[str | None, Sequence[float]]
) -> list[float]:
    """For which part of each day a budget lasts, where agents stop earlier that have used up their own."""
    days = len(next(iter(asked.values()), ()))
    return [_part(budget, number, asked, own) for number in range(days)]


def _part(
    budget: Budget, day: int, asked: Mapping[str | None, Sequence[Amounts]], own: Mapping[str | None, Sequence[float]]
) -> float:
    used = (budget.used_runs, budget.used_cost, budget.used_tokens) if day == 0 else (0, 0.0, 0)
    parts = [WHOLE]
    for measure, cap in enumerate((budget.runs, budget.cost, budget.tokens)):
        if cap is not None:
            uses = [(days[day][measure], own[one][day] if one in own else WHOLE) for one, days in asked.items()]
            parts.append(_part_until(cap - used[measure], uses))
    return min(parts)


def _part_until(left: float, uses: Iterable[tuple[float, float]]) -> float:
    """After which part of a day so much is used, by uses with their amount in a whole day and when they stop."""
    wanted = sorted((stop, amount) for amount, stop in uses if amount > 0 and stop > 0)
    rate, moment = sum(amount for _, amount in wanted), 0.0
    for stop, amount in wanted:
        if left < rate * (stop - moment):
            return moment + max(0.0, left) / rate
        left, moment, rate = left - rate * (stop - moment), stop, rate - amount
    return WHOLE


def _shortest(several: Sequence[Sequence[float]]) -> list[float]:
    return [min(parts) for parts in zip(*several, strict=True)]


def _held(job: JobForecast, lasting: Sequence[float] | None) -> JobForecast:
    """The forecast of a job with what is let start of it."""
    if not lasting or min(lasting) >= WHOLE:
        return job
    return job._replace(counts=[count * part for count, part in zip(job.counts, lasting, strict=True)])


def _reached(budget: Budget, parts: Sequence[float], bounds: Sequence[int]) -> Reached:
    days = ((begin, end, part) for (begin, end), part in zip(pairwise(bounds), parts, strict=False))
    at = next((begin + int(part * (end - begin)) for begin, end, part in days if part < WHOLE), None)
    caps = {"runs": budget.runs, "cost": budget.cost, "tokens": budget.tokens}
    return Reached(budget.owner, {name: cap for name, cap in caps.items() if cap is not None}, at)
