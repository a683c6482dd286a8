"""Jobs that start after others: what the end of a run starts, in the transaction that ends it."""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.kernel.context import Context
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, RunRow, SkipRow


def start_chained(tx: Transaction, context: Context, ended: Sequence[tuple[JobDef, RunRow, str]]) -> None:
    """Queue what starts after these runs; the text says how each ended: success, failure or other."""
    for job, run, ended_as in ended:
        for job_id, on_end in tx.jobs.chained(job.name):
            if on_end in ("any", ended_as):
                _start(tx, context, job_id, run)


def _start(tx: Transaction, context: Context, job_id: int, cause: RunRow) -> None:
    found = tx.jobs.by_id(job_id)
    if found is None or found[0].removed_at is not None:
        return
    job, state = found
    if not state.enabled or state.paused:
        reason = "paused" if state.paused else "disabled"
        tx.skips.count([SkipRow(job_id, reason, 1, tx.now, None)])
        return
    waiting = next((run for run in tx.runs.open(job_id) if run.status == "queued" and run.reason == "after"), None)
    if waiting is not None:
        tx.skips.count([SkipRow(job_id, "already_running", 1, tx.now, "one start is already waiting")])
        for hook in context.declared.hooks.joined:
            hook(tx, waiting, cause)
        return
    tx.runs.add([RunRow.queued(context.new_id(), job, "after", tx.now, caused_by=cause.id)])
    # A parked job keeps waiting for its lane; a running one is looked at when it ends.
    due_at = state.due_at if state.run_id is not None or state.parked is not None else tx.now
    tx.jobs.save([state._replace(queued=state.queued + 1, due_at=due_at)])
