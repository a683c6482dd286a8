"""When the jobs of handlers are due: at most one start waits for each, and a trigger only moves it forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.kernel.engine.ending import drop_runs
from wakeful.store.records import JobState, RunRow
from wakeful.workflows.tables import HandlerRow, Workflows
from wakeful.workflows.topics.tables import Topics

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef

EVENT, WAKE_TIME, DEPLOYED, CONTINUED = "event", "wake_time", "deployed", "continued"
#: Why a start waits that this module made, and may move.
OURS = (EVENT, WAKE_TIME, DEPLOYED, CONTINUED, "retry", "recovery")


def arm(tx: Transaction, context: Context, job_id: int, at: int, reason: str) -> None:
    """Let the job start at that time, or earlier if it was to start earlier; never more than one start waits."""
    found = tx.jobs.by_id(job_id)
    state = tx.jobs.states([job_id]).get(job_id)
    if found is None or state is None or found[0].removed_at is not None or not state.enabled or state.paused:
        return
    waiting = _waiting(tx, state)
    if waiting is None:
        tx.runs.add([RunRow.queued(context.new_id(), found[0], reason, at)])
        state = state._replace(queued=state.queued + 1)
    elif waiting.due_at > at:
        tx.runs.reschedule(waiting.id, at)
    else:
        return
    tx.jobs.save([_looked_at(state, at)])


def set_alarm(tx: Transaction, context: Context, job_id: int, at: int | None, reason: str) -> None:
    """Let the job start at that time and at no other; None: not by itself."""
    state = tx.jobs.states([job_id]).get(job_id)
    waiting = _waiting(tx, state) if state is not None else None
    if waiting is not None and state is not None:
        if at is not None:
            tx.runs.reschedule(waiting.id, at)
            tx.jobs.save([_looked_at(state, at)])
            return
        found = tx.jobs.by_id(job_id)
        if found is not None:
            drop_runs(tx, context, found[0], [waiting], "there is nothing left to do")
            tx.jobs.save([tx.jobs.states([job_id])[job_id]._replace(queued=state.queued - 1)])
    elif at is not None:
        arm(tx, context, job_id, at, reason)


def _looked_at(state: JobState, at: int) -> JobState:
    """A running job is looked at when it ends, a parked one when its lane is free."""
    if state.run_id is not None or state.parked is not None:
        return state
    return state._replace(due_at=at if state.due_at is None else min(at, state.due_at))


def _waiting(tx: Transaction, state: JobState) -> RunRow | None:
    if not state.queued:
        return None
    return next((run for run in tx.runs.open(state.job_id) if run.status == "queued" and run.reason in OURS), None)


def look_again(tx: Transaction, job_ids: Sequence[int]) -> None:
    """What was refused to these jobs may be allowed now: the engine looks at them at once."""
    states = tx.jobs.states(sorted(job_ids)).values()
    tx.jobs.save(
        [
            state._replace(due_at=tx.now)
            for state in states
            if state.run_id is None and state.parked is None and state.due_at is not None and state.due_at > tx.now
        ]
    )


def wake_subscribers(tx: Transaction, context: Context, workflow: str, topics: Sequence[str], seq: int) -> None:
    """Events came into these topics: their consumers are due."""
    for handler in tx.of(Workflows).handlers(workflow):
        if handler.job_id is not None and not set(topics).isdisjoint(handler.topics()):
            tx.of(Workflows).change_handler(workflow, handler.name, dirty=seq)
            arm(tx, context, handler.job_id, tx.now, EVENT)


def arm_forgotten(tx: Transaction, context: Context) -> int:
    """Arm the handlers that have something to do and are about to start for no reason; how many there were."""
    found = tx.of(Workflows).unarmed()
    for handler in found:
        at = since(tx, handler)
        if handler.job_id is not None and at is not None:
            arm(tx, context, handler.job_id, at, WAKE_TIME if at > tx.now else CONTINUED)
    return len(found)


def since(tx: Transaction, handler: HandlerRow) -> int | None:
    """Since when, or from when on, a handler has something to do; None: it has nothing."""
    if handler.open_run is not None:
        return tx.now
    if handler.dirty > handler.seen:
        oldest = tx.of(Topics).oldest(handler.workflow, handler.topics())
        if oldest is not None:
            return min(oldest, tx.now)
    return handler.wake_at


def job_of(tx: Transaction, handler: HandlerRow) -> JobDef | None:
    found = tx.jobs.by_id(handler.job_id) if handler.job_id is not None else None
    return found[0] if found is not None else None
