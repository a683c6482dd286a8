"""Every: a grid of times from an anchor."""

# ruff: noqa: ARG002 - all triggers have one shape, and not each needs every argument

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from wakeful.triggers.base import TimedTrigger, Trigger, within_reach
from wakeful.triggers.durations import interval_data, interval_ms, interval_words
from wakeful.triggers.modifiers import modifiers
from wakeful.triggers.moments import iso, read_moment, spoken
from wakeful.triggers.zones import place_named, zone_name

if TYPE_CHECKING:
    from typing import Unpack

    from wakeful.triggers.modifiers import ModifierOptions


class Every(TimedTrigger):
    """`Every("5m")`: at anchor + k · interval, never before the anchor.

    The anchor is the moment the job is stored unless given; with `start` it is the start. `tz` only says in which
    zone `except_dates` are dates.
    """

    __slots__ = ("anchor_ms", "interval_ms")
    _fields = ("interval_ms", "anchor_ms", "tz", "modifiers")
    type = "every"
    interval_ms: int
    anchor_ms: int | None

    def __init__(
        self,
        interval: str | float | timedelta,
        anchor: datetime | str | None = None,
        *,
        tz: str | None = None,
        **options: Unpack[ModifierOptions],
    ) -> None:
        self._set(
            interval_ms=interval_ms(interval),
            anchor_ms=None if anchor is None else read_moment(anchor, "anchor"),
            tz=zone_name(tz),
            modifiers=modifiers(**options),
        )

    def next_slot(self, after_ms: int, last_completed_ms: int | None = None) -> int | None:
        """The anchor while that lies ahead, else the first point of the grid strictly after the moment."""
        return super(Every, self._anchored(after_ms)).next_slot(after_ms)

    def upcoming_slots(self, after_ms: int, n: int) -> list[int]:
        return super(Every, self._anchored(after_ms)).upcoming_slots(after_ms, n)

    def without_anchor(self) -> Every:
        """The same rhythm from no particular moment."""
        return self._replaced(anchor_ms=None)

    def anchored_before(self, ms: int) -> Every:
        """The same grid, begun at its last point not after a moment."""
        anchor = self._anchor(ms)
        return self._replaced(anchor_ms=ms - (ms - anchor) % self.interval_ms)

    def min_gap_ms(self) -> int:
        return self.interval_ms

    def _next(self, after: int) -> int | None:
        anchor = self._anchor(after)
        if anchor > after:
            return anchor
        return within_reach(after - (after - anchor) % self.interval_ms + self.interval_ms)

    def _count(self, after: int, until: int) -> int:
        anchor = self._anchor(after)
        return max(0, (until - anchor) // self.interval_ms + 1) - max(0, (after - anchor) // self.interval_ms + 1)

    def _count_each(self, bounds: Sequence[int]) -> list[int]:
        if not bounds or self.anchor_ms is None:
            return super()._count_each(bounds)
        anchor, interval = self.anchor_ms, self.interval_ms
        reached = [(bound - anchor) // interval + 1 if bound >= anchor else 0 for bound in bounds]
        return [until - after for after, until in pairwise(reached)]

    def _anchored(self, now: int) -> Every:
        return self if self.anchor_ms is not None else self._replaced(anchor_ms=self._anchor(now))

    def _anchor(self, otherwise: int) -> int:
        if self.anchor_ms is not None:
            return self.anchor_ms
        return otherwise if self.start_ms is None else self.start_ms

    def _settled(self, now_ms: int, zone: str) -> Self:
        return self._replaced(
            anchor_ms=self._anchor(now_ms), tz=self._settled_tz(zone), modifiers=self.modifiers.resolved(zone)
        )

    def _origin(self, stored: Trigger, now_ms: int) -> int:
        return stored.anchor_ms if isinstance(stored, Every) and stored.anchor_ms is not None else now_ms

    def brief(self) -> str:
        return self.without_anchor().describe()

    def _rhythm(self) -> str:
        words = f"every {interval_words(self.interval_ms, every=True)}"
        return (
            words
            if self.anchor_ms is None
            else f"{words} since {spoken(self.anchor_ms, place_named(self.tz), fine=True)}"
        )

    def _rhythm_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {"interval": interval_data(self.interval_ms)}
        return data if self.anchor_ms is None else {**data, "anchor": iso(self.anchor_ms)}
