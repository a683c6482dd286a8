"""What a change of jobs adds or takes away: runs and costs a day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.counting import counted
from wakeful.domains import domains
from wakeful.foresight.forecasting import expected
from wakeful.foresight.history import NONE, UNKNOWN_MS, Histories
from wakeful.foresight.snapshot import read_histories, read_spenders
from wakeful.kernel.domain import Spending, load
from wakeful.triggers import Interval, Once, Trigger

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

DAYS = 28  # long enough for what runs once a month
DAY_MS = 86_400_000


class Change(NamedTuple):
    """A job that comes (`sign` 1) or goes (-1); one that is changed does both."""

    sign: int
    name: str
    kind: str
    payload: str
    trigger: Trigger
    job_id: int | None = None


class Added(NamedTuple):
    """What changes add to a day, on average."""

    runs: float
    cost: float

    def to_dict(self) -> dict[str, float]:
        """Plain data."""
        return {"runs_per_day": round(self.runs, 3), "cost_per_day": round(self.cost, 6)}

    def words(self, money: Callable[[float], str]) -> str | None:
        """One line: "+ 28 runs and about $1.40 a day"; None where nothing is added or taken away."""
        if not self.runs and not self.cost:
            return None
        sign = "+" if (self.runs, self.cost) > (0, 0) else "-"
        factor, unit = next(
            ((factor, unit) for factor, unit in ((1, "day"), (7, "week")) if abs(self.runs) * factor >= 1),
            (30, "month"),
        )
        runs = counted(max(1, round(abs(self.runs) * factor)), "run") if self.runs else "no run"
        cost = f" and about {money(abs(self.cost) * factor)}" if self.cost else ""
        return f"{sign} {runs}{cost} a {unit}"


def added(tx: Transaction | None, changes: Sequence[Change], now: int, zone: str) -> Added:
    """What these changes add; without a transaction, on a store that is not there yet, nothing is known of costs."""
    histories, owners = _known(tx) if tx is not None else (Histories(), [])
    names = {} if tx is None else tx.jobs.names(sorted({name for one in changes for name in _led_to(one, owners)}))
    runs, cost = 0.0, 0.0
    for one in changes:
        number = one.sign * _times(one.trigger.resolved(now, zone), now) / DAYS
        owner = next(
            (name for own in owners if one.kind in own.kinds and (name := own.owner_of(one.name, one.payload))), None
        )
        runs += number
        cost += expected(number, histories.of(one.job_id or 0, owner)).cost
        for target in _led_to(one, owners):  # a run of its own, of another job
            runs += number
            cost += expected(number, histories.by_job.get(names.get(target, 0), NONE)).cost
    return Added(runs, cost)


def _known(tx: Transaction) -> tuple[Histories, list[Spending]]:
    owners = [load(domain.spending)(tx) for domain in domains() if domain.spending is not None]
    return read_histories(tx, tx.slots.jobs(), read_spenders(tx).owners, costs_of=()), owners


def _led_to(one: Change, owners: Sequence[Spending]) -> list[str]:
    found = [own.leads_to(one.name, one.payload) for own in owners if one.kind in own.kinds]
    return [name for name in found if name is not None]


def _times(trigger: Trigger, now: int) -> float:
    """How often it fires within the days that are looked at."""
    ends = now + DAYS * DAY_MS
    if isinstance(trigger, Once):
        return float(now <= trigger.at_ms < ends)
    if isinstance(trigger, Interval):
        return DAYS * DAY_MS / (trigger.interval_ms + UNKNOWN_MS)
    if not trigger.timed or trigger.reports:
        return 0.0
    return float(trigger.count_slots(now, ends))
