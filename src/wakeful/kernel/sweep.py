"""Slow housekeeping, a bounded bite at a time: guards against lost places in lanes, alerts about jobs nobody can
run, and retention.

Every `run_once` is one transaction and returns counts. Deletes never touch an active or waiting run, a job's last run
or a run that an open one continues.
"""

from __future__ import annotations

from typing import NamedTuple

from wakeful import ids
from wakeful.kernel.claim import HANDLER, Node
from wakeful.kernel.recovery import welcome
from wakeful.kernel.settle import AlertChange
from wakeful.kernel.turn import apply_alert
from wakeful.store.interface import Transaction

SWEEP_MS = 60_000
NO_HANDLER_GRACE_MS = 60_000
CHUNK = 200


class Retention(NamedTuple):
    """How long history is kept."""

    days: int = 30
    runs_per_job: int = 1000


class Swept(NamedTuple):
    """What one sweep did; `deleted` are runs, whose log files go too."""

    unparked: int
    deleted: list[int]
    cursor: int  # where pruning by age goes on; 0 when a round is complete


def guard(tx: Transaction, node: Node) -> int:
    """Offer each lane with a line once more, and alert about jobs that wait for a handler; how many were put back."""
    unparked = 0
    for key, count in tx.jobs.parked_counts().items():
        if not key.startswith(HANDLER):
            unparked += tx.jobs.unpark(key, tx.now, 1)
        elif key.removeprefix(HANDLER) in node.kinds:
            unparked += welcome(tx, key, count)
        else:
            _alert_unhandled(tx, node, key)
    return unparked


def _alert_unhandled(tx: Transaction, node: Node, key: str) -> None:
    kind = key.removeprefix(HANDLER)
    for job, state in tx.jobs.parked_on(key, tx.now - NO_HANDLER_GRACE_MS, CHUNK):
        message = f"{job.name} has been due since its time came, but nobody runs jobs of kind {kind}"
        apply_alert(tx, node, state.job_id, AlertChange(f"no_handler:{state.job_id}", "no_handler", message))


def prune(tx: Transaction, keep: Retention, cursor: int, crowded: set[int]) -> Swept:
    """Delete a chunk of what is older or more than is kept."""
    before = tx.now - keep.days * 86_400_000
    deleted, cursor = tx.runs.prune_older(ids.first_id_at(before), cursor, CHUNK)
    for job_id in sorted(crowded):
        deleted += tx.runs.prune_beyond(job_id, keep.runs_per_job, CHUNK)
    tx.journal.prune_events(before, CHUNK)
    gone = tx.jobs.finished_once(before, CHUNK)
    for job_id in gone:
        tx.runs.prune_job(job_id, CHUNK)
    tx.jobs.forget(gone)
    return Swept(0, deleted, cursor)
