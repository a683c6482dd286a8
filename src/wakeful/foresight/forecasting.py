"""`forecast`: what jobs run and cost per day, from the arithmetic of their triggers and their last runs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.errors import InvalidTrigger, NotFound
from wakeful.foresight.budgets import Reached, within_budgets
from wakeful.foresight.history import COUNTED, NONE, Histories, History
from wakeful.foresight.question import place_of
from wakeful.foresight.snapshot import Spenders, read_histories, read_spenders
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.policy import trigger_of
from wakeful.triggers import After, Interval, Once, TimedTrigger, Trigger
from wakeful.triggers.moments import from_ms, iso, to_ms

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.slots import Placed

MONTH_MS = 30 * 86_400_000
LIKELY = 1.645  # standard deviations to either side of the mean that hold nine of ten cases
NEAR_MS = 60_000  # how exact it is when a budget is used up: nobody knows it better
NO_HISTORY = "no history"


class Sum(NamedTuple):
    """Runs with what they are expected to cost; the spread is kept as a variance."""

    runs: float = 0.0
    cost: float = 0.0
    variance: float = 0.0
    tokens: float = 0.0

    def __add__(self, other: object) -> Sum:
        if not isinstance(other, Sum):
            return NotImplemented
        return Sum(
            self.runs + other.runs, self.cost + other.cost, self.variance + other.variance, self.tokens + other.tokens
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: with what it costs at least and at most in nine of ten cases."""
        spread = LIKELY * math.sqrt(self.variance)
        return {
            "runs": round(self.runs),
            "cost": round(self.cost, 6),
            "low": round(max(0.0, self.cost - spread), 6),
            "high": round(self.cost + spread, 6),
            "tokens": round(self.tokens),
        }


NOTHING = Sum()


def expected(runs: float, history: History) -> Sum:
    """So many runs of a job: the mean of its last ones each; that the mean is only an estimate widens the spread."""
    if not runs:
        return NOTHING
    return Sum(runs, runs * history.cost, spread_of(runs, history), runs * history.tokens)


def spread_of(runs: float, history: History) -> float:
    """The variance of what so many runs cost together."""
    unsure = runs * runs / history.priced if history.priced else 0.0
    return (runs + unsure) * history.variance


class JobForecast(NamedTuple):
    """What one job is expected to do."""

    name: str
    agent: str | None
    counts: Sequence[float]  # runs, by day
    history: History
    past: int = 0  # runs that it is based on
    called: float = 1.0  # how many of its runs count toward budgets: those that find something to do

    @property
    def sum(self) -> Sum:
        return expected(math.fsum(self.counts), self.history)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; where no run has ended yet, the history says so."""
        based_on: Any = self.past or NO_HISTORY
        return {"job": self.name, "agent": self.agent, **self.sum.to_dict(), "history": based_on}


class Forecast(NamedTuple):
    """What all jobs, or one, are expected to do."""

    begins: int
    ends: int
    bounds: Sequence[int]  # of its days
    zone: str
    jobs: Sequence[JobForecast]
    budgets: Sequence[Reached]

    @property
    def total(self) -> Sum:
        return sum((job.sum for job in self.jobs), NOTHING)

    def days(self) -> list[tuple[str, Sum]]:
        """Each day with its sum; the first and the last may be parts of days."""
        place = place_of(self.zone)
        dates = [f"{from_ms(begin).astimezone(place):%Y-%m-%d}" for begin in self.bounds[:-1]]
        runs, costs, variances, tokens = ([0.0] * len(dates) for _ in range(4))
        for job in self.jobs:  # as plain numbers: there may be 10,000
            history = job.history
            runs = list(map(add, runs, job.counts))
            if not history.runs_cost:
                continue
            for number, count in enumerate(job.counts):
                if count:
                    costs[number] += count * history.cost
                    variances[number] += spread_of(count, history)
                    tokens[number] += count * history.tokens
        return list(zip(dates, map(Sum, runs, costs, variances, tokens), strict=True))

    def by_agent(self) -> dict[str, Sum]:
        """The sums of those that have budgets."""
        found = defaultdict[str, Sum](Sum)
        for job in self.jobs:
            if job.agent is not None:
                found[job.agent] += job.sum
        return dict(sorted(found.items()))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC, days in the zone of the forecast."""
        return {
            "from": iso(self.begins),
            "to": iso(self.ends),
            "days": [{"date": day, **one.to_dict()} for day, one in self.days()],
            "by_job": [job.to_dict() for job in self.jobs],
            "by_agent": [{"agent": agent, **one.to_dict()} for agent, one in self.by_agent().items()],
            "budget": [one.to_dict() for one in self.budgets],
        }


def forecast(tx: Transaction, zone: str, for_ms: int = MONTH_MS, *, only: str | None = None) -> Forecast:
    """What is expected from now on, of all jobs or of one; NotFound where there is none of that name."""
    begins, ends = tx.now, tx.now + for_ms
    jobs, spenders = tx.slots.jobs(), read_spenders(tx)
    if only is not None and all(placed.name != only for placed in jobs):
        raise NotFound(f"There is no job named {only!r:.80}: wakeful list shows which there are.")
    histories = read_histories(tx, jobs, spenders.owners, costs_of=_asked(jobs))
    bounds = day_bounds(begins, ends, zone)
    asking = _that_ask(tx, spenders)
    expected_jobs = [
        job._replace(called=0.0) if job.name in asking else job for job in foreseen(jobs, bounds, histories, spenders)
    ]
    found, reached = within_budgets(expected_jobs, spenders.budgets, bounds)
    reached = [_when_it_runs(one, jobs, spenders, bounds, asking) for one in reached]
    if only is not None:
        found = [job for job in found if job.name == only]
        agents = {job.agent for job in found}
        reached = [one for one in reached if one.agent in agents]
    return Forecast(begins, ends, bounds, zone, found, reached)


def _that_ask(tx: Transaction, spenders: Spenders) -> set[str]:
    """The jobs of agents that ask a person before each start: nobody knows when, or whether, these run."""
    found = tx.jobs.definitions(list(spenders.owners)).values()
    return {job.name for job in found if from_text(job.options).approval}


def _when_it_runs(
    one: Reached, jobs: Sequence[Placed], spenders: Spenders, bounds: Sequence[int], asking: Collection[str]
) -> Reached:
    """The same, at a time at which the agent starts: as late in the starts of its day as it was in the day."""
    if one.reached_at is None:
        return one
    owned = {placed.name for placed in jobs if one.agent in (None, spenders.owners.get(placed.id, ""))} - set(asking)
    texts = Counter(
        spenders.times.get(placed.id, placed.trigger)
        for placed in jobs
        if (placed.name in owned and placed.id in spenders.owners) or spenders.leads_to.get(placed.name) in owned
        if placed.state.enabled and not placed.state.paused
    )
    found = [(_trigger(text), number) for text, number in texts.items()]
    # What counts from the end of a run has no times of its own.
    timed = [(it, number) for it, number in found if isinstance(it, TimedTrigger) and not isinstance(it, Interval)]
    day = bisect_right(bounds, one.reached_at) - 1
    begin, end = bounds[day], bounds[day + 1]

    def starts_until(moment: int) -> float:
        return sum(number * trigger.count_each([begin, moment])[0] for trigger, number in timed)

    wanted = starts_until(end) * (one.reached_at - begin) / (end - begin)
    low, high = begin, end
    while high - low > NEAR_MS:
        middle = (low + high) // 2
        low, high = (middle, high) if starts_until(middle) < wanted else (low, middle)
    following = [slot for trigger, _ in timed if (slot := trigger.next_slot(low)) is not None]
    return one._replace(reached_at=min(following)) if following else one


def _asked(jobs: Sequence[Placed]) -> set[int]:
    """The jobs of which it counts how long runs take, or how they end, whatever they cost."""
    ids, found = {placed.name: placed.id for placed in jobs}, set[int]()
    for placed in jobs:
        trigger = _trigger(placed.trigger)
        if isinstance(trigger, Interval):
            found.add(placed.id)
        elif isinstance(trigger, After) and trigger.job in ids:
            found.add(ids[trigger.job])
    return found


def day_bounds(begins: int, ends: int, zone: str) -> list[int]:
    """The beginning, every midnight of the zone after it, and the end."""
    place, found = place_of(zone), [begins]
    day = from_ms(begins).astimezone(place).date() + timedelta(days=1)
    while (midnight := to_ms(datetime(day.year, day.month, day.day, tzinfo=place))) < ends:
        found += [midnight] if midnight > begins else []
        day += timedelta(days=1)
    return [*found, ends]


def foreseen(
    jobs: Sequence[Placed], bounds: Sequence[int], histories: Histories, spenders: Spenders
) -> list[JobForecast]:
    """Each job with its runs by day: of its own times, and of the runs of others that start it."""
    own, leading = dict[str, list[float]](), dict[str, tuple[str, str]]()
    edges, by_name = tuple(bounds), {placed.name: placed for placed in jobs}
    for placed in jobs:
        trigger = _trigger(placed.trigger)
        took = histories.by_job.get(placed.id, NONE).expected_ms
        own[placed.name] = runs_by_day(placed, trigger, edges, took)
        if placed.id in spenders.times:
            own[placed.name] = _within_hours(placed, spenders.times[placed.id], edges, took)
        if isinstance(trigger, After) and placed.state.enabled and not placed.state.paused:
            leading[placed.name] = (trigger.job, trigger.on)
    for target, sources in _started_by(leading, spenders.leads_to, by_name).items():
        own[target] = _with_started(target, sources, own, by_name, histories)
    return [_forecast_of(placed, own[placed.name], histories, spenders) for placed in sorted(jobs, key=_name_of)]


def _forecast_of(placed: Placed, counts: list[float], histories: Histories, spenders: Spenders) -> JobForecast:
    owner, works = spenders.owners.get(placed.id), placed.id in spenders.queue_of
    # What others of the agent cost says nothing about a job that may find nothing to work on.
    known = histories.by_job.get(placed.id, NONE) if works else histories.of(placed.id, owner)
    past = 0 if placed.state.last_run_id is None else known.runs or min(COUNTED, max(1, placed.state.slot_runs))
    return JobForecast(placed.name, owner, counts, known, past, known.busy if works else 1.0)


def _name_of(placed: Placed) -> str:
    return placed.name


def _trigger(text: str) -> Trigger | None:
    try:
        return trigger_of(text)
    except InvalidTrigger:  # its job was disabled for that
        return None


def runs_by_day(placed: Placed, trigger: Trigger | None, bounds: tuple[int, ...], took_ms: int) -> list[float]:
    """How many times of a job lie in each day; none while it is switched off."""
    none, state = [0.0] * (len(bounds) - 1), placed.state
    if trigger is None or not state.enabled or state.paused or state.ended_at is not None or trigger.reports:
        return none
    if isinstance(trigger, Once):
        at = state.next_at
        return [float(at is not None and begin <= at < end) for begin, end in pairwise(bounds)]
    if not isinstance(trigger, TimedTrigger):
        return none
    counts = _rounds(trigger, bounds, took_ms) if isinstance(trigger, Interval) else _counts(placed.trigger, bounds)
    return counts if trigger.max_runs is None else _at_most(counts, trigger.max_runs - state.slot_runs)


def _within_hours(placed: Placed, times: str, bounds: tuple[int, ...], took_ms: int) -> list[float]:
    """Of a job with hours in its payload: its times within them, and one that waits for each opening.

    `times`: its trigger with those hours.
    """
    own, gated = _trigger(placed.trigger), _trigger(times)
    counts = list(runs_by_day(placed._replace(trigger=times), gated, bounds, took_ms))
    if not any(counts) or not isinstance(own, TimedTrigger) or not isinstance(gated, TimedTrigger):
        return counts
    hours, moment = gated.active_hours, bounds[0]
    while hours is not None and (opening := hours.opens(closed := hours.closes(moment))) < bounds[-1]:
        first, at_opening = own.next_slot(closed - 1), own.next_slot(opening - 1)
        if opening > bounds[0] and first is not None and first < opening != at_opening:
            counts[bisect_right(bounds, opening) - 1] += 1
        moment = opening
    return counts


def _rounds(trigger: Interval, bounds: tuple[int, ...], took_ms: int) -> list[float]:
    """Of a trigger that counts from the end of each run: as many as fit into the time in which it may run."""
    days = (trigger.modifiers.spans(begin, end, trigger.tz) for begin, end in pairwise(bounds))
    open_ms = [sum(end - begin for begin, end in spans if begin < end) for spans in days]
    return [length / max(1, trigger.interval_ms + took_ms) for length in open_ms]


@lru_cache(maxsize=4096)
def _counts(text: str, bounds: tuple[int, ...]) -> list[float]:
    """Of a trigger as stored: many jobs share one."""
    first, *others = bounds  # what is due at this very moment is not ahead
    return [float(number) for number in trigger_of(text).count_each([first, *(bound - 1 for bound in others)])]


def _at_most(counts: Iterable[float], left: float) -> list[float]:
    found: list[float] = []
    for number in counts:
        found.append(max(0.0, min(number, left)))
        left -= found[-1]
    return found


def _started_by(
    leading: Mapping[str, tuple[str, str]], leads_to: Mapping[str, str], known: Mapping[str, object]
) -> dict[str, list[tuple[str, str]]]:
    """By job that others start: those, and after which ends; what is started comes after what starts it."""
    found = defaultdict[str, list[tuple[str, str]]](list)
    for target, source in leading.items():
        found[target].append(source)
    for source_name, target in leads_to.items():
        if target in known:
            found[target].append((source_name, "any"))
    ordered, waiting = dict[str, list[tuple[str, str]]](), dict(found)
    while waiting:
        free = [name for name, sources in waiting.items() if not any(source in waiting for source, _ in sources)]
        for name in free or list(waiting):  # those in a circle as they come
            ordered[name] = waiting.pop(name)
    return ordered


def _with_started(
    target: str,
    sources: Sequence[tuple[str, str]],
    counts: Mapping[str, list[float]],
    jobs: Mapping[str, Placed],
    histories: Histories,
) -> list[float]:
    """The runs of a job with those that others start: as often as they succeeded or failed until now."""
    total = list(counts[target])
    state = jobs[target].state
    if not state.enabled or state.paused:
        return [0.0] * len(total)
    for source, on in sources:
        placed = jobs.get(source)
        if placed is None:
            continue
        good = histories.by_job.get(placed.id, NONE).succeeded
        share = {"success": good, "failure": 1 - good}.get(on, 1.0)
        total = [known + share * number for known, number in zip(total, counts[source], strict=True)]
    return total
