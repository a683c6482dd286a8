"""What every trigger is: a value that says when, in two languages.

People use aware datetimes (`next_after`, `upcoming`, `describe`). The kernel uses whole milliseconds (`next_slot`,
`due_ms`, `latest_slot`, `count_slots`, …). A *slot* is a nominal time; `due_ms` says when its run really starts.
No trigger asks a clock: the same question always has the same answer.
"""

# ruff: noqa: ARG002 - all triggers have one shape, and not each needs every argument

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

from wakeful.errors import InvalidTrigger
from wakeful.triggers.modifiers import PLAIN, Modifiers
from wakeful.triggers.moments import LAST_MS, from_ms, to_ms
from wakeful.triggers.values import Value
from wakeful.triggers.zones import settled_zone

if TYPE_CHECKING:
    from wakeful.triggers.active_hours import ActiveHours


class Trigger(Value):
    """A trigger with no time of its own; timed triggers override its methods."""

    __slots__ = ()
    type: ClassVar[str]
    timed: ClassVar[bool] = False
    reports: ClassVar[bool] = False
    """Whether its runs happen elsewhere and are reported: a slot is when a report is expected, and nothing starts."""

    @property
    def relative(self) -> bool:
        """Whether its next time counts from the end of the last run, so that no slot of it is ever missed."""
        return self.type == "interval"

    # For people

    def next_after(self, now: datetime, last_completed: datetime | None = None) -> datetime | None:
        """The next time strictly after `now` (UTC), or None when there is none.

        `last_completed` matters to `Interval` alone, which may also answer `now` itself.
        """
        last = None if last_completed is None else to_ms(last_completed, "last_completed")
        slot = self.next_slot(to_ms(now), last)
        return None if slot is None else from_ms(slot)

    def upcoming(self, after: datetime, n: int) -> list[datetime]:
        """The next `n` times after a moment (UTC), fewer where the trigger ends sooner."""
        return [from_ms(slot) for slot in self.upcoming_slots(to_ms(after, "after"), n)]

    def describe(self) -> str:
        """The trigger in plain words, which `when` reads back as an equal trigger."""
        raise NotImplementedError

    def brief(self) -> str:
        """The words for a list: without the moment from which `Every` counts, which is mostly that of its storing."""
        return self.describe()

    def to_data(self) -> dict[str, Any]:
        """Plain data that `trigger_from_data` turns back into an equal trigger."""
        return {"type": self.type}

    # For the kernel

    @property
    def lacks(self) -> str | None:
        """What must be added before a job can have it; None where nothing is missing."""
        return None

    @property
    def unended(self) -> str | None:
        """Why a run has failed whose start was reported, and whose end was not in time; None where none is reported."""
        return None

    def expects(self, slot: str, deadline: str, *, down: bool) -> str | None:
        """When a report is expected and what its absence means, in a sentence; None where none is expected."""
        return None

    @property
    def own_zone(self) -> str | None:
        """The zone that it names, which its times are shown in."""
        return None

    def next_slot(self, after_ms: int, last_completed_ms: int | None = None) -> int | None:
        """The first slot strictly after a moment."""
        return None

    def upcoming_slots(self, after_ms: int, n: int) -> list[int]:
        """The next `n` slots, as if each run ended in the moment it began."""
        return []

    def due_ms(self, slot: int, *, job_id: int, rand: float) -> int:
        """When the run of a slot starts: never before the slot. `rand` lies in [0, 1)."""
        return slot

    def latest_slot(self, after_ms: int, until_ms: int) -> int | None:
        """The latest slot in (after, until]."""
        return None

    def count_slots(self, after_ms: int, until_ms: int) -> int:
        """How many slots lie in (after, until]."""
        return 0

    def count_each(self, bounds: Sequence[int]) -> list[int]:
        """How many slots lie between each two moments that follow each other, as `count_slots` counts them."""
        return [self.count_slots(after, until) for after, until in pairwise(bounds)]

    def closed_slots(self, after_ms: int, until_ms: int) -> int:
        """How many times in (after, until] were passed over for lying outside the active hours."""
        return 0

    def period_at(self, slot: int) -> int | None:
        """The time from a slot to the one after it."""
        return None

    def min_gap_ms(self) -> int | None:
        """The shortest time that can ever lie between two slots, by the clock on the wall."""
        return None

    def resolved(self, now_ms: int, zone: str, keep: Trigger | None = None) -> Trigger:
        """The trigger as a job stores it: an anchor or zone that was left open is settled.

        `keep` is the stored trigger. Where this trigger means the same, `keep` is the answer, so that writing a
        job again does not move its times.
        """
        return self


class TimedTrigger(Trigger):
    """A trigger with a rhythm of its own (`_next`, `_count`) and modifiers on top."""

    __slots__ = ("modifiers", "tz")
    timed = True
    modifiers: Modifiers
    tz: str | None

    @property
    def own_zone(self) -> str | None:
        return self.tz or (self.active_hours.timezone if self.active_hours is not None else None)

    def _next(self, after: int) -> int | None:
        """The first slot after a moment, modifiers aside."""
        raise NotImplementedError

    def _count(self, after: int, until: int) -> int:
        """How many slots lie in (after, until], modifiers aside."""
        raise NotImplementedError

    def _count_each(self, bounds: Sequence[int]) -> list[int]:
        """The same between each two moments that follow each other."""
        return [self._count(after, until) for after, until in pairwise(bounds)]

    def _rhythm(self) -> str:
        """The rhythm in plain words."""
        raise NotImplementedError

    def _rhythm_data(self) -> dict[str, Any]:
        """The rhythm as plain data."""
        raise NotImplementedError

    def next_slot(self, after_ms: int, last_completed_ms: int | None = None) -> int | None:
        if self.modifiers is PLAIN:
            return self._next(after_ms)
        return self.modifiers.first(self._next, after_ms, self.tz)

    def upcoming_slots(self, after_ms: int, n: int) -> list[int]:
        slots: list[int] = []
        slot = self.next_slot(after_ms)
        wanted = _whole(n) if self.max_runs is None else min(_whole(n), self.max_runs)
        while slot is not None and len(slots) < wanted:
            slots.append(slot)
            slot = self.next_slot(slot, slot)
        return slots

    def due_ms(self, slot: int, *, job_id: int, rand: float) -> int:
        if self.modifiers is PLAIN:
            return slot
        return slot + self.modifiers.delay(job_id, rand, self._period(slot) if self.jitter else 0)

    def latest_slot(self, after_ms: int, until_ms: int) -> int | None:
        low = self.next_slot(after_ms)
        if low is None or low > until_ms:
            return None
        # Halving rather than walking: a month offline may hold 40,000 slots. `low` is a slot, after `high` is none;
        # the first question is what follows `low`, because mostly nothing does.
        high, probe = until_ms, low
        while low < high:
            slot = self.next_slot(probe)
            if slot is None or slot > until_ms:
                high = probe
            else:
                low = slot
            probe = (low + high) // 2
        return low

    def count_slots(self, after_ms: int, until_ms: int) -> int:
        return self._count_within(self.modifiers, after_ms, until_ms)

    def count_each(self, bounds: Sequence[int]) -> list[int]:
        return self._count_each(bounds) if self.modifiers is PLAIN else super().count_each(bounds)

    def closed_slots(self, after_ms: int, until_ms: int) -> int:
        if self.active_hours is None:
            return 0
        every = self._count_within(self.modifiers.without_hours(), after_ms, until_ms)
        return every - self.count_slots(after_ms, until_ms)

    def period_at(self, slot: int) -> int | None:
        following = self.next_slot(slot)
        return None if following is None else following - slot

    def resolved(self, now_ms: int, zone: str, keep: Trigger | None = None) -> Trigger:
        if isinstance(keep, type(self)) and self._settled(self._origin(keep, now_ms), _zone_of(keep, zone)) == keep:
            return keep
        return self._settled(now_ms, zone)

    def describe(self) -> str:
        return self._described(self._rhythm())

    def _described(self, rhythm: str) -> str:
        zone = [self.tz] if self.tz else []
        return ", ".join([rhythm, *zone, *self.modifiers.describe(self.tz)])

    def to_data(self) -> dict[str, Any]:
        zone = {"tz": self.tz} if self.tz else {}
        return {"type": self.type, **self._rhythm_data(), **zone, **self.modifiers.to_data()}

    @property
    def jitter(self) -> float:
        return self.modifiers.jitter

    @property
    def stagger_ms(self) -> int:
        return self.modifiers.stagger_ms

    @property
    def active_hours(self) -> ActiveHours | None:
        return self.modifiers.active_hours

    @property
    def start_ms(self) -> int | None:
        return self.modifiers.start_ms

    @property
    def until_ms(self) -> int | None:
        return self.modifiers.until_ms

    @property
    def max_runs(self) -> int | None:
        return self.modifiers.max_runs

    @property
    def except_dates(self) -> tuple[date, ...]:
        return self.modifiers.except_dates

    def _count_within(self, modifiers: Modifiers, after: int, until: int) -> int:
        return sum(self._count(begin, end) for begin, end in modifiers.spans(after, until, self.tz) if begin < end)

    def _period(self, slot: int) -> int:
        """What jitter is a part of: the gap to the following slot, closed ones included."""
        following = self._next(slot)
        return 0 if following is None else following - slot

    def _settled(self, now_ms: int, zone: str) -> Self:
        """With everything that was left open filled in; except dates need a zone to be dates in."""
        return self._replaced(tz=self._settled_tz(zone), modifiers=self.modifiers.resolved(zone))

    def _settled_tz(self, zone: str) -> str | None:
        return settled_zone(self.tz, zone) if self.tz or self.modifiers.days else None

    def _origin(self, stored: Trigger, now_ms: int) -> int:
        """The moment at which a stored trigger was settled, as far as it still shows."""
        return now_ms

    def __repr__(self) -> str:
        data = self.to_data()
        del data["type"]
        first = data.pop(next(iter(data)))
        rest = "".join(f", {'except_dates' if name == 'except' else name}={value!r}" for name, value in data.items())
        return f"{type(self).__name__}({first!r}{rest})"


def _zone_of(stored: TimedTrigger, default: str) -> str:
    """The zone with which a stored trigger was settled, as far as it still shows."""
    hours = stored.active_hours
    return stored.tz or (hours.timezone if hours is not None else None) or default


def within_reach(slot: int) -> int | None:
    """The slot, or None where it lies beyond the last date that can be written."""
    return slot if slot < LAST_MS else None


def _whole(n: object) -> int:
    if isinstance(n, int) and not isinstance(n, bool) and n >= 0:
        return n
    raise InvalidTrigger(f"n must be a whole number from 0, not {n!r:.40}.", "n")
