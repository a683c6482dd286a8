"""The sums of a ledger: every slot that was due, and what became of it. Pure.

due = ran + running + waiting + passed over + merged + missing + unaccounted, and unaccounted is 0.

Sums are made in two ways. The quick one counts: what the trigger's arithmetic says against what runs and stretches say.
Where these differ, as after a clock that went back, each slot is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from wakeful.kernel.rules.parking import parked_reason
from wakeful.kernel.rules.passing import (
    BACKING_OFF,
    BELOW_FLOOR,
    DISABLED,
    MERGED,
    MISSED,
    OVER,
    PAUSED,
    is_grid,
    is_once,
    why_waiting,
)
from wakeful.kernel.rules.policy import FLOOR_MS, trigger_of, used_up
from wakeful.kernel.rules.trigger_history import TriggerHistory, members_of
from wakeful.store.records import JobState
from wakeful.store.stretches import RAN, SlotSpan, Stretch
from wakeful.triggers import Once

DUE = "due"  # waits for nothing but to be started


class SlotDisposition(NamedTuple):
    """What became of a slot: ran, running, waiting, passed_over, merged, missing, unaccounted or over; and why."""

    what: str
    why: str = ""


RUNNING, UNACCOUNTED, NOT_DUE = SlotDisposition("running"), SlotDisposition("unaccounted"), SlotDisposition(OVER)
_OF_STRETCHES = {
    RAN: SlotDisposition("ran"),
    MERGED: SlotDisposition("merged"),
    MISSED: SlotDisposition("missing"),
    OVER: NOT_DUE,
}
Sums = Counter[SlotDisposition]


class SlotRun(NamedTuple):
    """A run that was made for a slot."""

    slot: int
    attempt: int
    status: str
    started_at: int | None
    reason: str


class Account(NamedTuple):
    """What a ledger is made from, for one job."""

    state: JobState
    history: TriggerHistory
    trigger: str
    created_at: int
    span: SlotSpan  # the requested span; it ends now or before
    now: int
    waits: str = DUE  # what a slot waits for whose time has come, and that is in no line


def fate_of(stretch_fate: str) -> SlotDisposition:
    """What a stretch says about its slots."""
    return _OF_STRETCHES.get(stretch_fate) or SlotDisposition("passed_over", stretch_fate)


def fate_of_runs(runs: Sequence[SlotRun], kept: SlotDisposition | None = None) -> SlotDisposition:
    """What the attempts at one slot say about it; `kept`: what a stretch says, where the first ones were pruned."""
    last = max(runs, key=lambda run: run.attempt)
    if last.status in ("active", "waiting"):
        return RUNNING
    if last.status == "queued":
        return SlotDisposition("waiting", last.reason)
    if kept is not None and all(run.attempt > 1 for run in runs):
        return kept
    return SlotDisposition("ran") if any(run.started_at is not None for run in runs) else SlotDisposition("missing")


# -- what is going on, and is written when it ends ---------------------------------------------------------------------


class Open(NamedTuple):
    """Slots after one moment up to another that share a fate for now: all of the trigger's, or the one given."""

    span: SlotSpan
    fate: SlotDisposition
    slot: int | None = None

    def overrides(self, kept: SlotDisposition | None) -> bool:
        """Whether its fate replaces the one that is kept for one of its slots."""
        if kept is None or kept == UNACCOUNTED:
            return True
        return self.slot is not None and self.fate.what == "waiting" and kept != SlotDisposition("ran")


def open_parts(account: Account) -> list[Open]:
    """What becomes of the slots that nothing is written about yet."""
    state, now = account.state, account.now
    whole = SlotSpan(state.counted_to, now)
    pending = state.slot if state.slot is not None and state.slot <= now else None
    if not is_grid(account.trigger):
        slot, fate = pending, SlotDisposition("waiting", _waits_for(account))
        once = trigger_of(account.trigger)
        if isinstance(once, Once) and state.slot is None and once.at_ms <= now and state.last_slot != once.at_ms:
            slot, fate = once.at_ms, _stopped(state)
        return [] if slot is None or fate == NOT_DUE else [Open(SlotSpan(slot - 1, slot), fate, slot)]
    stopped = NOT_DUE if used_up(trigger_of(account.trigger), state) else _stopped(state)
    if stopped == UNACCOUNTED and state.slot is None and state.queued:
        stopped = SlotDisposition("waiting", _waits_for(account))  # for a run that covers them, and waits itself
    if stopped != UNACCOUNTED:
        return [Open(whole, stopped)]
    parts = []
    if pending is not None:
        waits = SlotDisposition("waiting", _waits_for(account))
        parts.append(Open(SlotSpan(max(state.counted_to, pending - 1), now), waits))
        if pending <= state.counted_to:
            parts.append(Open(SlotSpan(pending - 1, pending), waits, pending))
    if state.last_slot is not None:
        # Its trigger was changed just after a start: what lies within the floor is not run.
        close = min(state.last_slot + FLOOR_MS - 1, (state.slot or now + 1) - 1, now)
        parts.append(Open(SlotSpan(state.counted_to, close), SlotDisposition("passed_over", BELOW_FLOOR)))
    return parts


def _stopped(state: JobState) -> SlotDisposition:
    """What becomes of the slots of a job that is stopped or running; unaccounted where it is neither."""
    why = why_waiting(state, "")
    if why in (PAUSED, DISABLED):
        return SlotDisposition("passed_over", why)
    if why == OVER:
        return NOT_DUE
    return SlotDisposition("waiting", why) if why else UNACCOUNTED


def _waits_for(account: Account) -> str:
    state, now = account.state, account.now
    if state.parked is not None:
        return parked_reason(state.parked)
    if state.backoff_until is not None and state.backoff_until > now:
        return BACKING_OFF
    return "delayed" if state.next_at is not None and state.next_at > now else account.waits


# -- the quick way -----------------------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """What the store counted of one job in a span."""

    firsts: int = 0  # first attempts
    unstarted: int = 0  # of these, how many were never started
    opened: Sequence[SlotRun] = ()  # attempts that are not done
    sums: Sequence[tuple[str, int]] = ()  # (fate, slots) of stretches that lie in it as a whole
    cut: Sequence[Stretch] = ()  # those that do not


def quick_sums(account: Account, counted: Counted) -> Sums | None:
    """The sums by counting; None where they do not agree with the trigger, and each slot must be looked at."""
    found = _accounted(account, counted)
    if found is None:
        return None
    parts = account.history.parts(account.span)
    grids = [is_grid(trigger) for trigger, _ in parts]
    if not all(grids):
        twice = is_once(account.trigger) and found.total() > 1  # it was passed over, and came again
        return found if len(parts) == 1 and not twice else None
    return found if due_slots(account) == found.total() else None


def due_slots(account: Account) -> int:
    """How many slots the triggers of an account had in its span; none where they have no grid."""
    return sum(
        _count(trigger, max(part.after, account.created_at), part.until)
        for trigger, part in account.history.parts(account.span)
        if is_grid(trigger)
    )


def _accounted(account: Account, counted: Counted) -> Sums | None:
    found: Sums = Counter()
    found[SlotDisposition("ran")] = counted.firsts - counted.unstarted - len(counted.opened)
    found[SlotDisposition("missing")] = counted.unstarted
    for run in counted.opened:
        found[fate_of_runs([run])] += 1
    for fate, slots in counted.sums:
        found[fate_of(fate)] += slots
    for stretch in counted.cut:
        slots_in = _slots_in(stretch, account)
        if slots_in is None:
            return None
        found[fate_of(stretch.fate)] += slots_in
    for part in open_parts(account):
        after, until = max(part.span.after, account.span.after), min(part.span.until, account.span.until)
        if part.slot is not None:
            found[part.fate] += after < part.slot <= until
        elif after < until:
            found[part.fate] += _count(account.trigger, after, until)
    return +found


def _slots_in(stretch: Stretch, account: Account) -> int | None:
    """How many slots of a stretch lie in the span."""
    span, listed = account.span, stretch.listed()
    if listed is not None:
        return sum(span.after < slot <= span.until for slot in listed)
    text = account.history.trigger_behind(stretch)
    if not is_grid(text):
        return None
    return _count(text, max(stretch.first_slot - 1, span.after), min(stretch.last_slot, span.until))


@lru_cache(maxsize=16_384)
def _count(trigger: str, after: int, until: int) -> int:
    """Cached by text: many jobs share a trigger."""
    return trigger_of(trigger).count_slots(after, until) if after < until else 0


# -- slot by slot ------------------------------------------------------------------------------------------------------


class Listed(NamedTuple):
    """What became of each slot; `unlisted`: of further ones it is only known how many there are."""

    fates: dict[int, SlotDisposition]
    unlisted: Sums

    def sums(self) -> Sums:
        return Counter(self.fates.values()) + self.unlisted


def list_slots(account: Account, runs: Iterable[SlotRun], stretches: Sequence[Stretch]) -> Listed:
    """What became of each slot of a span. A run says more than a stretch, and that it ran more than why not.

    That a slot waits says more than why it was passed over: a one-shot that was resumed comes again.
    """
    span, unlisted = account.span, Sums()
    fates = {
        slot: UNACCOUNTED
        for trigger, part in account.history.parts(span)
        if is_grid(trigger)
        for slot in _slots(trigger, SlotSpan(max(part.after, account.created_at), part.until))
    }
    for stretch in sorted(stretches, key=lambda item: item.fate == RAN):
        slots = members_of(stretch, account.history.trigger_behind(stretch))
        if slots is None:
            unlisted[fate_of(stretch.fate)] += stretch.slots
        else:
            fates |= {slot: fate_of(stretch.fate) for slot in slots if span.after < slot <= span.until}
    for part in open_parts(account):
        inside = SlotSpan(max(part.span.after, span.after), min(part.span.until, span.until))
        slots = [part.slot] if part.slot is not None else list(_slots(account.trigger, inside))
        fates |= {
            slot: part.fate for slot in slots if inside.after < slot <= inside.until and part.overrides(fates.get(slot))
        }
    by_slot: dict[int, list[SlotRun]] = {}
    for run in runs:
        by_slot.setdefault(run.slot, []).append(run)
    inside_span = {slot: found for slot, found in by_slot.items() if span.after < slot <= span.until}
    fates |= {slot: fate_of_runs(found, fates.get(slot)) for slot, found in inside_span.items()}
    return Listed(fates, +unlisted)


def _slots(trigger: str, span: SlotSpan) -> Iterator[int]:
    known = trigger_of(trigger)
    slot = known.next_slot(span.after) if span.after < span.until else None
    while slot is not None and slot <= span.until:
        yield slot
        slot = known.next_slot(slot)
