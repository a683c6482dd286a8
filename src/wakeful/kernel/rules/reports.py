"""What a report from outside means for a job whose runs happen elsewhere, as its trigger says: pure.

It is down while `errors` is above 0: since its silence was noticed, since a failure was reported, or since a run
that began did not end in time. One success brings it up.
"""

from __future__ import annotations

from typing import NamedTuple

from wakeful.kernel.rules.outcome import FAILURES, Result
from wakeful.kernel.rules.policy import Next, next_start
from wakeful.store.records import JobState
from wakeful.triggers import Trigger

DOWN = "down"  # the alert
LIVES = frozenset({"success", *FAILURES})  # ends after which another report is expected


def expected_next(trigger: Trigger, state: JobState, result: Result, now: int, rand: float) -> Next:
    """When the next report is expected. An end without a report, such as a replaced start, does not move it."""
    if state.slot is not None:
        ahead = not trigger.relative and state.slot > now
        if ahead or result.outcome not in LIVES:
            return Next(state.slot, state.next_at)
    return next_start(trigger, _past_its_slot(state), now, rand, completed=now)


def after_silence(trigger: Trigger, state: JobState, now: int, rand: float) -> Next:
    """When the next report is expected after one that did not come."""
    return next_start(trigger, _past_its_slot(state), now, rand, completed=now)


def _past_its_slot(state: JobState) -> JobState:
    return state._replace(last_slot=None)  # by now, not by what was expected before: it may lie anywhere


class ReportVerdict(NamedTuple):
    """Where the job stands after a report, and what there is to say: None nothing, "" that it is up again."""

    state: JobState
    message: str | None


def judge(name: str, state: JobState, result: Result, now: int) -> ReportVerdict:
    """Up after a success, down after a failure, and as before after anything else."""
    if result.outcome == "success":
        was_down = bool(state.errors) or state.last_error is not None
        return ReportVerdict(state._replace(errors=0, last_error=None, failing_since=None), "" if was_down else None)
    if result.outcome not in FAILURES:
        return ReportVerdict(state, None)
    return down(name, state, result.error or "it reported a failure", now)


def down(name: str, state: JobState, why: str, now: int) -> ReportVerdict:
    """It is down, for one more reason."""
    since = now if state.failing_since is None else state.failing_since
    state = state._replace(errors=state.errors + 1, last_error=why, failing_since=since)
    return ReportVerdict(state, f"{name} is down: {why}")
