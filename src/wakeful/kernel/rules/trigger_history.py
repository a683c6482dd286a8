"""Which trigger a job had when, and which slots a stretch has. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from wakeful.kernel.rules.passing import has_grid
from wakeful.kernel.rules.policy import trigger_of
from wakeful.store.stretches import PastTrigger, SlotSpan, Stretch


def next_key(past: Sequence[PastTrigger]) -> int:
    """The `since` of the trigger after these: when it came into force, and more than any before it had."""
    return max((max(item.until, item.since + 1) for item in past), default=0)


class TriggerHistory:
    """Which trigger a job had when, as far as it is kept."""

    def __init__(self, past: Sequence[PastTrigger], current: str) -> None:
        ordered = sorted(past, key=lambda item: (item.since, item.until))
        ends = [item.until for item in ordered]
        for index in range(len(ends) - 2, -1, -1):
            ends[index] = min(ends[index], ends[index + 1])  # the clock went back between them
        self._ends = ends
        self._triggers = [*(item.trigger for item in ordered), current]
        self._keys = [*(item.since for item in ordered), next_key(past)]

    def trigger_at(self, slot: int) -> str:
        """The trigger whose slot this is."""
        return self._triggers[bisect_left(self._ends, slot)]

    def key_at(self, slot: int) -> int:
        """The `since` of a stretch that has this slot."""
        return self._keys[bisect_left(self._ends, slot)]

    def trigger_behind(self, stretch: Stretch) -> str:
        """The trigger whose slots a stretch has, also where another one has its time since the clock went back."""
        if self.key_at(stretch.first_slot) != stretch.since and stretch.since in self._keys:
            return self._triggers[self._keys.index(stretch.since)]
        return self.trigger_at(stretch.first_slot)

    def current_since(self) -> int:
        """Since when the current trigger is in force; 0 for a job's first."""
        return self._ends[-1] if self._ends else 0

    def parts(self, span: SlotSpan) -> list[tuple[str, SlotSpan]]:
        """The triggers in force during a span, in order, each with its part of it."""
        begins, ends = [-1, *self._ends], [*self._ends, span.until]
        cut = [SlotSpan(max(begin, span.after), min(end, span.until)) for begin, end in zip(begins, ends, strict=True)]
        return [(trigger, part) for trigger, part in zip(self._triggers, cut, strict=True) if part.after < part.until]


def members_of(stretch: Stretch, trigger: str) -> list[int] | None:
    """The slots of a stretch, where they can be known: its pattern's, or its first and its trigger's after that."""
    listed = stretch.listed()
    known = trigger_of(trigger)
    if listed is not None or not has_grid(known):
        return listed
    slots, slot = [stretch.first_slot], known.next_slot(stretch.first_slot)
    while slot is not None and slot <= stretch.last_slot and len(slots) <= stretch.slots:
        slots.append(slot)
        slot = known.next_slot(slot)
    return slots if len(slots) == stretch.slots else None


def has_slot(stretch: Stretch, slot: int, history: TriggerHistory) -> bool:
    """Whether a stretch that encloses a slot has it."""
    listed = stretch.listed()
    if listed is not None:
        return slot in listed
    known = trigger_of(history.trigger_behind(stretch))
    return not known.relative and (slot == stretch.first_slot or known.next_slot(slot - 1) == slot)
