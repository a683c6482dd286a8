"""What the end of a run changes: a pure function from records and a result to new records.

The one place that decides about errors, backoff, retries, auto-disable, overlap and the next time. The engine
applies the answer in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import APPROVAL, FAILURES, GOES_ON, WAITING, Result, kept_messages
from wakeful.kernel.rules.passing import ALREADY_RUNNING, MERGED, Passed, skip_slots
from wakeful.kernel.rules.pending import BY_HAND, RETRY
from wakeful.kernel.rules.policy import (
    FLOOR_MS,
    NO_TIME_OF_ITS_OWN,
    add_note,
    backoff_delay,
    count_passed,
    end,
    next_start,
    trigger_of,
    used_up,
    without_notes_of_pause,
)
from wakeful.kernel.rules.reports import DOWN, expected_next, judge
from wakeful.store.records import Finish, JobDef, JobState, RunDetails, RunRow, SkipRow
from wakeful.triggers import Trigger
from wakeful.triggers.moments import iso


class AlertChange(NamedTuple):
    """An incident about a run's job that opens (`message`) or is over (None)."""

    kind: str
    message: str | None
    errors: int = 0  # failures in a row, where it is about them


class Settled(NamedTuple):
    """Everything the end of one run writes."""

    state: JobState | None  # None: the caller writes it
    finish: Finish
    queue: tuple[RunRow, ...] = ()
    details: RunDetails | None = None
    skips: tuple[SkipRow, ...] = ()
    alerts: tuple[AlertChange, ...] = ()
    ended_as: str | None = None  # for jobs that start after this one: success, failure or other; None: not over yet
    passed: tuple[Passed, ...] = ()  # slots that came while it ran


def settle(
    job: JobDef,
    state: JobState,
    run: RunRow,
    result: Result,
    *,
    now: int,
    rand: float,
    new_id: Callable[[], int],
    min_interval: int | None = None,
    failed_before: int | None = None,
    deferred: Sequence[RunRow] = (),
) -> Settled:
    """What `result` of `run` means for its job; `job` and `state` are the current ones, read in this transaction.

    `min_interval`: how close two starts of a bounded job may lie. `failed_before`: how many earlier attempts at this
    failed, and so used a retry; all of them unless given. `deferred`: the attempts at other slots that were deferred.
    """
    if result.outcome == WAITING:
        return _wait(state, run, result)
    finish = Finish(run.id, "done", result.outcome, run.started_at, now, None)
    if trigger_of(job.trigger).reports:
        return _settle_report(job, state, run, result, now=now, rand=rand)
    if state.paused and result.outcome in ("success", "noop"):
        state = _without_pause(job, state, now)
    works = result.outcome in ("success", "noop")
    plan = _plan(job, state, run, now, rand, works=works) if job.removed_at is None else STOPPED
    tries = run.attempt - 1 if failed_before is None else failed_before
    again = _again(job, run, result, now, tries=tries, min_interval=min_interval, new_id=new_id)
    merged = _merged(again, deferred) if again is not None and again.reason == RETRY else None
    if again is not None and (merged is not None or not _still_wanted(job, state, plan, again, result)):
        again = None
    details = _details(run, result if merged is None else result._replace(error=merged))
    over = plan.ended is not None and again is None and not state.queued
    backoff = state.backoff_until if run.reason in BY_HAND and not over else None
    look = _next_look(state, again, now)
    # One copy for everything a good end changes: this is the hot path, and each copy costs as much as the decisions.
    state = state._replace(
        enabled=0 if over else state.enabled,
        ended_at=now if over else state.ended_at,
        due_at=_earliest(plan.next_at, look),
        next_at=plan.next_at,
        slot=plan.slot,
        run_id=None,
        queued=state.queued + (again is not None),
        ready_at=plan.ready_at,
        last_finished_at=now,
        last_outcome=result.outcome,
        crashes=0,
        missed=state.missed + plan.missed,
        backoff_until=plan.backoff_until,
        counted_to=state.counted_to if plan.counted_to is None else plan.counted_to,
    )
    if over and plan.ended:
        state = end(state, plan.ended, now)
    state, alerts = _count_error(job, state, result, now, again=again, backoff=backoff, look=look)
    if over and result.outcome in FAILURES:
        message = f"{job.name} failed and will not run again: {result.error}"
        alerts = (*alerts, AlertChange("failed", message))
    if run.phase in GOES_ON and result.outcome != "timeout":
        alerts = (*alerts, AlertChange("stuck", None))  # it has ended after all
    queue = (again,) if again is not None else ()
    ended_as = _ended_as(result) if again is None else None
    passed = plan.passed if state.enabled or over else tuple(_passed_over(item) for item in plan.passed)
    return Settled(state, finish, queue, details, plan.skips, alerts, ended_as, passed)


def _passed_over(item: Passed) -> Passed:
    """What was to be merged into a slot that the job, which has just been disabled, does not run."""
    return item._replace(fate=ALREADY_RUNNING) if item.fate == MERGED else item


def _without_pause(job: JobDef, state: JobState, now: int) -> JobState:
    """A job that was paused during its last run, and has done all it was to do, is not paused but over."""
    future = next_start(trigger_of(job.trigger), state, now, 0.0, completed=now)
    if job.removed_at is not None or not state.enabled or future.ended is None or state.queued:
        return state
    return state._replace(paused=0, notes=without_notes_of_pause(state))


def _settle_report(job: JobDef, state: JobState, run: RunRow, result: Result, *, now: int, rand: float) -> Settled:
    """The end of a run that was reported: it happened elsewhere, so nothing is tried again, delayed or disabled."""
    finish = Finish(run.id, "done", result.outcome, run.started_at, now, None)
    stopped = job.removed_at is not None or state.paused or not state.enabled
    coming = NO_TIME_OF_ITS_OWN if stopped else expected_next(trigger_of(job.trigger), state, result, now, rand)
    state = state._replace(
        due_at=coming.at, next_at=coming.at, slot=coming.slot, run_id=None, ready_at=None, last_finished_at=now,
        last_outcome=result.outcome, crashes=0,
    )  # fmt: skip
    alerts: tuple[AlertChange, ...] = ()
    if not stopped or result.outcome == "success":  # a person who paused the job expects no messages about failures
        state, message = judge(job.name, state, result, now)
        alerts = () if message is None else (AlertChange(DOWN, message or None),)
    if coming.ended is not None:
        state = end(state, coming.ended, now)
    return Settled(state, finish, (), _details(run, result), (), alerts, _ended_as(result))


def dropped(run: RunRow, why: str, now: int, before: str | None) -> Settled:
    """End a queued run that is no longer needed; `before` is the outcome of the one it continues.

    If that one had failed, it failed for good, also for jobs that start after a failure.
    """
    finish = Finish(run.id, "done", "cancelled", None, now, None)
    ended_as = "failure" if before in FAILURES or before == "crashed" else "other"
    return Settled(None, finish, details=RunDetails(run.id, error=why), ended_as=ended_as)


def _wait(state: JobState, run: RunRow, result: Result) -> Settled:
    """The run no longer holds anything; its alarm is the deadline, after which it is unknown."""
    finish = Finish(run.id, "waiting", None, run.started_at, None, None)
    details = _details(run, result)
    if result.messages and result.phase != APPROVAL:  # one that asks first is made anew, with its messages
        kept = kept_messages(result.messages)
        details = (RunDetails(run.id) if details is None else details)._replace(messages=kept)
    return Settled(state._replace(due_at=result.until), finish, details=details)


def _details(run: RunRow, result: Result) -> RunDetails | None:
    if result.output is None and result.error is None and result.log_file is None and result.usage is None:
        return None
    return RunDetails(
        run.id,
        output=result.output,
        error_type=result.error_type,
        error=result.error,
        trace=result.trace,
        log_file=result.log_file,
        usage=result.usage,
    )


def _again(
    job: JobDef,
    run: RunRow,
    result: Result,
    now: int,
    *,
    tries: int,
    min_interval: int | None,
    new_id: Callable[[], int],
) -> RunRow | None:
    """The next attempt at the same thing, if there is to be one."""
    options, began = from_text(job.options), min(run.started_at or now, now)  # ahead: the clock was set back meanwhile
    reason, at = RETRY, now
    if result.approved:
        reason = APPROVAL
    elif result.interrupted and options.recovers:
        reason = "recovery"
    elif result.outcome == "deferred" and result.until is not None:
        at = max(result.until, began + FLOOR_MS)  # not a way around the floor
    elif result.outcome in FAILURES and result.until is not None:
        at = max(result.until, now + FLOOR_MS)
    elif result.outcome in FAILURES:
        delays = options.retry_delays(trigger_of(job.trigger).type)
        wanted = options.retry_on == "any" or result.transient
        if not wanted or tries >= len(delays):
            return None
        at = now + delays[tries]
        if options.bounded:  # a retry is no start by hand
            at = max(at, began + max(FLOOR_MS, min_interval or 0))
    else:
        return None
    return RunRow.again(new_id(), run, reason, at)


def _still_wanted(job: JobDef, state: JobState, plan: _Plan, again: RunRow, result: Result) -> bool:
    """A further attempt is dropped when the job was stopped, or when a new slot comes before it."""
    if job.removed_at is not None:
        return False
    if result.approved:
        return True
    if not state.enabled or state.paused:
        return False
    if result.interrupted or result.outcome == "deferred":
        return True
    return again.slot is None or plan.next_at is None or again.due_at < plan.next_at


def _merged(again: RunRow, deferred: Sequence[RunRow]) -> str | None:
    """Why a slot that is deferred alongside others is not tried again: so that attempts do not pile up."""
    if again.slot is None:
        return None
    if any(run.due_at == again.due_at for run in deferred):
        return "not tried again: another scheduled time was deferred to the same time, and runs then"
    if again.attempt > 2 and any((run.slot or 0) > again.slot for run in deferred):
        return "not tried again: a later scheduled time was deferred too, and is tried again"
    return None


def _count_error(
    job: JobDef,
    state: JobState,
    result: Result,
    now: int,
    *,
    again: RunRow | None,
    backoff: int | None,
    look: int | None,
) -> tuple[JobState, tuple[AlertChange, ...]]:
    """Errors in a row: they delay, and too many disable. An error that is tried again is not counted yet.

    `backoff`: until when the job was backing off when a person started this run. It continues unless that succeeded.
    `look`: when what waits for a start is looked at.
    """
    if result.outcome in ("success", "noop"):
        if not state.errors and state.last_error is None:
            return state, ()
        closed = (AlertChange("failing", None), AlertChange("stuck", None), AlertChange("failed", None))
        return state._replace(errors=0, last_error=None, failing_since=None), closed
    if result.outcome not in (*FAILURES, "unknown"):
        return _backing_off(state, backoff, look), ()
    state = state._replace(last_error=result.error)
    if result.outcome == "unknown":  # it may have succeeded: no error, but nothing to call well either
        return _backing_off(state, backoff, look), ()
    alerts: list[AlertChange] = []
    if result.outcome == "timeout":
        alerts.append(AlertChange("stuck", f"{job.name} ran past its limit: {result.error}"))
    if again is not None and not state.errors and job.removed_at is None:  # told at once where one failure is enough
        alerts.append(AlertChange("failing", f"{job.name} failed and is tried again: {result.error}", errors=1))
    if again is not None or job.removed_at is not None:
        return state, tuple(alerts)
    if backoff is not None:
        return _backing_off(state, backoff, look), tuple(alerts)
    state, more = fail_for_good(job, state, now)
    state = state._replace(due_at=_earliest(state.next_at, now if state.queued else None))
    return state, (*alerts, *more)


def _backing_off(state: JobState, until: int | None, look: int | None) -> JobState:
    """The state of a job whose next start is not before the end of this backoff, if there is one."""
    if until is None or state.next_at is None or until <= state.next_at:
        return state
    return state._replace(next_at=until, backoff_until=until, due_at=_earliest(until, look))


def fail_for_good(job: JobDef, state: JobState, at: int) -> tuple[JobState, tuple[AlertChange, ...]]:
    """One more error in a row, of a run that ended then and is not tried again."""
    since = at if state.failing_since is None else state.failing_since
    return count_failure(job, state._replace(errors=state.errors + 1, failing_since=since), at)


def count_failure(job: JobDef, state: JobState, now: int) -> tuple[JobState, tuple[AlertChange, ...]]:
    """Disable after too many failures in a row, else push the next start back; never forward."""
    errors, options = state.errors, from_text(job.options)
    since = state.failing_since  # none: it crashed, and crashes are not given time
    long_enough = since is None or now - since >= options.error_span
    if options.max_errors and errors >= options.max_errors and long_enough:
        times = f"{errors} errors in a row" if errors > 1 else "an error"
        note = f"disabled {iso(now)} after {times}"
        state = state._replace(
            enabled=0, slot=None, next_at=None, backoff_until=None, notes=add_note(state.notes, note)
        )
        message = f"{job.name} was disabled after {times}; the last: {state.last_error}"
        over = AlertChange("failing", None)
        return state, (over, AlertChange("disabled", message))
    until = now + backoff_delay(options, errors)
    if state.next_at is not None and until > state.next_at:
        state = state._replace(next_at=until, backoff_until=until)
    times = f"{errors} times in a row; the last" if errors > 1 else "once"
    message = f"{job.name} has failed {times}: {state.last_error}"
    return state, (AlertChange("failing", message, errors),)


class _Plan(NamedTuple):
    """The next start, backoff aside, and what went by."""

    slot: int | None
    next_at: int | None
    missed: int = 0
    skips: tuple[SkipRow, ...] = ()
    ready_at: int | None = None
    ended: str | None = None  # why there is no next start, and never will be
    passed: tuple[Passed, ...] = ()
    counted_to: int | None = None  # None: as before
    backoff_until: int | None = None  # where an earlier failure still puts the next start off


STOPPED = _Plan(None, None)


def _plan(job: JobDef, state: JobState, run: RunRow, now: int, rand: float, *, works: bool) -> _Plan:
    """Overlap first, then the trigger. `works`: the run succeeded, which ends a backoff."""
    trigger, options = trigger_of(job.trigger), from_text(job.options)
    if not state.enabled or state.paused or not trigger.timed:
        return STOPPED
    if state.slot is not None and state.next_at is not None and state.next_at <= (run.started_at or 0):
        # It was due before this run began, and only waited: no later than it was then.
        return _Plan(state.slot, state.next_at, ready_at=state.ready_at or state.next_at)
    came = state.slot is not None and state.slot <= (run.started_at or 0) and not trigger.relative
    if came and state.backoff_until is not None:  # before this run, which does not stand for it, and was put off
        return _Plan(state.slot, now if works else state.next_at, backoff_until=now if works else state.backoff_until)
    missed = 0
    passed: tuple[Passed, ...] = ()
    skips: tuple[SkipRow, ...] = ()
    if trigger.type != "once" and not trigger.relative:
        latest = max(run.slot or 0, state.last_slot or 0)
        began = max(latest if latest <= now else 0, state.counted_to)  # one ahead was run before the clock went back
        since = state.slot - 1 if state.slot is not None else began
        missed = count_passed(trigger, since, now) if since else 0
        if missed and options.overlap != "skip" and not used_up(trigger, state):
            latest = trigger.latest_slot(since, now) or now
            state, passed = skip_slots(job.trigger, state, latest - 1, MERGED)
            return _Plan(latest, now, missed - 1, passed=passed, counted_to=state.counted_to)
        if missed:  # slots that came while the job itself was running
            state, passed = skip_slots(job.trigger, state, now, ALREADY_RUNNING)
            skips = (SkipRow(state.job_id, ALREADY_RUNNING, missed, now, None),)
    if _keeps(trigger, state, now) and state.backoff_until is None:
        return _Plan(state.slot, state.next_at)
    coming = next_start(trigger, state, now, rand, completed=now)
    return _Plan(coming.slot, coming.at, missed, skips, None, coming.ended, passed, state.counted_to)


def _keeps(trigger: Trigger, state: JobState, now: int) -> bool:
    """A start that lies ahead is not touched by a run alongside it; only `interval` counts from every end."""
    if state.slot is None or state.next_at is None or trigger.relative:
        return False
    return trigger.type == "once" or state.slot > now


def _next_look(state: JobState, again: RunRow | None, now: int) -> int | None:
    """When to look at what waits: at once, in the place of one that has waited since it was queued."""
    if not state.queued:
        return again.due_at if again is not None else None
    return now if state.ready_at is None else min(now, state.ready_at)


def _earliest(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return min(first, second)


def _ended_as(result: Result) -> str:
    if result.outcome == "success":
        return "success"
    return "failure" if result.outcome in FAILURES or result.outcome == "crashed" else "other"
