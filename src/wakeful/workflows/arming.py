"""When the jobs of handlers are due: at most one start waits for each, and a trigger only moves it forward."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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


class LockedJobs:
    """The jobs of a workflow, which no other transaction changes until this one ends, as this one has left them."""

    def __init__(self, tx: Transaction, workflow: str) -> None:
        self._tx = tx
        self.workflow = workflow
        self._states = tx.of(Workflows).lock_jobs(workflow)
        self._parts: list[tuple[HandlerRow, JobDef]] | None = None

    def state(self, job_id: int) -> JobState | None:
        """Also of a job that the deployed version does not have any more."""
        if job_id not in self._states:
            self._states.update(self._tx.jobs.states([job_id]))
        return self._states.get(job_id)

    def handlers(self) -> list[HandlerRow]:
        """Those of the deployed version, by name, as they were when they were first asked for."""
        return [handler for handler, _ in self._read()]

    def job(self, job_id: int) -> JobDef | None:
        """The job of a handler of the deployed version."""
        return next((job for _, job in self._read() if job.id == job_id), None)

    def keep(self, state: JobState) -> None:
        """The state of a job as this transaction has just written it."""
        self._states[state.job_id] = state

    def _read(self) -> list[tuple[HandlerRow, JobDef]]:
        if self._parts is None:
            self._parts = self._tx.of(Workflows).with_jobs(self.workflow)
        return self._parts


def arm(tx: Transaction, context: Context, job_id: int, at: int, reason: str) -> None:
    """Let the job start at that time, or earlier if it was to start earlier; never more than one start waits."""
    found = tx.jobs.by_id(job_id)
    state = tx.jobs.states([job_id]).get(job_id)
    if found is not None and state is not None:
        _arm(tx, context, found[0], state, at=at, reason=reason)


def _arm(tx: Transaction, context: Context, job: JobDef, state: JobState, *, at: int, reason: str) -> JobState:
    """The same for a job whose state was read in this transaction; the state as it is then."""
    if job.removed_at is not None or not state.enabled or state.paused:
        return state
    waiting = _waiting(tx, state)
    if waiting is not None and waiting.due_at <= at:
        return state
    armed = _looked_at(state, at)
    if waiting is not None:
        tx.runs.reschedule(waiting.id, at)
        tx.jobs.save_armed([armed])
        return armed
    armed = armed._replace(queued=state.queued + 1)
    tx.jobs.save_armed([armed])
    tx.runs.add([RunRow.queued(context.new_id(), job, reason, at)])
    return armed


def set_alarm(tx: Transaction, context: Context, jobs: LockedJobs, job_id: int, *, at: int | None, reason: str) -> None:
    """Let the job start at that time and at no other; None: not by itself."""
    state, job = jobs.state(job_id), jobs.job(job_id)
    if state is None or job is None:
        return
    waiting = _waiting(tx, state)
    if waiting is None:
        if at is not None:
            jobs.keep(_arm(tx, context, job, state, at=at, reason=reason))
    elif at is not None:
        tx.runs.reschedule(waiting.id, at)
        armed = _looked_at(state, at)
        tx.jobs.save_armed([armed])
        jobs.keep(armed)
    else:
        drop_runs(tx, context, job, [waiting], "there is nothing left to do")
        left = state._replace(queued=state.queued - 1)
        tx.jobs.save_armed([left])
        jobs.keep(left)


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


def wake_subscribers(tx: Transaction, context: Context, jobs: LockedJobs, topics: Collection[str], seq: int) -> None:
    """Events came into these topics: their consumers are due."""
    found = [
        handler.job_id
        for handler in jobs.handlers()
        if handler.job_id is not None and not set(topics).isdisjoint(handler.topics())
    ]
    tx.of(Workflows).set_by_job(("dirty",), [(job_id, seq) for job_id in found])
    for job_id in found:
        job, state = jobs.job(job_id), jobs.state(job_id)
        if job is not None and state is not None:
            jobs.keep(_arm(tx, context, job, state, at=tx.now, reason=EVENT))


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
        _, oldest = tx.of(Topics).oldest(handler.workflow, handler.topics())
        if oldest is not None:
            return min(oldest, tx.now)
    return handler.wake_at


def job_of(tx: Transaction, handler: HandlerRow) -> JobDef | None:
    found = tx.jobs.by_id(handler.job_id) if handler.job_id is not None else None
    return found[0] if found is not None else None
