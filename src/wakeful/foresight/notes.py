"""What a person should know about a simulation: what hurts, when, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.counting import counted
from wakeful.domains import domains
from wakeful.foresight.question import place_of
from wakeful.foresight.recording import HERD, Recorder
from wakeful.kernel.rules.holding import hold_of
from wakeful.kernel.rules.parking import GLOBAL_LANE, PLACE, labels_of
from wakeful.kernel.rules.policy import trigger_of
from wakeful.triggers import TimedTrigger, Trigger
from wakeful.triggers.durations import interval_words
from wakeful.triggers.moments import from_ms, iso, spoken
from wakeful.triggers.zones import zone

if TYPE_CHECKING:
    from wakeful.kernel.views.ledger import Tally
    from wakeful.store.interface import Transaction
    from wakeful.store.slots import Placed

DAY_MS = 86_400_000
FULL_MS = 3_600_000  # a lane that is full for this long is full for long
FULL_SHARE = 0.25  # ... and one that is full for this part of the time
MOST_SLOTS = 60  # of a job in a day: a clock change moves nothing that anyone notices beyond that
MOST_NOTES = 500


class Note(NamedTuple):
    """One thing to know; `job` is None where it is about several."""

    kind: str
    job: str | None
    at: int | None
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, "job": self.job, "at": None if self.at is None else iso(self.at), "text": self.text}


class _Seen(NamedTuple):
    """What notes are made of."""

    tx: Transaction
    recorder: Recorder
    jobs: Sequence[Placed]  # as they were when it began
    begins: int
    ends: int
    place: tzinfo
    fates: Mapping[str, Tally]  # what became of each job's times


class NotePeriod(NamedTuple):
    """From when to when, and in which zone people read it."""

    begins: int
    ends: int
    zone: str


def notes_of(
    tx: Transaction, recorder: Recorder, jobs: Sequence[Placed], span: NotePeriod, fates: Mapping[str, Tally]
) -> list[Note]:
    """All notes, the earliest first; `fates`: what became of the times of each job."""
    seen = _Seen(tx, recorder, jobs, span.begins, span.ends, place_of(span.zone), fates)
    found = [
        *_herds(seen),
        *_never(seen),
        *_disabled(seen),
        *_asking(seen),
        *_outlasting(seen),
        *_full_lanes(seen),
        *_moved_by_clocks(seen),
        *_refused(seen),
        *_ending(seen),
    ]
    return sorted(found, key=lambda note: (note.at or 0, note.kind, note.job or ""))[:MOST_NOTES]


def _herds(seen: _Seen) -> Iterator[Note]:
    most = seen.recorder.seconds.most_common(1)
    if not most or most[0][1] < HERD:
        return
    second, number = most[0]
    others = seen.recorder.herds - 1
    again = f", and {HERD} or more are due together {counted(others, 'more time')}" if others > 0 else ""
    text = (
        f"{counted(number, 'run')} fall due in the same second, {spoken(second * 1000, seen.place)}{again}. "
        "Give these jobs stagger or jitter, or other minutes."
    )
    yield Note("herd", None, second * 1000, text)


def _never(seen: _Seen) -> Iterator[Note]:
    """Jobs that are switched on and never ran, although they were due or never will be."""
    if hold_of(seen.tx.nodes.held()) is not None:
        yield Note(
            "never", None, seen.begins, "Everything is paused, so nothing starts: wakeful resume --all ends that."
        )
        return
    now = {placed.name: placed for placed in seen.tx.slots.jobs()}
    for placed in seen.jobs:
        name, state, trigger = placed.name, placed.state, trigger_of(placed.trigger)
        if not state.enabled or state.paused or name in seen.recorder.jobs or not trigger.timed:
            continue
        at = now[name].state if name in now else state
        if at.parked is not None and at.parked.startswith(PLACE):
            wanted = ", ".join(labels_of(at.parked))
            text = f"{name} never runs: no node is labelled {wanted}. Start a node with --labels {wanted}."
            yield Note("never", name, at.ready_at, text)
            continue
        if trigger.next_slot(seen.begins - 1) is None and state.ended_at is None and trigger.type != "once":
            text = f"{name} never runs: its schedule has no time in the future. Change its times, or remove it."
            yield Note("never", name, seen.begins, text)
            continue
        since = max(seen.begins - 1, placed.created_at)  # what is due when a job is made is not ahead of it
        if (missed := trigger.count_slots(since, seen.ends - 1)) and trigger.type != "once":
            first = trigger.next_slot(since)
            what = f"none of its {counted(missed, 'time')} led to a run{_why(seen.fates.get(name))}"
            yield Note(
                "never", name, first, f"{name} never runs: {what}. wakeful explain says what such a reason means."
            )


def _why(fate: Tally | None) -> str:
    """The reasons, with how often each was one."""
    reasons = {**fate.waiting, **fate.passed_over, "missed": fate.missing} if fate is not None else {}
    said = ", ".join(f"{number} {reason}" for reason, number in reasons.items() if number)
    return f" ({said})" if said else ""


def _disabled(seen: _Seen) -> Iterator[Note]:
    """Jobs that are switched off on the way because too many of their runs fail."""
    now = {placed.name: placed.state for placed in seen.tx.slots.jobs()}
    for placed in seen.jobs:
        state = now.get(placed.name, placed.state)
        if not placed.state.enabled or state.enabled or state.ended_at is not None or not state.errors:
            continue
        at = state.last_finished_at
        when = f" at {spoken(at, seen.place)}" if at is not None else ""
        text = (
            f"{placed.name} is disabled{when}, after {counted(state.errors, 'error')} in a row, and runs no more. "
            "Mend what fails, or raise max_errors."
        )
        yield Note("never", placed.name, at, text)


def _asking(seen: _Seen) -> Iterator[Note]:
    for name, at in seen.recorder.asking.items():
        when = spoken(at, seen.place)
        text = f"{name} asks for approval, first at {when}, and does not run before a person answers (wakeful approve)."
        yield Note("approval", name, at, text)


def _outlasting(seen: _Seen) -> Iterator[Note]:
    for placed in seen.jobs:
        tally = seen.recorder.jobs.get(placed.name)
        if tally is None or not tally.outlasted:
            continue
        text = (
            f"{counted(tally.outlasted, 'run')} of {placed.name} took longer than the time to the next one, so times "
            "were passed over. Run it less often, or make it quicker."
        )
        yield Note("outlasts", placed.name, tally.outlasted_at, text)


def _full_lanes(seen: _Seen) -> Iterator[Note]:
    for name, lane in seen.recorder.lanes.items():
        share = lane.full_ms / (seen.ends - seen.begins)
        if lane.size is None or (lane.longest_ms < FULL_MS and share < FULL_SHARE):
            continue
        text = (
            f"The lane {name} (size {lane.size}) is full for {interval_words(_rounded(lane.full_ms))}, "
            f"{share:.0%} of the time. {'Raise limits.max_running' if name == GLOBAL_LANE else 'Make it larger'}, or "
            "spread its jobs."
        )
        yield Note("lane_full", None, lane.longest_at, text)


def _rounded(ms: int) -> int:
    """Rounded for words: to hours where there are some, else to minutes or seconds."""
    unit = 3_600_000 if ms >= 2 * FULL_MS else 60_000 if ms >= 120_000 else 1000
    return max(unit, round(ms / unit) * unit)


def _refused(seen: _Seen) -> Iterator[Note]:
    remedies = {reason: remedy for domain in domains() for reason, remedy in domain.remedies.items()}
    for (job, reason), refusal in seen.recorder.refusals.items():
        remedy = remedies.get(reason)
        if remedy is None:
            continue
        why = f" ({refusal.detail})" if refusal.detail else ""
        times = counted(refusal.times, "start")
        when = spoken(refusal.at, seen.place)
        text = (
            f"{times} of {job} {'is' if refusal.times == 1 else 'are'} refused, first at {when}{why}. {remedy.advice}"
        )
        yield Note(remedy.note, job, refusal.at, text)


def _ending(seen: _Seen) -> Iterator[Note]:
    for placed in seen.jobs:
        trigger = trigger_of(placed.trigger)
        if not isinstance(trigger, TimedTrigger) or trigger.type == "once" or not placed.state.enabled:
            continue
        until, tally = trigger.until_ms, seen.recorder.jobs.get(placed.name)
        if until is not None and seen.begins <= until < seen.ends:
            what = f"at {spoken(until, seen.place)}, the end that it was given"
            yield Note("ends", placed.name, until, f"{placed.name} ends {what}. Change until to continue.")
        used = placed.state.slot_runs + (tally.slot_runs if tally is not None else 0)
        if trigger.max_runs is not None and tally is not None and used >= trigger.max_runs > placed.state.slot_runs:
            at = tally.slot_run_at
            what = (
                f"at {spoken(at, seen.place)}, with run {trigger.max_runs} of the {trigger.max_runs} that it may have"
            )
            yield Note("ends", placed.name, at, f"{placed.name} ends {what}. Change max_runs to continue.")


# -- clocks that are moved --------------------------------------------------------------------------------------------


def _moved_by_clocks(seen: _Seen) -> Iterator[Note]:
    for placed in seen.jobs:
        if not placed.state.enabled or placed.state.paused:
            continue
        trigger = trigger_of(placed.trigger)
        if trigger.own_zone is None or trigger.relative or not trigger.timed or trigger.type == "once":
            continue
        for at in _changes(trigger.own_zone, seen.begins, seen.ends):
            what = _moved(trigger, at, place_of(trigger.own_zone))
            if what is not None:
                when = spoken(at, place_of(trigger.own_zone))
                advice = "Choose a time that the change leaves alone, or a zone without one, such as UTC."
                yield Note(
                    "clock", placed.name, at, f"{placed.name}: the clocks change at {when}, and {what}. {advice}"
                )


def _changes(zone_name: str, begins: int, ends: int) -> Iterator[int]:
    """When the clocks of a zone change within a span."""
    second, stop, known = begins // 1000, ends // 1000, zone(zone_name)
    offset = known.segment(second)[2]
    while (second := known.segment(second)[1]) < stop:
        following = known.segment(second)[2]
        if following != offset:
            yield second * 1000
        offset = following


def _moved(trigger: Trigger, at: int, place: tzinfo) -> str | None:
    """What a change of the clocks does to a schedule, compared with the week before; None where nothing."""
    usual = _day(trigger, at - 7 * DAY_MS, place)
    changed = _day(trigger, at, place)
    if usual is None or changed is None:
        return None
    twice = sorted({text for text in changed if changed.count(text) > max(1, usual.count(text))})
    if twice:
        return f"it runs twice at {_listed(twice)}"
    gone = [text for text in usual if text not in changed]
    new = [text for text in changed if text not in usual]
    if gone and new:
        return f"it runs at {_listed(new)} instead of {_listed(gone)}"
    return f"its time at {_listed(gone)} does not exist that day" if gone else None


def _day(trigger: Trigger, at: int, place: tzinfo) -> list[str] | None:
    """The times of a schedule on the day of a moment, as clocks there show them; None where there are too many."""
    local = from_ms(at).astimezone(place)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    begins = int(midnight.timestamp() * 1000)
    ends = int((midnight + timedelta(days=1)).timestamp() * 1000)
    if trigger.count_slots(begins - 1, ends - 1) > MOST_SLOTS:
        return None
    found, slot = list[str](), trigger.next_slot(begins - 1)
    while slot is not None and slot < ends:
        found.append(f"{from_ms(slot).astimezone(place):%H:%M}")
        slot = trigger.next_slot(slot)
    return found


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts[:3]) + (", …" if len(texts) > 3 else "")
