"""External triggers: started by something other than time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from wakeful.errors import InvalidTrigger
from wakeful.triggers.base import TimedTrigger, Trigger
from wakeful.triggers.durations import format_interval, interval_data, interval_ms


class Webhook(Trigger):
    """Fires on an authenticated HTTP request."""

    __slots__ = ()
    type = "webhook"

    def describe(self) -> str:
        return "when its webhook is called"

    def __repr__(self) -> str:
        return "Webhook()"


class Chat(Trigger):
    """Fires on a message that a connector brings."""

    __slots__ = ()
    type = "chat"

    def describe(self) -> str:
        return "when a chat message arrives"

    def __repr__(self) -> str:
        return "Chat()"


class Manual(Trigger):
    """Fires when a person or a program asks for it."""

    __slots__ = ()
    type = "manual"

    def describe(self) -> str:
        return "only when started by hand"

    def __repr__(self) -> str:
        return "Manual()"


class Ping(Trigger):
    """An outside job that reports in: nothing is started, but its silence past `schedule` and `grace` is noticed."""

    __slots__ = ("grace_ms", "schedule")
    _fields = ("schedule", "grace_ms")
    type = "ping"
    schedule: TimedTrigger | None
    grace_ms: int

    def __init__(self, schedule: Trigger | None = None, grace: str | float | timedelta = "1h") -> None:
        if schedule is not None and not isinstance(schedule, TimedTrigger):
            raise InvalidTrigger("schedule must be a trigger with times of its own, such as Every or Cron.", "schedule")
        self._set(schedule=schedule, grace_ms=interval_ms(grace))

    def deadline_after(self, ms: int) -> int | None:
        """When silence since `ms`, the last report, becomes an alarm: the next expected time plus the grace."""
        slot = None if self.schedule is None else self.schedule.next_slot(ms, ms)
        return None if slot is None else slot + self.grace_ms

    def min_gap_ms(self) -> int | None:
        return None if self.schedule is None else self.schedule.min_gap_ms()

    def resolved(self, now_ms: int, zone: str, keep: Trigger | None = None) -> Trigger:
        if self.schedule is None:
            return self
        kept = keep.schedule if isinstance(keep, Ping) else None
        return self._replaced(schedule=self.schedule.resolved(now_ms, zone, kept))

    def describe(self) -> str:
        if self.schedule is None:
            return "when it reports in"
        return f"expected to report in {self.schedule.describe()}, {format_interval(self.grace_ms)} of grace"

    def to_data(self) -> dict[str, Any]:
        schedule = {} if self.schedule is None else {"schedule": self.schedule.to_data()}
        return {"type": self.type, **schedule, "grace": interval_data(self.grace_ms)}

    def __repr__(self) -> str:
        return f"Ping({self.schedule!r}, grace={interval_data(self.grace_ms)!r})"
