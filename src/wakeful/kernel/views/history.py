"""Reading the past: a job's runs, and what they amount to."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.store.interface import Transaction


class RunStats(NamedTuple):
    """How a job's runs ended, and how long they took (milliseconds; None when none ran)."""

    total: int
    success: int
    noop: int
    skipped: int
    deferred: int
    error: int
    timeout: int
    crashed: int
    cancelled: int
    unknown: int
    average_ms: float | None
    p95_ms: int | None


def stats(tx: Transaction, job_id: int, since: int) -> RunStats:
    """Counts per outcome, average and p95 duration of the runs that ended since then."""
    rows = tx.runs.durations(job_id, since)
    counts = dict.fromkeys(RunStats._fields[1:10], 0)
    for outcome, _ in rows:
        counts[outcome] += 1
    took = sorted(duration for _, duration in rows if duration is not None)
    average = sum(took) / len(took) if took else None
    p95 = took[max(0, -(-len(took) * 95 // 100) - 1)] if took else None
    return RunStats(total=len(rows), **counts, average_ms=average, p95_ms=p95)
