"""Slots that pass without a run of their own: which they are, and why. Pure.

All slots of a job up to `counted_to` are accounted for, by runs and stretches. Code that lets slots pass records it
here and moves `counted_to`. What is going on, such as a pause or a run in progress, is counted when it is read or
when it ends. Triggers without a grid (`interval`, `once`, those that expect reports, and those that ask for more than
the floor allows) have no slots but those they were armed for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from wakeful.kernel.rules.policy import FLOOR_MS, count_passed, trigger_of, used_up
from wakeful.store.records import JobState
from wakeful.triggers import Once, Trigger

MERGED = "merged"  # a later run covers them
MISSED = "missed"  # nothing could run, and no run covers them
ALREADY_RUNNING, BACKING_OFF = "already_running", "backing_off"
PAUSED, DISABLED, REMOVED = "paused", "disabled", "removed"
REPLACED = "replaced"  # the job was given other times before they could start
CLOCK_SET = "clock_set"  # the clock was set back while they waited
BELOW_FLOOR = "below_floor"  # too close to the start before
OVER = "over"  # the job had come to its end: they were not due
_WAITS = (PAUSED, DISABLED, OVER)  # a one-shot waits for these to be over


class Passed(NamedTuple):
    """Slots of one trigger, from the first to the last of them, that passed for one reason."""

    job_id: int
    fate: str
    first_slot: int
    last_slot: int
    slots: int
    trigger: str
    again: bool = False  # its time had come before, and may have been run then: the clock was set back since


def has_grid(trigger: Trigger) -> bool:
    """Whether a trigger's slots follow from itself alone."""
    if not trigger.timed or trigger.relative or trigger.type == "once" or trigger.reports:
        return False
    return (trigger.min_gap_ms() or FLOOR_MS) >= FLOOR_MS


@lru_cache(maxsize=16_384)
def is_grid(text: str) -> bool:
    """The same, of a trigger as stored; cached by text, as many jobs are looked at together."""
    return has_grid(trigger_of(text))


def is_once(text: str) -> bool:
    """Whether a trigger as stored has one slot and no more."""
    return trigger_of(text).type == "once"


def came_meanwhile(trigger: Trigger, state: JobState, now: int) -> int | None:
    """The first slot that came and is not accounted for."""
    since = max(state.last_slot or 0, state.counted_to)
    if not has_grid(trigger) or used_up(trigger, state):
        return None
    slot = trigger.next_slot(since)
    return slot if slot is not None and slot <= now else None


def skip_slots(text: str, state: JobState, until: int, fate: str) -> tuple[JobState, tuple[Passed, ...]]:
    """The state with all slots up to a moment accounted for, and those that passed for this reason."""
    trigger = trigger_of(text)
    if trigger.type == "once" and fate in _WAITS:
        return state, ()
    if used_up(trigger, state):
        fate = OVER  # further attempts may still wait, but no slot is due any more
    passes = []
    if state.slot is not None and state.slot <= min(state.counted_to, until):
        passes.append(Passed(state.job_id, fate, state.slot, state.slot, 1, text, again=True))
    further = _on_grid(trigger, state.counted_to, until) if has_grid(trigger) else _armed(trigger, state, until)
    if further is not None:
        passes.append(Passed(state.job_id, fate, *further, text))
    return state._replace(counted_to=max(state.counted_to, until)), tuple(passes)


def skip_old_slots(text: str, state: JobState, now: int) -> tuple[JobState, tuple[Passed, ...]]:
    """The same, when another trigger replaces this one: what counts from now on is that one's.

    A one-shot that is stopped has waited for the end of that, and waits no longer.
    """
    fate, trigger = why_waiting(state, REPLACED), trigger_of(text)
    state, passed = skip_slots(text, state, now, fate)
    stopped = fate in (PAUSED, DISABLED)
    if isinstance(trigger, Once) and stopped and trigger.at_ms <= now and state.last_slot != trigger.at_ms:
        passed = (Passed(state.job_id, fate, trigger.at_ms, trigger.at_ms, 1, text),)
    return state._replace(counted_to=now), passed  # also where the clock went back: the new one has no slots before


def _on_grid(trigger: Trigger, after: int, until: int) -> tuple[int, int, int] | None:
    """The first and the last slot in (after, until], and how many there are."""
    count = trigger.count_slots(after, until) if until > after else 0
    first, last = (trigger.next_slot(after), trigger.latest_slot(after, until)) if count else (None, None)
    return None if first is None or last is None else (first, last, count)


def _armed(trigger: Trigger, state: JobState, until: int) -> tuple[int, int, int] | None:
    """As above, from the slot the job is armed for."""
    slot = state.slot
    if slot is None and trigger.type in ("every", "cron"):  # it runs: the floor leaves some of those after its own
        slot = trigger.next_slot(state.counted_to + FLOOR_MS - 1)
    if slot is None or not state.counted_to < slot <= until:
        return None
    if trigger.type == "once" or trigger.relative:
        return slot, slot, 1
    return slot, trigger.latest_slot(slot - 1, until) or slot, max(1, count_passed(trigger, slot - 1, until))


def why_waiting(state: JobState, otherwise: str) -> str:
    """Why the slots since `counted_to` have no run, as the job stands; `otherwise` where they are merely due."""
    if not state.enabled:
        return DISABLED if state.ended_at is None else OVER
    if state.paused:
        return PAUSED
    if state.run_id is not None:
        return ALREADY_RUNNING
    return otherwise
