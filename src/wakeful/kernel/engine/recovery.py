"""What the engine finds when it starts: runs that died with their process, and a clock that may have moved.

A run cut off by a crash is recorded as crashed and its slot runs again at once. From the second crash in a row
the ladder holds. A job that crashed twice is a suspect, and suspects run one at a time; so the one that takes the
process down is found, and only it is counted toward being disabled.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from wakeful.kernel.context import Context
from wakeful.kernel.engine.admission import SUSPECT_AFTER
from wakeful.kernel.engine.alerts import close_alert
from wakeful.kernel.engine.ending import Ending, end_runs
from wakeful.kernel.engine.handlers import past_limit
from wakeful.kernel.engine.requeue import requeue_served
from wakeful.kernel.engine.stretches import keep_passed
from wakeful.kernel.engine.turn import Ended, from_report, settle_all
from wakeful.kernel.parking import is_lane
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import GOES_ON, Result
from wakeful.kernel.rules.passing import BACKING_OFF, CLOCK_SET, MERGED, MISSED, Passed, let_pass
from wakeful.kernel.rules.policy import FLOOR_MS, alarm, backoff_delay, count_passed, end, next_start, trigger_of
from wakeful.kernel.rules.settle import AlertChange, Settled, count_failure
from wakeful.store.interface import Transaction
from wakeful.store.records import Finish, JobDef, JobState, RunDetails, RunRow

CUT_OFF = "the process ended while it ran"


class Recovered(NamedTuple):
    """What a start found."""

    crashed: list[int]
    waiting: int
    queued: int


def recover(tx: Transaction, context: Context, alive: Collection[int] = ()) -> Recovered:
    """Record what was cut off, queue it again, and free what it held. Only while no other engine runs.

    `alive`: runs that outlived a stop in threads of this very process, and still hold their jobs.
    """
    opened = tx.runs.all_open()
    cut_off = [run for run in opened if run.status == "active" and run.id not in alive]
    if cut_off:
        crash_all(tx, context, cut_off)
    waiting = [run for run in opened if run.status == "waiting"]
    holding = [run for run in opened if run.id in alive and run.lanes is not None]
    tx.lanes.reset(Counter(lane for run in holding for lane in json.loads(run.lanes or "[]")))
    for key in tx.jobs.parked_counts():
        if is_lane(key):
            tx.jobs.requeue_parked(key, tx.now, 1)  # the first of the line finds the lane free and offers it on
    requeue_served(tx, context)
    return Recovered([run.id for run in cut_off], len(waiting), sum(run.status == "queued" for run in opened))


def crash_all(tx: Transaction, context: Context, runs: Sequence[RunRow]) -> None:
    """Settle runs that died together, and free what they held. Cancelled runs are not run again.

    A run that was settled while we waited for its job is left alone: its node was quicker, or another one was.
    """
    states = tx.jobs.states([run.job_id for run in runs])
    runs = [run for run in runs if run.job_id in states and states[run.job_id].run_id == run.id]
    jobs = tx.jobs.definitions([run.job_id for run in runs])
    called_off = Result("cancelled", error="cancelled, and the process ended before the handler could be stopped")
    settle_all(
        tx,
        context,
        [Ended(jobs[run.job_id], states[run.job_id].revision, run, called_off) for run in runs if run.cancel],
    )
    runs = _without_overdue(tx, context, [run for run in runs if not run.cancel], jobs, states)
    runs = _without_reported(tx, context, runs, jobs, states)
    states = tx.jobs.states([run.job_id for run in runs])  # again: what was settled may have queued a start of theirs
    blamed = blame(runs, states)
    crashed = Result("crashed", error_type="Crashed", error=CUT_OFF)
    endings = [
        Ending(job, run, crashed, crash(job, states[job.id], run, context, now=tx.now, blamed=run.id in blamed))
        for run in runs
        for job in [jobs[run.job_id]]
    ]
    end_runs(tx, context, endings, announce=True)


def _without_overdue(
    tx: Transaction, context: Context, runs: Sequence[RunRow], jobs: dict[int, JobDef], states: dict[int, JobState]
) -> list[RunRow]:
    """The runs that were cut off within their time limit. The others had timed out, but had not ended."""
    late = [run for run in runs if run.phase == "timeout"]
    settle_all(
        tx,
        context,
        [
            Ended(job, states[job.id].revision, run, past_limit(from_text(job.options).timeout))
            for run in late
            for job in [jobs[run.job_id]]
        ],
    )
    for run in runs:
        if run.phase in GOES_ON and run not in late:
            close_alert(tx, context, "stuck", run.job_id)
    return [run for run in runs if run not in late]


def _without_reported(
    tx: Transaction, context: Context, runs: Sequence[RunRow], jobs: dict[int, JobDef], states: dict[int, JobState]
) -> list[RunRow]:
    """The runs whose end is not known; the others end as reported."""
    found = tx.reports.of([run.id for run in runs])
    reported = [run for run in runs if run.id in found]
    tx.reports.drop([run.id for run in reported])
    settle_all(
        tx,
        context,
        [Ended(jobs[run.job_id], states[run.job_id].revision, run, from_report(found[run.id])) for run in reported],
    )
    return [run for run in runs if run.id not in found]


def blame(runs: Sequence[RunRow], states: dict[int, JobState]) -> set[int]:
    """Whose crash counts: the run that was alone, or the only suspect among those that died."""
    if len(runs) == 1:
        return {runs[0].id}
    suspects = [run.id for run in runs if states[run.job_id].crashes >= SUSPECT_AFTER]
    return set(suspects) if len(suspects) == 1 else set()


def crash(job: JobDef, state: JobState, run: RunRow, context: Context, *, now: int, blamed: bool) -> Settled:
    """What a crash means for one job."""
    trigger, options = trigger_of(job.trigger), from_text(job.options)
    finish = Finish(run.id, "done", "crashed", run.started_at, now, None)
    details = RunDetails(run.id, error_type="Crashed", error=CUT_OFF)
    state = state._replace(
        run_id=None, last_run_id=run.id, last_run_at=run.started_at, last_finished_at=now, last_outcome="crashed",
        last_error=CUT_OFF, crashes=state.crashes + 1, errors=state.errors + blamed, ready_at=None, due_at=None,
    )  # fmt: skip
    if job.removed_at is not None:
        return Settled(state._replace(next_at=None, slot=None, enabled=0), finish, details=details, ended_as="failure")
    ended: str | None = None
    passed: tuple[Passed, ...] = ()
    if trigger.timed and state.enabled and not state.paused and state.slot is None:
        coming = next_start(trigger, state, now, context.rng.random())
        missed = count_passed(trigger, max(run.slot or 0, state.last_slot or 0), now) if state.last_slot else 0
        state, passed = let_pass(job.trigger, state, now, MERGED if options.on_crash != "skip" else MISSED)
        state, ended = state._replace(slot=coming.slot, next_at=coming.at, missed=state.missed + missed), coming.ended
    alerts: tuple[AlertChange, ...] = ()
    if blamed and state.crashes >= SUSPECT_AFTER:
        state, alerts = count_failure(job, state, now)
    wanted = state.enabled and not state.paused and options.on_crash != "skip"
    again = _again(job, state, run, context, now) if wanted else None
    if ended is not None and again is None and state.enabled and not state.queued:
        state = end(state, ended, now)
    queued_at = now if state.queued else again.due_at if again is not None else None
    state = state._replace(due_at=alarm(state, queued_at), queued=state.queued + (again is not None))
    queue = (again,) if again is not None else ()
    return Settled(state, finish, queue, details, (), alerts, "failure" if again is None else None, passed)


def _again(job: JobDef, state: JobState, run: RunRow, context: Context, now: int) -> RunRow:
    """Run the same slot again: at once after the first crash, by the ladder after that."""
    options, at = from_text(job.options), now
    if state.crashes >= SUSPECT_AFTER:
        delay = backoff_delay(options, state.crashes - 1)
        at += max(delay, FLOOR_MS, context.min_interval or 0) if options.bounded else delay
    return RunRow.again(context.new_id(), run, "recovery", at)._replace(kind=job.kind)


# -- a clock that was set ---------------------------------------------------------------------------------------------

REARM_BATCH = 512


def rearm(tx: Transaction, context: Context, back_ms: int, cursor: int, newer: int) -> tuple[int, int]:
    """After a step back, bring alarms into the new time, a batch at a time: (how many moved, where to go on or 0).

    A wait of "30 seconds" still takes 30 seconds; slots are computed again, and those that were
    run stay run. What runs from the id `newer` on asked for lies in the new time already.
    """
    step = _Step(back_ms, newer)
    if cursor == 0:
        _move_queued(tx, step)
    pairs = tx.jobs.armed_after(tx.now, cursor, REARM_BATCH)
    moved = []
    for job, state in pairs:
        changed = _rearm_one(tx, context, job, state, step)
        if changed != state:
            moved.append(changed)
    tx.jobs.save(moved)
    return len(moved), pairs[-1][1].job_id if len(pairs) == REARM_BATCH else 0


def _move_queued(tx: Transaction, step: _Step) -> None:
    """Bring runs that wait into the new time whose job has no alarm: it is paused, or busy with another run."""
    waiting = [run for run in tx.runs.all_open() if run.status == "queued" and run.due_at > tx.now]
    states = tx.jobs.states([run.job_id for run in waiting]) if waiting else {}
    for run in waiting:
        if run.job_id in states and states[run.job_id].due_at is None:
            tx.runs.reschedule(run.id, max(tx.now, run.due_at - step.of(run.id)))


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


class _Step(NamedTuple):
    """How far the clock went back, and the first id that was made after it did."""

    back_ms: int
    newer: int

    def of(self, run_id: int | None) -> int:
        """By how much to move what that run asked for."""
        return self.back_ms if run_id is None or run_id < self.newer else 0


def _rearm_one(tx: Transaction, context: Context, job: JobDef, state: JobState, step: _Step) -> JobState:
    now = tx.now
    if state.run_id is not None:  # a waiting run's deadline
        return state._replace(due_at=max(now, (state.due_at or now) - step.of(state.run_id)))
    waiting = [run for run in tx.runs.open(job.id) if run.status == "queued"] if state.queued else []
    due = {run.id: max(now, run.due_at - step.of(run.id)) for run in waiting}
    for run_id, due_at in due.items():
        tx.runs.reschedule(run_id, due_at)
    trigger = trigger_of(job.trigger)
    if trigger.timed and trigger.type != "once" and state.slot is not None and state.enabled and not state.paused:
        coming = next_start(trigger, state, now, context.rng.random())
        if coming.at is not None:
            held = state.backoff_until - step.of(state.last_run_id) if state.backoff_until is not None else None
            at = max(coming.at, held) if held is not None else coming.at
            if not trigger.relative and state.slot <= now:  # its time had come, and its start was put off until later
                fate = BACKING_OFF if held is not None else CLOCK_SET
                state, passed = let_pass(job.trigger, state, now, fate)
                keep_passed(tx, passed)
            state = state._replace(slot=coming.slot, next_at=at, backoff_until=held)
            rearmed = context.declared.declared(job.kind).rearmed
            state = rearmed(tx, job, state) if rearmed is not None else state
    return state._replace(due_at=alarm(state, min(due.values(), default=None)))
