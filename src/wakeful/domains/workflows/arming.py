"""When the jobs of handlers are due: at most one start waits for each, and a trigger only moves it forward."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from wakeful.domains.workflows.steps.places import STEPS, arm_places
from wakeful.domains.workflows.steps.tables import Tasks
from wakeful.domains.workflows.tables import HandlerRow, WorkflowVerbs
from wakeful.domains.workflows.turns.order import line_up
from wakeful.domains.workflows.turns.tables import Turns
from wakeful.kernel.engine.ending import drop_runs
from wakeful.store.records import JobState, RunRow

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
        self._states = tx.of(WorkflowVerbs).lock_jobs(workflow)
        self._parts: list[tuple[HandlerRow, JobDef]] | None = None

    def state(self, job_id: int) -> JobState | None:
        """Also of a job that the deployed version does not have any more."""
        if job_id not in self._states:
            self._states.update(self._tx.jobs.states([job_id]))
        return self._states.get(job_id)

    def states(self) -> list[JobState]:
        """Of all jobs that were locked."""
        return list(self._states.values())

    def handlers(self) -> list[HandlerRow]:
        """Those of the deployed version, by name, as they were when they were first asked for."""
        return [handler for handler, _ in self._read()]

    def job(self, job_id: int) -> JobDef | None:
        """The job of a handler of the deployed version."""
        return next((job for _, job in self._read() if job.id == job_id), None)

    def note_dirty(self, job_ids: Collection[int], seq: int) -> None:
        """Events came for these handlers, as this transaction has just written it."""
        self._parts = [
            (handler._replace(dirty=seq) if handler.job_id in job_ids else handler, job)
            for handler, job in self._read()
        ]

    def note_seen(self, job_id: int, seen: int) -> None:
        """A handler has looked at all events up to that one, as this transaction has just written it."""
        self._parts = [
            (handler._replace(seen=seen) if handler.job_id == job_id else handler, job) for handler, job in self._read()
        ]

    def keep(self, state: JobState) -> None:
        """The state of a job as this transaction has just written it."""
        self._states[state.job_id] = state

    def _read(self) -> list[tuple[HandlerRow, JobDef]]:
        if self._parts is None:
            self._parts = self._tx.of(WorkflowVerbs).with_jobs(self.workflow)
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
        # Before its wake time it starts for another reason; what continues a run still does.
        tx.runs.reschedule(waiting.id, at, reason if waiting.reason == WAKE_TIME else None)
        tx.jobs.save_armed([armed])
        return armed
    armed = armed._replace(queued=state.queued + 1)
    tx.jobs.save_armed([armed])
    tx.runs.add([RunRow.queued(context.new_id(), job, reason, at)])
    return armed


def arm_job(tx: Transaction, context: Context, jobs: LockedJobs, job_id: int, *, at: int, reason: str) -> None:
    """The same for a job that is locked."""
    job, state = jobs.job(job_id), jobs.state(job_id)
    if job is not None and state is not None:
        jobs.keep(_arm(tx, context, job, state, at=at, reason=reason))


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
        is_known = waiting.reason in ("retry", "recovery") or (reason == EVENT and waiting.reason != WAKE_TIME)
        tx.runs.reschedule(waiting.id, at, None if is_known else reason)
        armed = _looked_at(state, at)
        tx.jobs.save_armed([armed])
        jobs.keep(armed)
    else:
        drop_runs(tx, context, job, [waiting], "there is nothing left to do")
        left = state._replace(queued=state.queued - 1, ready_at=None if state.run_id is not None else state.ready_at)
        tx.jobs.save_armed([left])
        jobs.keep(left)


def postpone(tx: Transaction, jobs: LockedJobs, job_id: int, at: int) -> None:
    """Let the start that waits for the job wait until then."""
    state = jobs.state(job_id)
    waiting = _waiting(tx, state) if state is not None else None
    if state is None or waiting is None:
        return
    tx.runs.reschedule(waiting.id, at)
    # It waits for no lane until then: what is freed goes to others.
    later = (
        state._replace(due_at=at, parked=None, ready_at=None) if state.run_id is None else state._replace(ready_at=at)
    )
    tx.jobs.save([later])
    jobs.keep(later)


def _looked_at(state: JobState, at: int) -> JobState:
    """A running job is looked at when it ends, as one that waits since then; a parked one when its lane is free."""
    if state.run_id is not None:
        return state._replace(ready_at=at)
    if state.parked is not None:
        return state
    return state._replace(due_at=at if state.due_at is None else min(at, state.due_at))


def _waiting(tx: Transaction, state: JobState) -> RunRow | None:
    if not state.queued:
        return None
    return next((run for run in tx.runs.open(state.job_id) if run.status == "queued" and run.reason in OURS), None)


def first_waiting(tx: Transaction, state: JobState) -> RunRow | None:
    """The first start that waits for a job, for whatever reason."""
    waiting = [run for run in tx.runs.open(state.job_id) if run.status == "queued"] if state.queued else []
    return min(waiting, key=lambda run: (run.due_at, run.id), default=None)


def look_again(tx: Transaction, workflow: str) -> None:
    """What was refused to its jobs may be allowed now: the engine looks at them at once, each in its turn."""
    jobs = LockedJobs(tx, workflow)
    refused = [
        state._replace(due_at=min(tx.now, state.ready_at if state.ready_at is not None else tx.now))
        for state in jobs.states()
        if state.run_id is None and state.parked is None and state.due_at is not None and state.due_at > tx.now
    ]
    tx.jobs.save(refused)
    for state in refused:
        jobs.keep(state)
    line_up(tx, jobs)


def wake_subscribers(tx: Transaction, context: Context, jobs: LockedJobs, topics: Collection[str], seq: int) -> None:
    """Events came into these topics: their consumers are due."""
    found = [
        handler.job_id
        for handler in jobs.handlers()
        if handler.job_id is not None and not set(topics).isdisjoint(handler.topics())
    ]
    tx.of(WorkflowVerbs).set_by_job(("dirty",), [(job_id, seq) for job_id in found])
    jobs.note_dirty(found, seq)
    for handler in jobs.handlers():
        if handler.job_id in found and handler.type == STEPS:
            arm_places(tx, context, jobs, handler.name)
        elif handler.job_id in found:
            arm_job(tx, context, jobs, handler.job_id, at=tx.now, reason=EVENT)


def arm_forgotten(tx: Transaction, context: Context) -> int:
    """Arm the handlers that have something to do and are about to start for no reason; how many there were."""
    found = tx.of(WorkflowVerbs).unarmed()
    for handler in found:
        at = since(tx, handler)
        if handler.job_id is not None and at is not None:
            arm(tx, context, handler.job_id, at, WAKE_TIME if at > tx.now else CONTINUED)
    for workflow, name in sorted(tx.of(Tasks).waiting_handlers(tx.now)):
        arm_places(tx, context, LockedJobs(tx, workflow), name)
    return len(found)


def arm_resumed(tx: Transaction, context: Context, job: JobDef, state: JobState) -> JobState:
    """Queue the start of a handler whose job was paused while it had something to do; the state as it is then."""
    found = tx.of(WorkflowVerbs).of_job(job.id)
    at = since(tx, found[0]) if found is not None else None
    if at is None or _waiting(tx, state) is not None:
        return state
    tx.runs.add([RunRow.queued(context.new_id(), job, WAKE_TIME if at > tx.now else CONTINUED, at)])
    return state._replace(queued=state.queued + 1)


def look_at_pending(tx: Transaction, context: Context, workflow: str) -> None:
    """Let consumers look again at pending events that they have seen and left: other code may take them now."""
    jobs, row = LockedJobs(tx, workflow), tx.of(WorkflowVerbs).get(workflow)
    for handler in jobs.handlers():
        oldest = _oldest(tx, handler)
        if row is None or handler.job_id is None or handler.open_run is not None or oldest is None:
            continue
        tx.of(WorkflowVerbs).set_by_job(("dirty", "seen"), [(handler.job_id, row.event_seq, 0)])
        arm(tx, context, handler.job_id, min(oldest, tx.now), EVENT)
    line_up(tx, LockedJobs(tx, workflow))


def since(tx: Transaction, handler: HandlerRow) -> int | None:
    """Since when, or from when on, a handler has something to do; None: it has nothing."""
    if handler.open_run is not None:
        return tx.now
    if handler.dirty > handler.seen:
        oldest = _oldest(tx, handler)
        if oldest is not None:
            return min(oldest, tx.now)
    return handler.wake_at


def _oldest(tx: Transaction, handler: HandlerRow) -> int | None:
    """Since when the oldest pending event of a handler waits."""
    found = tx.of(Turns).oldest(handler.workflow, handler.topics())
    return min((at for at, _ in found.values()), default=None)


def job_of(tx: Transaction, handler: HandlerRow) -> JobDef | None:
    found = tx.jobs.by_id(handler.job_id) if handler.job_id is not None else None
    return found[0] if found is not None else None
