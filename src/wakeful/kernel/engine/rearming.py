"""After the clock was set: what lies in the old time is brought into the new one.

After a step back that is every job with an alarm or a slot ahead of the new time: armed, in progress, or waiting for a
lane, a node or the end of a hold. After a step forward only deadlines move: slots that are due by the new time are due.
"""

from __future__ import annotations

from typing import NamedTuple

from wakeful.kernel.context import Context
from wakeful.kernel.engine.stretches import keep_passed
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.passing import BACKING_OFF, CLOCK_SET, skip_slots
from wakeful.kernel.rules.policy import alarm, armed_to_replace, begin_now, next_start, trigger_of, trigger_text
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState
from wakeful.triggers import Trigger

REARM_BATCH = 512


class _Step(NamedTuple):
    """How far the clock went back, and the first id that was made after it did."""

    back_ms: int
    newer: int

    def of(self, run_id: int | None) -> int:
        """By how much to move what that run asked for."""
        return self.back_ms if run_id is None or run_id < self.newer else 0


def rearm(tx: Transaction, context: Context, back_ms: int, cursor: int, newer: int) -> tuple[int, int]:
    """After a step back, bring alarms into the new time, a batch at a time: (how many moved, where to continue or 0).

    A wait of "30 seconds" still takes 30 seconds; slots are computed again, and those that were
    run stay run. What runs from the id `newer` on asked for lies in the new time already.
    """
    step = _Step(back_ms, newer)
    if cursor == 0:
        _move_queued(tx, step)
        context.declared.set_back(tx, back_ms, newer)
    pairs = tx.jobs.ahead_of(tx.now, cursor, REARM_BATCH)
    moved = []
    for job, state in pairs:
        changed = _rearm_one(tx, context, job, state, step)
        if changed != state:
            moved.append(changed)
    tx.jobs.save(moved)
    return len(moved), pairs[-1][1].job_id if len(pairs) == REARM_BATCH else 0


def reanchor(tx: Transaction, context: Context, cursor: int) -> int:
    """After a step back, let the times of jobs begin now that were stored in the old time and begin with that moment.

    Else they would be silent until it comes again. A batch at a time: where to continue, or 0.
    """
    jobs = tx.jobs.stored_after(tx.now, cursor, REARM_BATCH)
    past = tx.stretches.past_triggers_of([job.id for job in jobs]) if jobs else {}
    changed = []
    for job in jobs:
        moments = {job.created_at, job.updated_at, *(item.until for item in past.get(job.id, ()))}
        placed = context.declared.declared(job.kind).spread is not None  # its kind chose a moment of the period before
        trigger = begin_now(trigger_of(job.trigger), moments, tx.now, placed=placed)
        if trigger is not None:
            changed.append(job._replace(trigger=trigger_text(trigger), updated_at=tx.now))
    states = tx.jobs.states([job.id for job in changed]) if changed else {}
    tx.jobs.define(*changed)
    tx.jobs.save([state._replace(revision=state.revision + 1) for state in states.values()])
    return jobs[-1].id if len(jobs) == REARM_BATCH else 0


def move_deadlines(tx: Transaction, forward_ms: int) -> None:
    """After a step forward, waiting runs keep the time they had left; slots that are due by the new time are due."""
    waiting = [run for run in tx.runs.all_open() if run.status == "waiting"]
    states = tx.jobs.states([run.job_id for run in waiting])
    tx.jobs.save(
        [
            state._replace(due_at=state.due_at + forward_ms)
            for state in states.values()
            if state.due_at is not None and state.due_at > tx.now - forward_ms
        ]
    )


def _move_queued(tx: Transaction, step: _Step) -> None:
    """Bring runs that wait into the new time; their jobs follow, those that have an alarm."""
    waiting = [run for run in tx.runs.all_open() if run.status == "queued" and run.due_at > tx.now]
    states = tx.jobs.states([run.job_id for run in waiting]) if waiting else {}
    for run in waiting:
        if run.job_id in states:
            tx.runs.reschedule(run.id, max(tx.now, run.due_at - step.of(run.id)))


def _rearm_one(tx: Transaction, context: Context, job: JobDef, state: JobState, step: _Step) -> JobState:
    """The job with nothing left in the old time."""
    now = tx.now
    if state.ready_at is not None and state.ready_at > now:  # so it keeps its place in the line
        state = state._replace(ready_at=state.ready_at - step.back_ms)
    if state.run_id is not None:
        return _in_progress(tx, context, job, state, step)
    trigger = trigger_of(job.trigger)
    stale = (state.due_at or 0) > now or (state.next_at or 0) > now
    if stale and _has_slots(trigger) and state.slot is not None and state.enabled and not state.paused:
        state = _with_slot(tx, context, job, state, step)
    if trigger.type == "once" and state.slot is not None and state.slot <= now < (state.next_at or 0):
        state = state._replace(next_at=now)  # it was due at once when it was stored, and is
    if state.parked is not None and (state.next_at or 0) <= now:
        return state  # what it waits for is due by the new time too
    waiting = [run.due_at for run in tx.runs.open(job.id) if run.status == "queued"] if state.queued else []
    queued = now if state.queued > len(waiting) else min(waiting, default=None)
    if queued is None or queued > now:
        state = state._replace(ready_at=None)
    return state._replace(due_at=alarm(state, queued), parked=None)


def _has_slots(trigger: Trigger) -> bool:
    """Whether its slots are computed again: a one-shot keeps the moment it was given."""
    return trigger.timed and trigger.type != "once"


def _in_progress(tx: Transaction, context: Context, job: JobDef, state: JobState, step: _Step) -> JobState:
    """A slot that lies ahead is found again when the run ends; the deadline of one that waits keeps its distance."""
    now = tx.now
    if _has_slots(trigger_of(job.trigger)) and (state.next_at or 0) > now:
        state = state._replace(slot=None, next_at=None, backoff_until=None)
    if state.due_at is None:
        return state
    if any(run.id == state.run_id and run.status == "waiting" for run in tx.runs.open(job.id)):
        return state._replace(due_at=max(now, state.due_at - step.of(state.run_id)))
    return armed_to_replace(trigger_of(job.trigger), from_text(job.options), state, now, context.rng.random())


def _with_slot(tx: Transaction, context: Context, job: JobDef, state: JobState, step: _Step) -> JobState:
    """Armed for the next slot of the new time; one whose time had come, and whose start was put off, has passed."""
    now, trigger = tx.now, trigger_of(job.trigger)
    coming = next_start(trigger, state, now, context.rng.random())
    if coming.at is None:
        return state
    held = state.backoff_until - step.of(state.last_run_id) if state.backoff_until is not None else None
    at = max(coming.at, held) if held is not None else coming.at
    if not trigger.relative and state.slot is not None and state.slot <= now:
        state, passed = skip_slots(job.trigger, state, now, BACKING_OFF if held is not None else CLOCK_SET)
        keep_passed(tx, passed)
    state = state._replace(slot=coming.slot, next_at=at, backoff_until=held)
    rearmed = context.declared.declared(job.kind).rearmed
    return rearmed(tx, context, job, state) if rearmed is not None else state
