"""Ping: when an outside job is expected to report in, and how long its silence is tolerated."""

# ruff: noqa: ARG002 - all triggers have one shape, and not each needs every argument

from __future__ import annotations

from datetime import timedelta
from typing import Any

from wakeful.errors import InvalidTrigger
from wakeful.triggers.base import TimedTrigger, Trigger
from wakeful.triggers.durations import format_interval, interval_data, interval_ms
from wakeful.triggers.every import Every
from wakeful.triggers.interval import Interval
from wakeful.triggers.modifiers import PLAIN
from wakeful.triggers.moments import LAST_MS
from wakeful.triggers.once import Once


class Ping(TimedTrigger):
    """`Ping(Every("24h"), grace="1h")`: nothing is started, but silence past the schedule and the grace is noticed.

    A report is expected at each scheduled time, and is too late when the grace after it has passed. `every`
    and `interval` count from the last report; cron, and `every` with an anchor or a start, have times of their own.
    """

    __slots__ = ("grace_ms", "schedule")
    _fields = ("schedule", "grace_ms", "tz", "modifiers")
    type = "ping"
    reports = True
    schedule: TimedTrigger | None
    grace_ms: int

    def __init__(self, schedule: Trigger | None = None, grace: str | float | timedelta = "1h") -> None:
        if schedule is not None and (not isinstance(schedule, TimedTrigger) or isinstance(schedule, (Once, Ping))):
            raise InvalidTrigger("schedule must be a trigger that repeats, such as Every or Cron.", "schedule")
        if schedule is not None and schedule.max_runs is not None:
            raise InvalidTrigger("max_runs counts starts, and a monitor has none.", "max_runs")
        self._set(
            schedule=schedule,
            grace_ms=interval_ms(grace),
            tz=None if schedule is None else schedule.tz,
            modifiers=PLAIN if schedule is None else schedule.modifiers,
        )

    @property
    def relative(self) -> bool:
        return self._period_ms is not None

    @property
    def _period_ms(self) -> int | None:
        """The time from a report to the next one, where that is what the schedule says."""
        rhythm = self.schedule
        if isinstance(rhythm, Interval) or (isinstance(rhythm, Every) and rhythm.anchor_ms is rhythm.start_ms is None):
            return rhythm.interval_ms
        return None

    @property
    def lacks(self) -> str | None:
        if self.schedule is not None:
            return None
        return 'A monitor needs to know when a ping is expected, such as {"ping": true, "every": "24h"}.'

    @property
    def unended(self) -> str:
        return f"it started, and no other ping came within its grace of {format_interval(self.grace_ms)}"

    def expects(self, slot: str, deadline: str, *, down: bool) -> str:
        otherwise = "one that reports success ends that" if down else f"without one it is down at {deadline}"
        return f"{'It is down. ' if down else ''}A ping is expected at {slot}; {otherwise}."

    def next_slot(self, after_ms: int, last_completed_ms: int | None = None) -> int | None:
        """When the next report is expected: never before a whole period from here where the last one is long ago."""
        if self.schedule is None:
            return None
        if self._period_ms is None:
            return self.schedule.next_slot(after_ms)
        slot = (after_ms if last_completed_ms is None else last_completed_ms) + self._period_ms
        if slot <= after_ms:
            slot = after_ms + self._period_ms
        begin, end = self.modifiers.bounded(slot - 1, LAST_MS - 1)
        slot = self.modifiers.reopens(begin + 1, self.tz)
        return slot if slot <= end else None

    def due_ms(self, slot: int, *, job_id: int, rand: float) -> int:
        return slot + self.grace_ms

    def latest_slot(self, after_ms: int, until_ms: int) -> int | None:
        return None if self.schedule is None or self.relative else self.schedule.latest_slot(after_ms, until_ms)

    def count_slots(self, after_ms: int, until_ms: int) -> int:
        return 0 if self.schedule is None or self.relative else self.schedule.count_slots(after_ms, until_ms)

    def closed_slots(self, after_ms: int, until_ms: int) -> int:
        return 0

    def period_at(self, slot: int) -> int | None:
        return None if self.schedule is None else self._period_ms or self.schedule.period_at(slot)

    def deadline_after(self, ms: int) -> int | None:
        """When silence since `ms`, the last report, becomes an alarm: the next expected time plus the grace."""
        slot = self.next_slot(ms, ms)
        return None if slot is None else slot + self.grace_ms

    def min_gap_ms(self) -> int | None:
        """None: it starts nothing, however often it is expected."""
        return None

    def resolved(self, now_ms: int, zone: str, keep: Trigger | None = None) -> Trigger:
        if self.schedule is None:
            return self
        kept = keep.schedule if isinstance(keep, Ping) else None
        settled = self.schedule.resolved(now_ms, zone, kept)
        if self.relative and isinstance(settled, Every):
            settled = settled.without_anchor()  # it counts from the last report, not from here
        return Ping(settled, self.grace_ms / 1000)

    def describe(self) -> str:
        return self._expected(None if self.schedule is None else self.schedule.describe())

    def brief(self) -> str:
        return self._expected(None if self.schedule is None else self.schedule.brief())

    def _expected(self, schedule: str | None) -> str:
        grace = f"{format_interval(self.grace_ms)} of grace"
        if schedule is not None:
            return f"expected to report in {schedule}, {grace}"
        return "when it reports in" if self.grace_ms == 3_600_000 else f"when it reports in, {grace}"

    def to_data(self) -> dict[str, Any]:
        schedule = {} if self.schedule is None else {"schedule": self.schedule.to_data()}
        return {"type": self.type, **schedule, "grace": interval_data(self.grace_ms)}

    def __repr__(self) -> str:
        return f"Ping({self.schedule!r}, grace={interval_data(self.grace_ms)!r})"
