"""Interval: a pause after each run."""

# ruff: noqa: ARG002 - all triggers have one shape, and not each needs every argument

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from wakeful.triggers.base import TimedTrigger
from wakeful.triggers.durations import interval_data, interval_ms, interval_words
from wakeful.triggers.modifiers import modifiers
from wakeful.triggers.moments import LAST_MS
from wakeful.triggers.zones import zone_name

if TYPE_CHECKING:
    from typing import Unpack

    from wakeful.triggers.modifiers import SharedOptions


class Interval(TimedTrigger):
    """`Interval("5m")`: so long after the last run ended; at once when it never ran or the time has passed.

    It never misses a time: closed hours and excluded dates only delay it.
    """

    __slots__ = ("interval_ms",)
    _fields = ("interval_ms", "tz", "modifiers")
    type = "interval"
    interval_ms: int

    def __init__(
        self,
        interval: str | float | timedelta,
        jitter: float = 0,
        *,
        tz: str | None = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        self._set(interval_ms=interval_ms(interval), tz=zone_name(tz), modifiers=modifiers(jitter=jitter, **options))

    def next_slot(self, after_ms: int, last_completed_ms: int | None = None) -> int | None:
        """Now when it never ran or is overdue, else the end of the last run plus the interval."""
        slot = after_ms if last_completed_ms is None else max(after_ms, last_completed_ms + self.interval_ms)
        begin, end = self.modifiers.bounded(slot - 1, LAST_MS - 1)
        slot = self.modifiers.reopens(begin + 1, self.tz)
        return slot if slot <= end else None

    def starting(self, ms: int) -> Interval:
        """The same interval, with its first time not before a moment."""
        return self._replaced(modifiers=self.modifiers.starting(ms))

    def latest_slot(self, after_ms: int, until_ms: int) -> int | None:
        return None

    def count_slots(self, after_ms: int, until_ms: int) -> int:
        return 0

    def closed_slots(self, after_ms: int, until_ms: int) -> int:
        return 0

    def period_at(self, slot: int) -> int:
        return self.interval_ms

    def min_gap_ms(self) -> int:
        return self.interval_ms

    def _period(self, slot: int) -> int:
        return self.interval_ms

    def _rhythm(self) -> str:
        return f"{interval_words(self.interval_ms)} after the last run ends"

    def _rhythm_data(self) -> dict[str, Any]:
        return {"interval": interval_data(self.interval_ms)}
