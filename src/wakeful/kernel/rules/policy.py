"""The rules of time: which slot is next, what a late one is worth, how errors delay.

Pure functions of records and a `now`. They return decisions; `claim` and `settle` write them down.

How often a job may run that was not made by the operator: the last author of a job's trigger sets the trust in it.
What came over the API or from an agent carries the option `bounded` and obeys the server's minimum interval: it is
refused when it is written, and should the limit be raised later, or the record be changed behind our back, its slots
are passed over when they come. What counts is the smallest gap between two slots that the trigger allows, ever, by the
clock on the wall: neither jitter and stagger, which only move a start within its period, nor the hour a clock change
takes away once a year.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from wakeful.counting import counted
from wakeful.errors import TooOften
from wakeful.kernel.rules.options import OptionValues
from wakeful.store.records import JobState, RunRow
from wakeful.triggers import Every, Interval, Once, TimedTrigger, Trigger, trigger_from_data
from wakeful.triggers.active_hours import ActiveHours
from wakeful.triggers.durations import format_interval
from wakeful.triggers.moments import iso

FLOOR_MS = 10_000
#: A start later than this was missed, not merely slow: the loop never sleeps longer.
LATE_MS = 60_000
#: A job is stored no later than this after it was read what it is to be.
STORING_MS = 10_000
MAX_NOTES = 8
PAUSED_NOTE = "paused: "
_WRITE = json.JSONEncoder(separators=(",", ":")).encode  # made once: `json.dumps` makes one for every call


@lru_cache(maxsize=8192)
def trigger_of(text: str) -> Trigger:
    """The trigger behind stored JSON. Cached by text: triggers are values, and many jobs share one."""
    return trigger_from_data(json.loads(text))


def trigger_text(trigger: Trigger) -> str:
    """A trigger as stored."""
    return _WRITE(trigger.to_data())


class Next(NamedTuple):
    """When a job starts next: its slot and the moment; or why there is no next start."""

    slot: int | None
    at: int | None
    ended: str | None = None


NO_TIME_OF_ITS_OWN = Next(None, None)


def next_start(trigger: Trigger, state: JobState, now: int, rand: float, *, completed: int | None = None) -> Next:
    """The next start strictly after `now`, never for a slot that was run, never closer than the floor.

    `completed`: when the last run ended, where that is not in `state` yet.
    """
    if not isinstance(trigger, TimedTrigger):
        return NO_TIME_OF_ITS_OWN
    if used_up(trigger, state):
        return Next(None, None, f"it has run {counted(state.slot_runs, 'time')}, as often as max_runs allows")
    if isinstance(trigger, Once):
        at = trigger.at_ms
        if state.last_slot is not None and at <= state.last_slot:
            return Next(None, None, "")  # nothing to explain: that is what `once` means
        return Next(at, max(now, trigger.due_ms(at, job_id=state.job_id, rand=rand)))
    slot = _next_slot(trigger, state, now, completed or state.last_finished_at)
    if slot is None:
        return Next(None, None, "its trigger has no time in the future")
    return Next(slot, trigger.due_ms(slot, job_id=state.job_id, rand=rand))


def used_up(trigger: Trigger, state: JobState) -> bool:
    """Whether the job has run as often as `max_runs` allows."""
    most = trigger.max_runs if isinstance(trigger, TimedTrigger) else None
    return most is not None and state.slot_runs >= most


def _next_slot(trigger: Trigger, state: JobState, now: int, completed: int | None) -> int | None:
    last = state.last_slot
    if trigger.relative:
        if completed is not None and completed > now:
            completed = now  # the clock went back: count from here rather than wait for the old time to come again
        slot = trigger.next_slot(now, completed)
        if slot is None or state.last_run_at is None or state.last_run_at > now:
            return slot
        return max(slot, state.last_run_at + FLOOR_MS)
    if last is None:
        return trigger.next_slot(now)
    if last <= now:
        return trigger.next_slot(max(now, last + FLOOR_MS - 1))
    # The clock went back behind a slot that was run. Within one period: be silent until it has passed. Further: go on
    # from now; slots on record are left out when their turn comes.
    after_now = trigger.next_slot(now)
    if after_now is None or after_now >= last:
        return trigger.next_slot(last + FLOOR_MS - 1)
    return after_now


def too_late(options: OptionValues, state: JobState, run: RunRow, now: int) -> bool:
    """Whether a further attempt that should have begun while nothing ran is one that `catch_up` lets go."""
    ready = state.ready_at if state.ready_at is not None else now
    if ready - run.due_at <= LATE_MS or options.catch_up == "once":
        return False
    since = run.slot if run.slot is not None else run.due_at
    return not catches_up(options, since, now)


def catches_up(options: OptionValues, slot: int, now: int) -> bool:
    """Whether a slot whose time was missed is still to be covered by a run."""
    return options.catch_up == "once" or (isinstance(options.catch_up, int) and now - slot <= options.catch_up)


def upcoming_starts(
    trigger: Trigger, options: OptionValues, state: JobState, now: int, hours: ActiveHours | None = None
) -> Iterator[int]:
    """The starts by time of a job that is not stopped, in order, as if each run ended in the moment it began.

    `hours`: a start that is due outside of these waits for them, and the slots until then with it.

    Slots that will not fire are left out: slots below the floor or beyond `max_runs`, and one that `catch_up` lets
    go. Jitter of later starts is not known yet, and counts as none.
    """
    coming = Next(state.slot, state.next_at)
    if state.run_id is not None and state.next_at is None:
        coming = next_start(trigger, state, now, 0.0, completed=now)
    elif _is_skipped(trigger, options, state, now):
        state = state._replace(last_slot=max(state.slot or 0, state.last_slot or 0), last_run_at=now)
        coming = next_start(trigger, state, now, 0.0, completed=now)
    while coming.slot is not None and coming.at is not None:
        at, last_slot = max(coming.at, now), max(coming.slot, state.last_slot or 0)
        if hours is None or hours.is_open(at):
            yield coming.at
        else:
            at = hours.opens(at)
            yield at
        state = state._replace(last_slot=last_slot, last_run_at=at, slot_runs=state.slot_runs + 1)
        coming = next_start(trigger, state, at, 0.0, completed=at)


def _is_skipped(trigger: Trigger, options: OptionValues, state: JobState, now: int) -> bool:
    """Whether the slot the job is armed for has passed, and will not be caught up."""
    if state.slot is None or state.next_at is None or state.next_at > now:
        return False
    return due_slot(trigger, options, state, now).slot is None


def spaced_slots(trigger: Trigger, after: int) -> Iterator[int]:
    """The slots of a trigger after a moment that the floor leaves."""
    slot = trigger.next_slot(after)
    while slot is not None:
        yield slot
        slot = trigger.next_slot(slot + FLOOR_MS - 1, slot)


def begin_now(trigger: Trigger, stored: Collection[int], now: int, *, placed: bool) -> Trigger | None:
    """The trigger with its first time by the present clock; None where it is not about the moment it was stored.

    `stored`: when that may have been, by a clock that was ahead. `placed`: or up to a period before. One that was
    brought to an earlier clock before lies whole periods before the moment it was stored.
    """
    if isinstance(trigger, Every) and trigger.anchor_ms is not None and trigger.anchor_ms > now:
        reach, anchor = trigger.interval_ms if placed else 1, trigger.anchor_ms
        if any(moment >= anchor and (moment - anchor) % trigger.interval_ms < reach for moment in stored):
            return trigger.anchored_before(now)
    if isinstance(trigger, Interval) and trigger.start_ms is not None:
        begun = trigger.start_ms - trigger.interval_ms  # the first time of a schedule that begins with a wait
        if begun > now and any(0 <= moment - begun < STORING_MS for moment in stored):
            return trigger.starting(now + trigger.interval_ms)
    return None


class Due(NamedTuple):
    """What a due slot is worth now: the slot to run (None: nothing), and how many went by."""

    slot: int | None
    reason: str
    passed: int  # slots that will have no run of their own
    why: str  # the reason they are counted under


def due_slot(trigger: Trigger, options: OptionValues, state: JobState, now: int) -> Due:
    """Decide about the slot in `state` whose time has come: run it, run a later one for all, or let it go."""
    slot = state.slot
    assert slot is not None  # noqa: S101 - the caller looked
    if trigger.type == "once" or trigger.relative:
        latest, passed = slot, 0
    else:
        latest, passed = _latest(trigger, slot, now)
    ready = state.ready_at if state.ready_at is not None else now
    late = ready - (state.next_at if state.next_at is not None else slot)
    why = "backing_off" if state.backoff_until is not None else "missed"
    if late <= LATE_MS or trigger.relative:
        return Due(latest, "schedule", passed, why)
    if catches_up(options, latest, now):
        return Due(latest, "catch_up", passed, why)
    return Due(None, "catch_up", passed + 1, "missed")


def _latest(trigger: Trigger, slot: int, now: int) -> tuple[int, int]:
    """The latest slot not after now, and how many from `slot` on come before it."""
    if now - slot < FLOOR_MS:
        return slot, 0
    latest = trigger.latest_slot(slot - 1, now)
    if latest is None or latest <= slot:
        return slot, 0
    return latest, count_passed(trigger, slot, latest)


def count_passed(trigger: Trigger, after: int, until: int) -> int:
    """How many starts the trigger and the floor would have allowed in (after, until]."""
    count = trigger.count_slots(after, until) if until > after else 0
    if count == 0 or (trigger.min_gap_ms() or FLOOR_MS) >= FLOOR_MS:
        return count
    return min(count, (until - after) // FLOOR_MS)


def backoff_delay(options: OptionValues, errors: int) -> int:
    """How long after the n-th error in a row the next start must wait at least."""
    ladder = options.backoff
    return ladder[min(errors, len(ladder)) - 1]


def alarm(state: JobState, queued_at: int | None = None) -> int | None:
    """When the engine must look at an idle job: its next start, or the earliest run that waits as a row."""
    next_at = state.next_at if state.enabled and not state.paused else None
    if queued_at is None:
        return next_at
    return queued_at if next_at is None else min(queued_at, next_at)


def armed_to_replace(trigger: Trigger, options: OptionValues, state: JobState, now: int, rand: float) -> JobState:
    """A job in progress, with the alarm for the slot that replaces its run, if `overlap` says that one does."""
    replaces = options.overlap == "cancel_other" and trigger.type in ("every", "cron")
    if not replaces or state.paused or not state.enabled:
        return state._replace(due_at=None)
    coming = next_start(trigger, state, now, rand)
    if state.slot is None:
        state = state._replace(slot=coming.slot, next_at=coming.at)
    # One that was due before the run began only waits for its end.
    return state._replace(due_at=state.next_at if (state.next_at or 0) > now else coming.at)


def rest(trigger: Trigger, state: JobState, now: int) -> JobState:
    """An idle job with nothing armed and nothing queued will never run again by time: it is over."""
    nothing = state.next_at is None and not state.queued and state.run_id is None
    if nothing and trigger.timed and state.enabled and not state.paused:
        return end(state, "", now)
    return state


def thinned_note(trigger: Trigger) -> str | None:
    """The note for a job whose trigger asks for more than the kernel gives."""
    gap = trigger.min_gap_ms() if trigger.timed else None
    if gap is None or gap >= FLOOR_MS:
        return None
    floor = format_interval(FLOOR_MS)
    return f"asks for a start every {gap / 1000:g}s; starts closer than {floor} are left out"


def add_note(notes: str | None, note: str | None) -> str | None:
    """Notes with one more, once, the newest last."""
    if note is None:
        return notes
    known: list[str] = json.loads(notes) if notes else []
    kept = [item for item in known if item != note]
    return json.dumps([*kept, note][-MAX_NOTES:])


def pause_note(said: str | None) -> str | None:
    """The note of a job that a person paused with these words."""
    return f"{PAUSED_NOTE}{said}" if said else None


def notes_of_pause(state: JobState) -> str | None:
    """The notes that say why a job is paused: they stay as long as it is paused."""
    kept = [item for item in _notes(state) if item.startswith(PAUSED_NOTE)] if state.paused else []
    return json.dumps(kept) if kept else None


def without_notes_of_pause(state: JobState) -> str | None:
    """The other notes."""
    kept = [item for item in _notes(state) if not item.startswith(PAUSED_NOTE)]
    return json.dumps(kept) if kept else None


def _notes(state: JobState) -> list[str]:
    found: list[str] = json.loads(state.notes) if state.notes else []
    return found


def end(state: JobState, ended: str, now: int) -> JobState:
    """Nothing more to come: the job is over and says why."""
    return switch_off(state, ended, now)._replace(ended_at=now)


def switch_off(state: JobState, ended: str, now: int) -> JobState:
    """The job is disabled and says why."""
    note = f"finished {iso(now)}: {ended}" if ended else None
    return state._replace(
        enabled=0, due_at=None, next_at=None, slot=None, parked=None, ready_at=None, notes=add_note(state.notes, note)
    )


MIN_INTERVAL_MS = 3_600_000
BELOW = "below_min_interval"  # the reason a slot is refused for

_SECOND, _MINUTE, _HOUR = 1_000, 60_000, 3_600_000


def too_often(trigger: Trigger, limit_ms: int | None) -> bool:
    """Whether two slots of the trigger can ever lie closer together than the limit; None and 0 are no limit."""
    gap = trigger.min_gap_ms() if trigger.timed else None
    return bool(limit_ms) and gap is not None and gap < (limit_ms or 0)


def refuse_too_often(trigger: Trigger, limit_ms: int | None) -> None:
    """TooOften, with the limit in words, when the trigger asks for more than the limit gives."""
    if too_often(trigger, limit_ms):
        raise TooOften(limit_words(limit_ms or 0))


def limit_words(limit_ms: int) -> str:
    """The limit as people read it: "Minimum interval is 60 minutes (1 hour)"."""
    if limit_ms % _MINUTE:
        return f"Minimum interval is {_counted(limit_ms / _SECOND, 'second')}"
    hours = f" ({_counted(limit_ms / _HOUR, 'hour')})" if limit_ms % _HOUR == 0 else ""
    return f"Minimum interval is {_counted(limit_ms / _MINUTE, 'minute')}{hours}"


def _counted(count: float, noun: str) -> str:
    return f"{count:.15g} {noun}" if count == 1 else f"{count:.15g} {noun}s"
