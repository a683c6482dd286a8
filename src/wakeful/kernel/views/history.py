"""Reading the past: a job's runs, and what they amount to.

And how jobs have fared lately: their last runs, how many were good, how long one usually takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.store.interface import Transaction

if TYPE_CHECKING:
    from wakeful.store.runs import Ended


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


SHOWN = 20
GOOD = ("success", "noop", "skipped", "deferred")


class Lately(NamedTuple):
    """The last runs of a job, the oldest first."""

    runs: tuple[Ended, ...] = ()

    @property
    def good(self) -> float | None:
        """How many of those that ended were good, from 0 to 1; None where none has ended."""
        ended = [run for run in self.runs if run.outcome is not None]
        return sum(run.outcome in GOOD for run in ended) / len(ended) if ended else None

    @property
    def usually_ms(self) -> int | None:
        """How long one usually takes."""
        took = [run.took for run in self.runs if run.took is not None and run.outcome == "success"]
        return int(median(took)) if took else None


def lately(tx: Transaction, job_ids: Sequence[str], number: int = SHOWN) -> Mapping[str, Lately]:
    """The last runs of these jobs, by id."""
    numbers = {ids.number_of("job", text): text for text in job_ids}
    found = tx.runs.last_of([one for one in numbers if one is not None], number)
    return {text: Lately(tuple(reversed(found.get(one or 0, ())))) for one, text in numbers.items()}
