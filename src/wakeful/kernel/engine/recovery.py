"""What the engine finds when it starts: runs that died with their process.

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
from wakeful.kernel.engine.lines import requeue_served
from wakeful.kernel.engine.turn import FinishedRun, from_report, settle_all, succeeded
from wakeful.kernel.rules.options import OptionValues, from_text
from wakeful.kernel.rules.outcome import GOES_ON, Result, past_limit
from wakeful.kernel.rules.parking import is_lane
from wakeful.kernel.rules.passing import MERGED, MISSED, Passed, came_meanwhile, skip_slots
from wakeful.kernel.rules.pending import BY_HAND
from wakeful.kernel.rules.policy import (
    FLOOR_MS,
    alarm,
    backoff_delay,
    catches_up,
    count_passed,
    end,
    next_start,
    trigger_of,
)
from wakeful.kernel.rules.settle import AlertChange, Settled, count_failure
from wakeful.store.interface import Transaction
from wakeful.store.records import Finish, JobDef, JobState, RunDetails, RunRow
from wakeful.triggers import Trigger

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
    holding = [run for run in opened if (run.id in alive or run.status == "waiting") and run.lanes is not None]
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
    runs = _without_succeeded(tx, context, runs, jobs, states)
    called_off = Result("cancelled", error="cancelled, and the process ended before the handler could be stopped")
    settle_all(
        tx,
        context,
        [FinishedRun(jobs[run.job_id], states[run.job_id].revision, run, called_off) for run in runs if run.cancel],
    )
    runs = _without_overdue(tx, context, [run for run in runs if not run.cancel], jobs, states)
    runs = _without_reported(tx, context, runs, jobs, states)
    states = tx.jobs.states([run.job_id for run in runs])  # again: what was settled may have queued a start of theirs
    blamed = blame(runs, states)
    crashed = Result("crashed", error_type="Crashed", error=CUT_OFF)
    endings = []
    for run in runs:
        job, result = jobs[run.job_id], crashed._replace(blamed=run.id in blamed)
        by_hand = tx.runs.recovered(run).reason in BY_HAND
        answer = crash(job, states[job.id], run, context, now=tx.now, blamed=result.blamed, by_hand=by_hand)
        endings.append(Ending(job, run, result, answer))
    end_runs(tx, context, endings, announce=True)


def _without_succeeded(
    tx: Transaction, context: Context, runs: Sequence[RunRow], jobs: dict[int, JobDef], states: dict[int, JobState]
) -> list[RunRow]:
    """The runs that had something left to do when they were cut off; the others have succeeded."""
    found = succeeded(tx, context, runs)
    settle_all(
        tx,
        context,
        [
            FinishedRun(jobs[run.job_id], states[run.job_id].revision, run, found[run.id])
            for run in runs
            if run.id in found
        ],
    )
    return [run for run in runs if run.id not in found]


def _without_overdue(
    tx: Transaction, context: Context, runs: Sequence[RunRow], jobs: dict[int, JobDef], states: dict[int, JobState]
) -> list[RunRow]:
    """The runs that were cut off within their time limit. The others had timed out, but had not ended."""
    late = [run for run in runs if run.phase == "timeout"]
    settle_all(
        tx,
        context,
        [
            FinishedRun(job, states[job.id].revision, run, past_limit(from_text(job.options).timeout))
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
    ended = []
    for run in reported:
        job = jobs[run.job_id]
        result = from_report(tx, context, job, run, found[run.id])
        ended.append(FinishedRun(job, states[job.id].revision, run, result))
    settle_all(tx, context, ended)
    return [run for run in runs if run.id not in found]


def blame(runs: Sequence[RunRow], states: dict[int, JobState]) -> set[int]:
    """Whose crash counts: the run that was alone, or the only suspect among those that died."""
    if len(runs) == 1:
        return {runs[0].id}
    suspects = [run.id for run in runs if states[run.job_id].crashes >= SUSPECT_AFTER]
    return set(suspects) if len(suspects) == 1 else set()


def crash(
    job: JobDef, state: JobState, run: RunRow, context: Context, *, now: int, blamed: bool, by_hand: bool
) -> Settled:
    """What a crash means for one job; `by_hand`: a person started what was cut off."""
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
    if options.overlap == "cancel_other" and run.slot is not None:  # it was only armed to be replaced
        state = state._replace(slot=None, next_at=None)
    if trigger.timed and state.enabled and not state.paused and state.slot is None:
        came = came_meanwhile(trigger, state, now) if run.slot is None or by_hand else None
        if came is not None:  # a start by hand is no run of the schedule, and stands for none of its slots
            state = state._replace(slot=came, next_at=came)
        else:
            coming = next_start(trigger, state, now, context.rng.random())
            missed = count_passed(trigger, max(run.slot or 0, state.last_slot or 0), now) if state.last_slot else 0
            state, passed = skip_slots(job.trigger, state, now, _fate_of_passed(trigger, options, state, now))
            state = state._replace(slot=coming.slot, next_at=coming.at, missed=state.missed + missed)
            ended = coming.ended
    alerts: tuple[AlertChange, ...] = ()
    if blamed and state.crashes >= SUSPECT_AFTER:
        state, alerts = count_failure(job, state, now)
    wanted = state.enabled and not state.paused and options.recovers
    again = _again(job, state, run, context, now) if wanted else None
    if ended is not None and again is None and state.enabled and not state.queued:
        state = end(state, ended, now)
        alerts = (*alerts, AlertChange("failed", f"{job.name} failed and will not run again: {CUT_OFF}"))
    queued_at = now if state.queued else again.due_at if again is not None else None
    state = state._replace(due_at=alarm(state, queued_at), queued=state.queued + (again is not None))
    queue = (again,) if again is not None else ()
    return Settled(state, finish, queue, details, (), alerts, "failure" if again is None else None, passed)


def _fate_of_passed(trigger: Trigger, options: OptionValues, state: JobState, now: int) -> str:
    """What became of the slots that passed meanwhile: the run that recovers covers them, where they are caught up."""
    latest = trigger.latest_slot(state.counted_to, now) if state.counted_to < now else None
    covered = options.recovers and (latest is None or catches_up(options, latest, now))
    return MERGED if covered else MISSED


def _again(job: JobDef, state: JobState, run: RunRow, context: Context, now: int) -> RunRow:
    """Run the same slot again: at once after the first crash, by the ladder after that."""
    options, at = from_text(job.options), now
    if state.crashes >= SUSPECT_AFTER:
        delay = backoff_delay(options, state.crashes - 1)
        at += max(delay, FLOOR_MS, context.min_interval or 0) if options.bounded else delay
    return RunRow.again(context.new_id(), run, "recovery", at)._replace(kind=job.kind)
