"""Once: one time, then never again."""

# ruff: noqa: ARG002 - all triggers have one shape, and not each needs every argument

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from wakeful.triggers.base import TimedTrigger
from wakeful.triggers.modifiers import modifiers
from wakeful.triggers.moments import from_ms, iso, read_moment, spoken
from wakeful.triggers.zones import place_named, zone_name

if TYPE_CHECKING:
    from typing import Unpack

    from wakeful.triggers.modifiers import ModifierOptions


class Once(TimedTrigger):
    """`Once(at)`: an aware datetime, or ISO 8601 text with an offset.

    Active hours and except dates delay its start and never drop it. A time that has passed is no next time; that it
    is due at once is the kernel's rule, by `at_ms`.
    """

    __slots__ = ("at_ms",)
    _fields = ("at_ms", "tz", "modifiers")
    type = "once"
    at_ms: int

    def __init__(self, at: datetime | str, *, tz: str | None = None, **options: Unpack[ModifierOptions]) -> None:
        self._set(at_ms=read_moment(at, "at"), tz=zone_name(tz), modifiers=modifiers(**options))

    @property
    def at(self) -> datetime:
        return from_ms(self.at_ms)

    def next_slot(self, after_ms: int, last_completed_ms: int | None = None) -> int | None:
        begin, end = self.modifiers.bounded(after_ms, self.at_ms)
        return self.at_ms if begin < self.at_ms <= end else None

    def due_ms(self, slot: int, *, job_id: int, rand: float) -> int:
        return self.modifiers.reopens(super().due_ms(slot, job_id=job_id, rand=rand), self.tz)

    def count_slots(self, after_ms: int, until_ms: int) -> int:
        slot = self.next_slot(after_ms)
        return int(slot is not None and slot <= until_ms)

    def closed_slots(self, after_ms: int, until_ms: int) -> int:
        return 0

    def _period(self, slot: int) -> int:
        return 0

    def _rhythm(self) -> str:
        words = f"once at {spoken(self.at_ms, place_named(self.tz), fine=True)}"
        return words.removesuffix(" UTC") if self.tz == "UTC" else words  # the zone follows

    def _rhythm_data(self) -> dict[str, Any]:
        return {"at": iso(self.at_ms)}
