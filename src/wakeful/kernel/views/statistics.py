"""The store in figures: how many jobs, how runs ended, how late they started, what waits and for what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wakeful import ids
from wakeful.store.interface import Transaction

DAY_MS = 86_400_000
MEASURED = 10_000  # lateness is that of so many starts at most, the newest


class Lateness(NamedTuple):
    """How long after their time runs were started, in milliseconds; None when none was."""

    starts: int
    p50_ms: int | None
    p95_ms: int | None
    max_ms: int | None


class Figures(NamedTuple):
    """As of one moment."""

    at: int
    jobs: dict[str, int]
    runs_day: dict[str, int]
    runs_week: dict[str, int]
    open_runs: dict[str, int]
    parked: dict[str, int]
    overdue: int
    next_alarm: int | None
    lateness: Lateness
    open_alerts: int


def figures(tx: Transaction, hidden: Sequence[str] = ()) -> Figures:
    """The store as it is now, without jobs and runs of hidden kinds."""
    day, week = (ids.first_id_at(tx.now - days * DAY_MS) for days in (1, 7))
    return Figures(
        tx.now,
        tx.jobs.counts(hidden),
        tx.runs.outcomes(day, hidden),
        tx.runs.outcomes(week, hidden),
        tx.runs.open_counts(hidden),
        tx.jobs.parked_counts(hidden),
        tx.jobs.overdue(tx.now, hidden),
        tx.jobs.next_alarm(),
        _lateness(tx.runs.lateness(day, MEASURED, hidden)),
        tx.alerts.count_open(),
    )


def _lateness(found: list[int]) -> Lateness:
    late = sorted(max(0, ms) for ms in found)
    if not late:
        return Lateness(0, None, None, None)
    return Lateness(len(late), late[(len(late) - 1) // 2], late[-(-len(late) * 95 // 100) - 1], late[-1])
