"""Reading the past: a job's runs, and what they amount to."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.kernel.views.models import Run
from wakeful.kernel.views.outgoing import with_deliveries
from wakeful.kernel.views.stories import PHASES
from wakeful.store.interface import Transaction
from wakeful.store.records import RunRow


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


def view(tx: Transaction, rows: list[RunRow]) -> list[Run]:
    """Runs with their names, nodes and details."""
    jobs = tx.jobs.definitions(sorted({row.job_id for row in rows}))
    details = tx.runs.details_of([row.id for row in rows])
    nodes = tx.journal.node_names(sorted({row.node for row in rows if row.node is not None}))
    found = []
    for row in _with_phases(tx, rows):
        job, detail = jobs.get(row.job_id), details.get(row.id)
        payload = (
            detail.payload if detail is not None and detail.payload is not None else job.payload if job else "null"
        )
        name = job.name if job is not None else "(removed)"
        found.append(Run(row, name, payload, detail, nodes.get(row.node) if row.node is not None else None))
    with_deliveries(tx, [(row.id, run) for row, run in zip(rows, found, strict=True)])
    return found


def _with_phases(tx: Transaction, rows: list[RunRow]) -> list[RunRow]:
    """The runs with the phases that their kinds know."""
    known: dict[int, str] = {}
    for kind, phases in PHASES.items():
        asked = [row.id for row in rows if row.kind == kind and row.phase is None]
        known |= phases(tx, asked) if asked else {}
    return [row._replace(phase=known[row.id]) if row.id in known else row for row in rows]
