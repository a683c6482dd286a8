"""Pausing, resuming, disabling and enabling jobs, one or many; each in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.actions.stops import note_going_on, note_stops
from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import UNSERVED, close_alerts
from wakeful.kernel.engine.ending import drop_runs, end_proposal, open_proposal
from wakeful.kernel.engine.lines import requeue_unreserved
from wakeful.kernel.engine.stretches import keep_passed
from wakeful.kernel.rules.outcome import Result
from wakeful.kernel.rules.passing import BACKING_OFF, DISABLED, PAUSED, REPLACED, Passed, skip_slots, why_waiting
from wakeful.kernel.rules.pending import BY_HAND, FROM_OUTSIDE
from wakeful.kernel.rules.policy import Next, add_note, alarm, next_start, pause_note, thinned_note, trigger_of
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState, RunRow

MANY = 1_000
KEPT = (*BY_HAND, *FROM_OUTSIDE)  # what a pause does not end


def pause_job(tx: Transaction, context: Context, ref: str, note: str | None = None, *, own: bool = False) -> None:
    """No start by time until resumed. A run in progress finishes; a person may still start it by hand."""
    pause_all(tx, context, [find_job(tx, ref)], note, own=own)


def pause_all(
    tx: Transaction,
    context: Context,
    pairs: Sequence[tuple[JobDef, JobState]],
    note: str | None,
    *,
    own: bool = False,
) -> list[str]:
    """Pause many with a few statements; the names of those that were not paused already. `own`: their owner does so."""
    text = pause_note(note)
    note_stops(tx, pairs, own=own)
    passed: list[Passed] = []
    paused = [
        (job, _paused(job, state, text, tx.now, passed)) for job, state in pairs if text is not None or not state.paused
    ]
    tx.jobs.save([state for _, state in paused])
    keep_passed(tx, passed)
    # Only now: what ends here may start jobs after it, but none of those that are paused with it.
    left = [_without_pending(tx, context, pair, "the job was paused") for pair in paused if pair[1].queued]
    tx.jobs.save([_armed_for_queue(state, tx.now) for state in left])
    close_alerts(tx, context, (*UNSERVED, "missed"), [job.id for job, _ in paused], "the job was paused")
    if any(state.parked is not None for _, state in pairs):
        requeue_unreserved(tx)
    _emit_many(tx, "paused", [job for job, _ in paused])
    return [job.name for job, _ in paused]


def disable_job(tx: Transaction, context: Context, ref: str, *, own: bool = False) -> None:
    """Switch a job off; like paused, but it may not be started by hand either, and a new time does not revive it."""
    job, state = find_job(tx, ref)
    note_stops(tx, [(job, state)], own=own)
    state = _without_pending(tx, context, (job, state), "the job was disabled", keep=())
    close_alerts(tx, context, (*UNSERVED, "missed"), [job.id], "the job was disabled")
    state, passed = skip_slots(job.trigger, state, tx.now, why_waiting(state, DISABLED))
    keep_passed(tx, passed)
    waited = state.parked is not None
    state = state._replace(enabled=0, ended_at=None, next_at=None, slot=None, parked=None, ready_at=None)
    tx.jobs.save([state if state.run_id is not None else state._replace(due_at=None)])
    if waited:
        requeue_unreserved(tx)
    tx.events.emit("job", job_event("disabled", job))


def enable_job(tx: Transaction, context: Context, ref: str) -> None:
    """Switch a job on again. One that is also paused stays so; one that has no future stays as it is."""
    job, state = find_job(tx, ref)
    if state.enabled:
        return
    if state.paused:
        state, passed = skip_slots(job.trigger, state, tx.now, why_waiting(state, DISABLED))
        keep_passed(tx, passed)
        tx.jobs.save([state._replace(enabled=1, ended_at=None, errors=0, crashes=0, failing_since=None)])
    else:
        resume_all(tx, context, [(job, state)])


def resume_job(tx: Transaction, context: Context, ref: str) -> None:
    """Errors forgotten, idle again, and a fresh next time; nothing that went by is caught up."""
    for refusal in resume_all(tx, context, [find_job(tx, ref)]).values():
        raise refusal


def resume_all(
    tx: Transaction, context: Context, pairs: Sequence[tuple[JobDef, JobState]]
) -> dict[str, ScheduleTriggerError]:
    """Resume many with a few statements; those that cannot be resumed stay as they are, with the reason."""
    resumed, refused, passed = [], {}, list[Passed]()
    for job, state in _without_leftovers(tx, context, pairs):
        if state.enabled and not state.paused and not state.errors:
            continue
        try:
            resumed.append((job, _resumed(tx, context, job, state, passed)))
        except ScheduleTriggerError as error:
            refused[job.name] = error
    tx.jobs.save([state for _, state in resumed])
    note_going_on(tx, [job for job, _ in resumed])
    keep_passed(tx, passed)
    over = ("disabled", "failed", "failing", "stuck", "down")
    close_alerts(tx, context, over, [job.id for job, _ in resumed], "the job was resumed")
    for job, _ in resumed:
        if (proposal := open_proposal(tx, job)) is not None:  # whoever resumes it has answered
            end_proposal(tx, context, job, proposal, Result("noop"))
        hook = context.declared.declared(job.kind).resumed
        if hook is not None:
            hook(tx, context, job)
    _emit_many(tx, "resumed", [job for job, _ in resumed])
    return refused


def _without_pending(
    tx: Transaction, context: Context, pair: tuple[JobDef, JobState], why: str, keep: Sequence[str] = KEPT
) -> JobState:
    """End queued runs except requested ones: the others belong to a time that has passed."""
    job, state = pair
    if not state.queued:
        return state
    pending = [run for run in tx.runs.open(job.id) if run.status == "queued" and run.reason not in keep]
    drop_runs(tx, context, job, pending, why)
    return state._replace(queued=state.queued - len(pending))


def job_event(what: str, job: JobDef) -> dict[str, object]:
    return {"type": what, "job_id": job.id, "job": job.name}


def _emit_many(tx: Transaction, what: str, jobs: Sequence[JobDef]) -> None:
    """One event each; of very many only their number, because readers get all events of one transaction at once."""
    if len(jobs) > MANY:
        tx.events.emit("job", {"type": f"{what}_many", "count": len(jobs)})
    elif jobs:
        tx.events.emit("job", *[job_event(what, job) for job in jobs])


def _paused(job: JobDef, state: JobState, note: str | None, now: int, passed: list[Passed]) -> JobState:
    counted_to = state.counted_to
    if not state.paused:  # from here on, what passes is counted when it is resumed
        ahead = state.run_id is None and state.enabled and state.slot is not None and state.slot > now
        if not ahead:
            state, found = skip_slots(job.trigger, state, now, why_waiting(state, PAUSED))
            passed += found
        counted_to = max(state.counted_to, now)
    # One copy: many jobs are paused together.
    return state._replace(
        paused=1,
        due_at=_alarm_for_queue(state, now),
        next_at=None,
        slot=None,
        parked=None,
        ready_at=None,
        notes=add_note(state.notes, note),
        counted_to=counted_to,
    )


def _alarm_for_queue(state: JobState, now: int) -> int | None:
    """The alarm of a job that no longer starts by time: only for its queued runs."""
    return state.due_at if state.run_id is not None else now if state.queued else None


def _armed_for_queue(state: JobState, now: int) -> JobState:
    return state._replace(due_at=_alarm_for_queue(state, now))


def _without_leftovers(
    tx: Transaction, context: Context, pairs: Sequence[tuple[JobDef, JobState]]
) -> Sequence[tuple[JobDef, JobState]]:
    """The jobs, without the starts that were pending when they were stopped."""
    stopped = [pair for pair in pairs if pair[1].queued and (pair[1].paused or not pair[1].enabled)]
    if not stopped:
        return pairs
    for pair in stopped:
        tx.jobs.save([_without_pending(tx, context, pair, "the job was stopped before it could start")])
    states = tx.jobs.states([job.id for job, _ in pairs])  # again: what ended may have started others of them
    return [(job, states[job.id]) for job, _ in pairs]


def _resumed(tx: Transaction, context: Context, job: JobDef, state: JobState, passed: list[Passed]) -> JobState:
    trigger = trigger_of(job.trigger)
    stopped = state.paused or not state.enabled
    if stopped or state.run_id is None:
        fate = why_waiting(state, BACKING_OFF if state.backoff_until is not None else REPLACED)
        found: tuple[Passed, ...]
        state, found = skip_slots(job.trigger, state, tx.now, fate)
    else:
        found = ()
    notes = add_note(None, thinned_note(trigger))
    state = state._replace(
        enabled=1, paused=0, errors=0, crashes=0, failing_since=None, parked=None, ready_at=None, backoff_until=None,
        notes=notes, ended_at=None,
    )  # fmt: skip
    if state.run_id is None:
        coming = next_start(trigger, state, tx.now, context.rng.random())
        if coming.slot is None and coming.ended is not None and not state.queued:
            state = _again_once(tx, context, job, state, coming)
        else:
            state = state._replace(slot=coming.slot, next_at=coming.at)
            rearmed = context.declared.declared(job.kind).rearmed
            state = rearmed(tx, context, job, state) if rearmed is not None else state
        state = state._replace(due_at=alarm(state, tx.now if state.queued else None))
    passed += found
    return state


def _again_once(tx: Transaction, context: Context, job: JobDef, state: JobState, coming: Next) -> JobState:
    """A one-shot that did not succeed is tried again, now; any other job without a next time cannot be resumed."""
    last = tx.runs.get(state.last_run_id) if state.last_run_id is not None else None
    if trigger_of(job.trigger).type != "once" or last is None or last.outcome in ("success", "noop"):
        why = coming.ended or "its one time has passed"
        message = (
            f"{job.name} would never run again: {why}. Start it by hand (wakeful run), or give it a new time "
            "(wakeful edit)."
        )
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "done"})
    while (successor := tx.runs.successor(last.id)) is not None and (dropped := tx.runs.get(successor)) is not None:
        last = dropped  # a further attempt that a pause ended
    tx.runs.add([RunRow.again(context.new_id(), last, "manual", tx.now)._replace(kind=job.kind)])
    return state._replace(queued=state.queued + 1)
