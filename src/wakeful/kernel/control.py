"""Ending runs from outside: cancel one, complete one that waits, return one that never started."""

from __future__ import annotations

from collections.abc import Sequence

from wakeful import ids
from wakeful.errors import JobNotFound, ScheduleTriggerError
from wakeful.kernel.claim import Node
from wakeful.kernel.outcome import Result
from wakeful.kernel.states import after
from wakeful.kernel.turn import Ended, free_lanes, settle_all
from wakeful.store.interface import Transaction
from wakeful.store.records import Finish, JobDef, JobState, RunDetails, RunRow


def find_run(tx: Transaction, run_id: int) -> tuple[JobDef, JobState, RunRow]:
    run = tx.runs.get(run_id)
    pair = tx.jobs.by_id(run.job_id) if run is not None else None
    if run is None or pair is None:
        message = f"There is no run {ids.run_text(run_id)}: it may have been pruned."
        raise JobNotFound(message)
    return pair[0], pair[1], run


def cancel_run(tx: Transaction, node: Node, run_id: int) -> str:
    """Cancel a run, whatever it is doing; returns the status it was in. An active one is ended by its own node."""
    job, state, run = find_run(tx, run_id)
    if run.status == "done":
        message = f"{ids.run_text(run_id)} has already ended as {run.outcome}."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "done"})
    if run.status == "active":
        tx.runs.ask_cancel(run_id)
    elif run.status == "waiting":
        settle_all(tx, node, [Ended(job, state.revision, run, Result("cancelled", error="cancelled by hand"))])
    else:
        tx.runs.finish(
            [Finish(run_id, after("cancel", run.status, ids.run_text(run_id)), "cancelled", None, tx.now, None)]
        )
        tx.runs.detail([RunDetails(run_id, error="cancelled by hand")])
        state = state._replace(queued=max(0, state.queued - 1))
        if state.run_id is None:  # what it is armed or parked for may be gone: let the engine look at it afresh
            state = state._replace(due_at=tx.now, parked=None)
        tx.jobs.save([state])
    return run.status


def complete_run(tx: Transaction, node: Node, run_id: int, result: Result) -> None:
    """Report how a waiting run ended."""
    job, state, run = find_run(tx, run_id)
    if run.status != "waiting":
        message = f"{ids.run_text(run_id)} is {run.status}: only a waiting run can be completed."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": run.status})
    settle_all(tx, node, [Ended(job, state.revision, run, result)])


def release_runs(tx: Transaction, runs: Sequence[RunRow]) -> None:
    """Give back what was claimed and never started: it waits as before, and no attempt was made."""
    states = tx.jobs.states([run.job_id for run in runs])
    back = []
    for run in runs:
        state = states.get(run.job_id)
        if state is None or state.run_id != run.id:
            continue
        back.append(
            run._replace(status=after("release", run.status, ids.run_text(run.id)), started_at=None, lanes=None)
        )
        tx.jobs.save([state._replace(run_id=None, queued=state.queued + 1, due_at=run.due_at)])
    tx.runs.activate([run._replace(node=None, token=None) for run in back])
    free_lanes(tx, runs)
