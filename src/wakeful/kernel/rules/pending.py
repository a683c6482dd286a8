"""Runs that wait as rows: which of them are not wanted any more, and which stand for slots that passed. Pure.

A retry that is due at or after the next slot is left out, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from wakeful.kernel.rules.options import OptionValues
from wakeful.kernel.rules.outcome import FAILURES
from wakeful.kernel.rules.passing import BACKING_OFF, MERGED, MISSED, Passed, came_meanwhile, skip_slots
from wakeful.kernel.rules.policy import (
    LATE_MS,
    Next,
    catches_up,
    count_passed,
    end,
    limit_words,
    next_start,
    rest,
    too_late,
    trigger_of,
)
from wakeful.store.records import JobState, RunRow
from wakeful.triggers import TimedTrigger, Trigger
from wakeful.triggers.durations import format_interval

BY_HAND = ("manual", "approval")  # why a run was asked for by a person
FROM_OUTSIDE = ("webhook", "chat")  # why it was asked for by others; it waits while its job is stopped
BY_TIME = ("schedule", "catch_up")  # why a run was claimed for its slot; it waits as a row only if it was released
RETRY = "retry"  # a further attempt after a failure, or at the time that the one before asked for


def is_deferred(run: RunRow, before: RunRow | None) -> bool:
    """Whether the run is a further attempt at a time that the one before asked for."""
    return run.reason == RETRY and before is not None and before.outcome == "deferred"


def overtaken(
    options: OptionValues, state: JobState, run: RunRow, now: int, *, slot_due: bool, before: RunRow | None
) -> str | None:
    """Why a run that waits is not wanted any more, or None; `before` is the run that it continues."""
    if run.reason in BY_HAND:
        return None  # a person may always start it by hand
    if not state.enabled or state.paused:
        if run.reason in FROM_OUTSIDE:
            return None  # what was accepted is not lost
        return "the job was paused" if state.paused else "the job was disabled"
    if run.reason == RETRY and run.slot is not None and slot_due and not is_deferred(run, before):
        return "a new slot came first"
    if run.reason in (RETRY, *BY_TIME) and too_late(options, state, run, now):
        return "its time passed while nothing ran, and catch_up says to let it go"
    return None


def too_close(options: OptionValues, state: JobState, run: RunRow, now: int, min_interval: int | None) -> str | None:
    """Why a run that follows another job's is too close to the start before it, or None."""
    if run.reason != "after" or not options.bounded or state.last_run_at is None or state.last_run_at > now:
        return None  # a start that lies ahead is one of the clock before it was set back
    return limit_words(min_interval or 0) if state.last_run_at + (min_interval or 0) > now else None


def covers_slots(run: RunRow, before: RunRow | None) -> bool:
    """Whether a run that starts late stands for the slots that passed since its own.

    One that has no slot is no run of the schedule, and neither is the recovery of what a person started. `before`: the
    run that it continues or recovers.
    """
    if run.slot is None or (before is not None and before.reason in BY_HAND):
        return False
    return run.reason in ("recovery", *BY_TIME) or is_deferred(run, before)


def instead_of_catching_up(
    text: str, options: OptionValues, state: JobState, now: int
) -> tuple[JobState, tuple[Passed, ...]]:
    """A slot that is run late, once more or because it was released, stands for those that passed since.

    Where `catch_up` lets them go, no run stands for them.
    """
    trigger = trigger_of(text)
    since = state.next_at if state.backoff_until is None else state.slot  # a backoff puts off what came before it
    if trigger.type == "once" or now - (since or 0) <= LATE_MS:
        return state, ()
    before = (state.slot or 0) - 1
    passed = count_passed(trigger, before, now)
    latest = trigger.latest_slot(before, now) or state.last_slot
    last = max(latest or 0, state.last_slot or 0) or None  # one that lies ahead was run before the clock went back
    state, passes = skip_slots(text, state, now, MERGED if catches_up(options, latest or 0, now) else MISSED)
    return state._replace(slot=None, next_at=None, last_slot=last, missed=state.missed + passed), passes


def after_backing_off(text: str, state: JobState, now: int) -> tuple[JobState, tuple[Passed, ...]]:
    """A run that starts alongside the schedule: slots that came during a backoff before it passed because of that."""
    trigger, waits = trigger_of(text), state.backoff_until is not None and state.slot is not None and state.slot <= now
    if not waits or trigger.relative or trigger.type == "once":
        return state, ()
    state, passes = skip_slots(text, state, now, BACKING_OFF)
    missed = state.missed + sum(one.slots for one in passes)
    return state._replace(slot=None, next_at=None, missed=missed), passes


def at_rest(text: str, state: JobState, now: int, rand: Callable[[], float]) -> JobState:
    """A job of which nothing waits any more: armed for the first slot that came and has no run, or for its next one.

    Over, where there is none.
    """
    trigger = trigger_of(text)
    waits = state.next_at is not None or state.queued or state.run_id is not None
    if waits or not trigger.timed or trigger.reports or not state.enabled or state.paused:
        return rest(trigger, state, now)
    came = came_meanwhile(trigger, state, now)
    coming = Next(came, came) if came is not None else next_start(trigger, state, now, rand())
    if coming.slot is None:
        return end(state, coming.ended or "", now)
    return state._replace(slot=coming.slot, next_at=coming.at, due_at=coming.at)


def crowded_note(trigger: Trigger, delays: Sequence[int]) -> str | None:
    """What to say about a job whose retries may come no earlier than its next slot; None where all have room."""
    gap = trigger.min_gap_ms() if isinstance(trigger, TimedTrigger) and not trigger.relative else None
    late = [delay for delay, after in zip(delays, accumulate(delays), strict=True) if gap is not None and after >= gap]
    if gap is None or not late:
        return None
    which = f"the retry after {format_interval(late[0])}"
    return f"leaves out {which} where the next scheduled time comes first: its times are {format_interval(gap)} apart"


def overtaken_retry(trigger: Trigger, options: OptionValues, run: RunRow) -> tuple[int, int] | None:
    """When a failed run would have been tried again, and the slot that came no later; None where that is not so."""
    delays, tries = options.retry_delays(trigger.type), run.attempt - 1
    ended = run.finished_at
    if run.outcome not in FAILURES or run.slot is None or ended is None or tries >= len(delays):
        return None
    if options.retry_on != "any" or trigger.relative or not trigger.timed:
        return None
    at, slot = ended + delays[tries], trigger.next_slot(ended)
    return None if slot is None or at < slot else (at, slot)
