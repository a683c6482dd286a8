"""What a schedule would mean before it is stored: its next times, and what a person should know about them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wakeful.counting import counted
from wakeful.triggers.durations import interval_words
from wakeful.triggers.moments import from_ms, to_ms
from wakeful.triggers.zones import place_named

if TYPE_CHECKING:
    from wakeful.kernel.views.history import Lately
    from wakeful.store.interface import Transaction
    from wakeful.triggers import Trigger

SHOWN = 5
LOOKED_AT = 50
CROWD = 10  # starts in the same minute of which a person is told
NEIGHBOURS = 200
YEAR = 366
HOUR_MS, WEEK_MS = 3_600_000, 7 * 86_400_000


class Ahead(NamedTuple):
    """A schedule in words, when it would start next, and warnings."""

    words: str
    times: list[datetime]
    warnings: list[str]
    trigger: dict[str, object]
    """The trigger as plain data, as a job would store it."""


def look_ahead(tx: Transaction, trigger: Trigger, zone: str, last: Lately | None = None) -> Ahead:
    """What a trigger means from now on; `last` is how the job's runs went so far."""
    settled = trigger.resolved(tx.now, zone)
    slots = settled.upcoming_slots(tx.now, LOOKED_AT) if settled.timed else []
    warnings = [*_outlasts(slots, last), *_clock_changes(settled, tx.now), *_crowd(tx, slots)]
    if settled.timed and not slots:
        warnings.append("No further time comes: it will never start by itself.")
    return Ahead(settled.brief(), [from_ms(slot) for slot in slots[:SHOWN]], warnings, settled.to_data())


def _outlasts(slots: list[int], last: Lately | None) -> Iterator[str]:
    took = sorted(run.took for run in last.runs if run.took is not None) if last is not None else []
    gaps = [after - before for before, after in pairwise(slots)]
    if not took or not gaps:
        return
    usual, gap = took[-(-len(took) * 95 // 100) - 1], min(gaps)
    if usual > gap:
        yield (
            f"Its runs take up to {interval_words(usual // 1000 * 1000)}, and the smallest gap between two starts is "
            f"{interval_words(gap)}: a start that comes while one runs is passed over."
        )


def _clock_changes(trigger: Trigger, now: int) -> Iterator[str]:
    """Changes of the clocks within a year that move or double a start."""
    place = place_named(trigger.own_zone) if trigger.timed else None
    if place is None or not hasattr(trigger, "count_slots"):
        return
    for day in range(YEAR):
        begin = from_ms(now).astimezone(place).replace(hour=0, minute=0) + timedelta(days=day)
        end = begin + timedelta(days=1)
        change = (end.utcoffset() or timedelta()) - (begin.utcoffset() or timedelta())
        if not change:
            continue
        first, until = to_ms(begin), to_ms(end)
        usual = trigger.count_slots(first - WEEK_MS, until - WEEK_MS + int(change.total_seconds() * 1000))
        there = trigger.count_slots(first, until)
        if there != usual and usual <= YEAR:
            yield (
                f"On {begin:%A %-d %B %Y} the clocks of {trigger.own_zone} change: it starts {counted(there, 'time')} "
                f"on that day instead of {usual}."
            )


def _crowd(tx: Transaction, slots: list[int]) -> Iterator[str]:
    if not slots:
        return
    minute = slots[0] // 60_000
    others = sum((state.next_at or 0) // 60_000 == minute for _, state in tx.jobs.soonest(NEIGHBOURS))
    if others >= CROWD:
        yield f"{counted(others, 'other job')} start in the same minute as its first start."
