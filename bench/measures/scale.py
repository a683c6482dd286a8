"""How long starts wait when ten million schedules share one, four or sixteen databases: a day, second by second.

The slots are those of the product's own triggers. A database is a queue that starts `STARTS_PER_S` jobs a second, about
half of what one small PostgreSQL server does in a burst; everything else is arithmetic, so the machine does not matter.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from math import ceil

from bench.figures import Run
from bench.measures import Column, Plan, Table
from wakeful import Cron, Every
from wakeful.triggers import Trigger

SCHEDULES = 10_000_000
FEWER = 100_000
STARTS_PER_S = 5_000
DATABASES = (1, 4, 16)
DAY_S = 86_400
BEGIN = datetime(2026, 11, 18, tzinfo=UTC)


def schedules() -> list[tuple[float, Trigger, int]]:
    """The kinds of schedules there are: which share each has, and over how many seconds it can be staggered."""
    hours = dict.fromkeys(range(24), 1.0) | {0: 6.0, 2: 4.0, 6: 2.0, 8: 3.0, 9: 6.0, 18: 2.0}
    found = [
        (0.4 * often / sum(hours.values()) * share, Cron(f"{minute} {hour} * * *"), 3600)
        for hour, often in hours.items()
        for minute, share in ((0, 0.8), (30, 0.2))
    ]
    found += [(0.3 * 0.6, Cron("0 * * * *"), 3600)]
    found += [(0.3 * 0.4 / 59, Cron(f"{minute} * * * *"), 3600) for minute in range(1, 60)]
    found += [(0.2, Cron("*/15 * * * *"), 900)]
    # Rhythms count from when a schedule was made, which is any second.
    found += [(0.1 / 300, Every("5m", anchor=BEGIN + timedelta(seconds=second)), 300) for second in range(300)]
    return found


def measure(plan: Plan) -> list[Table]:
    count = FEWER if plan.quick else SCHEDULES
    table = Table(
        "scale",
        f"A day of {count:,} schedules",
        [
            Column("starts_per_s", "starts /s on average", None),
            Column("load_percent", "of what the databases can do %", None),
            Column("busiest", "due in the busiest second", None),
            Column("p99_s", "wait p99 s", "less"),
            Column("longest_s", "longest wait s", "less"),
        ],
        ours="",
        section="scale",
        about="40 % daily, 30 % hourly, 20 % every 15 minutes, 10 % every 5 minutes; most at the full hour or minute.",
    )
    for staggered in (False, True):
        for databases in DATABASES:
            name = f"{databases} database{'s' if databases > 1 else ''}{', staggered' if staggered else ''}"
            table.add(name, day(count, databases, STARTS_PER_S * count // SCHEDULES, staggered=staggered))
            plan.say(f"  scale {name}: longest wait {table.runs[name][0]['longest_s']:,.0f} s")
    return [table]


def day(count: int, databases: int, rate: int, *, staggered: bool) -> Run:
    """What the starts of one day come to, where each database starts `rate` jobs a second."""
    due = arrivals(count, databases, staggered=staggered)
    waits: Counter[int] = Counter()
    for seconds in due:
        backlog = 0
        for second in range(DAY_S):
            arrived = seconds[second]
            waits[ceil((backlog + arrived) / rate) - 1 if arrived else 0] += arrived
            backlog = max(0, backlog + arrived - rate)
    starts = sum(waits.values())
    return {
        "starts_per_s": starts / DAY_S,
        "load_percent": 100 * starts / DAY_S / (rate * databases),
        "busiest": max(map(sum, zip(*due, strict=True))),
        "p99_s": _percentile(waits, 0.99),
        "longest_s": max(waits),
    }


def arrivals(count: int, databases: int, *, staggered: bool) -> list[list[int]]:
    """How many starts are due in each second of the day, on each database."""
    kinds, chance = schedules(), random.Random(1)
    cumulative = list(accumulate(share for share, _, _ in kinds))
    many: Counter[tuple[int, int, int]] = Counter()
    for _ in range(count):
        kind = min(bisect_left(cumulative, chance.random() * cumulative[-1]), len(kinds) - 1)
        # As the product spreads them: a job's place in its stagger and its database follow from its id.
        later = int(chance.random() * kinds[kind][2]) if staggered else 0
        many[kind, later, int(chance.random() * databases)] += 1
    due = [[0] * DAY_S for _ in range(databases)]
    slots = [_slots(trigger) for _, trigger, _ in kinds]
    for (kind, later, database), jobs in many.items():
        for slot in slots[kind]:
            due[database][(slot + later) % DAY_S] += jobs
    return due


def _slots(trigger: Trigger) -> list[int]:
    """The seconds of the day at which a trigger fires."""
    begin = int(BEGIN.timestamp() * 1000)
    found, at = list[int](), trigger.next_slot(begin - 1)
    while at is not None and at < begin + DAY_S * 1000:
        found.append((at - begin) // 1000)
        at = trigger.next_slot(at)
    return found


def _percentile(waits: Counter[int], share: float) -> int:
    left = sum(waits.values()) * share
    for wait in sorted(waits):
        left -= waits[wait]
        if left <= 0:
            return wait
    return max(waits)
