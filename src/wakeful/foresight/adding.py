"""What a change of jobs adds or takes away: runs and costs a day."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.counting import counted
from wakeful.domains import domains
from wakeful.foresight.forecasting import expected
from wakeful.foresight.history import NONE, UNKNOWN_MS, Histories
from wakeful.foresight.snapshot import read_histories
from wakeful.kernel.domain import Spending, load
from wakeful.kernel.rules.policy import trigger_of, trigger_text
from wakeful.triggers import Interval, Once, TimedTrigger, Trigger

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

DAYS = 28  # long enough for what runs once a month
DAY_MS = 86_400_000


class JobDelta(NamedTuple):
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
    is_known: bool = True  # what those cost that call an agent: past runs have said so

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


def added(tx: Transaction | None, changes: Sequence[JobDelta], now: int, zone: str) -> Added:
    """What these changes add; without a transaction, on a store that is not there yet, nothing is known of costs."""
    spending = [load(domain.spending)(tx) for domain in domains() if domain.spending is not None]
    known = _known(tx, changes, spending) if tx is not None else _KnownJob()
    runs, cost, is_known = 0.0, 0.0, True
    for one in changes:
        trigger = trigger_of(_timed(one, spending)).resolved(now, zone)
        number = one.sign * _times(trigger, now) / DAYS
        owner, histories = _owner(one, spending), known.histories
        runs += number
        own = histories.of(one.job_id or 0, owner)
        cost += expected(number, own).cost
        is_known &= owner is None or own.priced > 0
        for target in _led_to(one, spending):  # a run of its own, of another job
            runs += number
            led = histories.by_job.get(known.names.get(target, 0), NONE)
            cost += expected(number, led).cost
            is_known &= led.priced > 0
    return Added(runs, cost, is_known)


class _KnownJob(NamedTuple):
    histories: Histories = Histories()
    names: Mapping[str, int] = {}  # jobs that the changed ones start, by name


def _known(tx: Transaction, changes: Sequence[JobDelta], spending: Sequence[Spending]) -> _KnownJob:
    """What past runs say about the jobs that change: their own, those of the same owner, and those that they start."""
    names = tx.jobs.names(sorted({name for one in changes for name in _led_to(one, spending)}))
    owning = {_owner(one, spending) for one in changes} - {None}
    owners = {
        job.id: owner
        for own in spending
        for job in (tx.jobs.of_kinds(own.kinds) if owning else ())
        if (owner := own.owner_of(job.name, job.payload)) in owning and owner is not None
    }
    wanted = {*owners, *names.values(), *(one.job_id for one in changes)}
    jobs = [placed for placed in tx.slots.jobs() if placed.id in wanted]
    return _KnownJob(read_histories(tx, jobs, owners, costs_of=()), names)


def _owner(one: JobDelta, spending: Sequence[Spending]) -> str | None:
    found = (own.owner_of(one.name, one.payload) for own in spending if one.kind in own.kinds)
    return next((name for name in found if name is not None), None)


def _timed(one: JobDelta, owners: Sequence[Spending]) -> str:
    """Its trigger, with hours that its payload has."""
    text = trigger_text(one.trigger)
    for own in owners:
        text = own.times_of(text, one.payload) if one.kind in own.kinds else text
    return text


def _led_to(one: JobDelta, owners: Sequence[Spending]) -> list[str]:
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
    times = float(trigger.count_slots(now, ends))
    return times if not isinstance(trigger, TimedTrigger) or trigger.max_runs is None else min(times, trigger.max_runs)
