"""What ran and what is to come, for the jobs that matter most: one row each, within a window around now.

It costs what it shows: so many of the newest runs, so many jobs, so many times ahead. What is left out is counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.kernel.engine.sleeps import sleeps
from wakeful.kernel.model.job import Job, job_views
from wakeful.store.runs import RunFilter

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobState, RunRow

MOST_RUNS = 4_000
MOST_ROWS = 40
MOST_AHEAD = 200
CANDIDATES = 3  # so many times the rows are looked at closely
SHORT_MS = 60_000  # a restart is no outage
_BAD = ("error", "timeout", "crashed", "unknown")


class Mark(NamedTuple):
    """One run, or a start that has not become one yet."""

    at: int
    until: int | None
    """When it ended; None while it runs or waits."""
    what: str
    """Its outcome; `active`, `waiting` or `queued` while it has none."""
    run: str


class Row(NamedTuple):
    """One job."""

    job: Job
    marks: list[Mark]
    """The oldest first."""
    ahead: list[int]
    """When it starts next, up to the end of the window; at most so many."""
    more_ahead: bool
    """Whether there are further ones in the window."""
    rank: int = 0
    """How many of the other rows matter more."""


class Band(NamedTuple):
    """A time in which nothing could run: the machine slept, or no server ran."""

    begin: int
    end: int
    asleep: bool = False


class Timeline(NamedTuple):
    """The rows, those that need a look first, and what is not among them."""

    since: int
    now: int
    until: int
    rows: list[Row]
    others: int
    bands: list[Band]


def timeline(tx: Transaction, before: int, after: int, hidden: Sequence[str] = (), most: int = MOST_ROWS) -> Timeline:
    """The jobs that matter most, in a steady order, from `before` milliseconds ago to `after` milliseconds ahead."""
    since, until = tx.now - before, tx.now + after
    runs = tx.runs.matching(RunFilter(from_id=max(0, ids.first_id_at(since)), limit=MOST_RUNS, hidden=tuple(hidden)))
    by_job: dict[int, list[RunRow]] = defaultdict(list)
    for run in reversed(runs):
        by_job[run.job_id].append(run)
    for run in tx.runs.all_open():
        if run.kind not in hidden and run not in by_job[run.job_id]:
            by_job[run.job_id].insert(0, run)
    soon = [job.id for job, _ in tx.jobs.soonest(most, hidden)]
    numbers = sorted({*(number for number, found in by_job.items() if found), *soon})
    jobs, states = tx.jobs.definitions(numbers), tx.jobs.states(numbers)
    there = [number for number in numbers if number in jobs and jobs[number].removed_at is None and number in states]
    there = sorted(there, key=lambda number: _rough_weight(states[number], by_job[number]))[: CANDIDATES * most]
    views = {ids.job_text(jobs[number].id): number for number in there}
    shown = sorted(
        job_views(tx, [(jobs[number], states[number]) for number in there]),
        key=lambda job: _weight(job, by_job[views[job.id]]),
    )[:most]
    rows = [_row(job, by_job[views[job.id]], until, rank) for rank, job in enumerate(shown)]
    rows.sort(key=lambda row: (_urgency(row.job, by_job[views[row.job.id]]), row.job.name))
    total = sum(tx.jobs.counts(hidden).values())
    return Timeline(
        since, tx.now, until, rows, max(0, total - len(rows)), sorted([*_bands(tx, since), *slept(tx, since)])
    )


def _rough_weight(state: JobState, runs: Sequence[RunRow]) -> tuple[int, int]:
    """Which jobs are looked at more closely: as `_weight`, but from what is at hand."""
    open_run = state.run_id is not None or any(run.finished_at is None for run in runs)
    trouble = not state.enabled or state.errors > 0 or any(run.outcome in _BAD for run in runs)
    return 0 if open_run else 1 if trouble else 2, state.next_at if state.next_at is not None else 2**62


def _weight(job: Job, runs: Sequence[RunRow]) -> tuple[int, float, str]:
    """Which jobs have a row: what runs and what waits first, then trouble, then what is due soon."""
    open_run = any(run.finished_at is None for run in runs)
    next_at = job.next_run_at.timestamp() if job.next_run_at is not None else float("inf")
    return 0 if job.status == "waiting" else 1 if open_run else 2 + _urgency(job, runs), next_at, job.name


def _urgency(job: Job, runs: Sequence[RunRow]) -> int:
    """0: it waits for a person, is off or failed last; 1: it failed not long ago; 2: neither.

    Rows of one urgency are in the order of names: they do not move as jobs run.
    """
    waits = any(run.status == "waiting" for run in runs)
    if waits or job.status in ("waiting", "disabled") or job.consecutive_errors > 0:
        return 0
    return 1 if any(run.outcome in _BAD for run in runs) else 2


def _row(job: Job, runs: Sequence[RunRow], until: int, rank: int) -> Row:
    marks = [
        Mark(
            run.started_at or run.due_at,
            run.finished_at,
            run.outcome if run.outcome is not None else run.status,
            ids.run_text(run.id),
        )
        for run in runs
    ]
    ahead = list(islice(takewhile(lambda at: at <= until, job.starts()), MOST_AHEAD + 1))
    return Row(job, marks, ahead[:MOST_AHEAD], len(ahead) > MOST_AHEAD, rank)


def slept(tx: Transaction, since: int) -> list[Band]:
    """The times the machine slept since then."""
    return [Band(max(begin, since), end, asleep=True) for begin, end in sleeps(tx) if since < end <= tx.now]


def _bands(tx: Transaction, since: int) -> Iterator[Band]:
    """The times between the end of the last node and the start of the next one, as nodes have signed them."""
    nodes = sorted(tx.nodes.latest(50), key=lambda node: node.started_at)
    covered: int | None = None
    for node in nodes:
        end = node.stopped_at if node.stopped_at is not None else node.seen_at
        if covered is not None and node.started_at > max(covered, since) + SHORT_MS:
            yield Band(max(covered, since), node.started_at)
        covered = max(covered or 0, end)
