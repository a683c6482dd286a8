"""Cron: the times of a cron expression in a zone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.errors import InvalidTrigger
from wakeful.triggers.base import TimedTrigger, Trigger
from wakeful.triggers.modifiers import modifiers
from wakeful.triggers.zones import settled_zone, zone_in_use, zone_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from wakeful.triggers.cron.timetable import Timetable
    from wakeful.triggers.modifiers import ModifierOptions


class Cron(TimedTrigger):
    """`Cron("0 9 * * 1-5", tz="Europe/Berlin")`: 5 fields, 6 with seconds first, or an `@` shorthand.

    Without `tz` it runs in the scheduler's default zone, which is stored with the job.
    """

    __slots__ = ("_times", "expression")
    _fields = ("expression", "tz", "modifiers")
    type = "cron"
    expression: str
    _times: Timetable

    def __init__(self, expression: str, tz: str | None = None, **options: Unpack[ModifierOptions]) -> None:
        given: object = expression
        if not isinstance(given, str):
            raise InvalidTrigger('A cron expression is a text such as "0 9 * * 1-5".', "expression")
        from wakeful.triggers.cron.fields import read  # the engine is loaded with the first expression

        read(expression)
        self._set(expression=" ".join(expression.split()), tz=zone_name(tz), modifiers=modifiers(**options))

    def __eq__(self, other: object) -> bool:
        """Whether it is the same schedule, however its expression is written: MON-FRI is 1-5."""
        if type(other) is not type(self):
            return NotImplemented
        return self._meaning() == other._meaning()

    def __hash__(self) -> int:
        return hash(self._meaning())

    def _meaning(self) -> tuple[object, ...]:
        from wakeful.triggers.cron.fields import read

        return read(self.expression), self.tz, self.modifiers

    def resolved(self, now_ms: int, zone: str, keep: Trigger | None = None) -> Trigger:
        """As any trigger is, with its expression as it is written now."""
        found = super().resolved(now_ms, zone, keep)
        if not isinstance(found, Cron) or found.expression == self.expression:
            return found
        return self._replaced(tz=found.tz, modifiers=found.modifiers)

    def min_gap_ms(self) -> int | None:
        from wakeful.triggers.cron.timetable import shortest_gap

        gap = shortest_gap(self.expression)
        return None if gap is None else gap * 1000

    def _next(self, after: int) -> int | None:
        try:
            second = self._times.next(after // 1000)
        except AttributeError:
            second = self._timetable().next(after // 1000)
        return None if second is None else second * 1000

    def _count(self, after: int, until: int) -> int:
        return self._timetable().count(after // 1000, until // 1000)

    def _count_each(self, bounds: Sequence[int]) -> list[int]:
        return self._timetable().count_each([bound // 1000 for bound in bounds])

    def _timetable(self) -> Timetable:
        """Found when first needed: a trigger that is only stored or shown never pays for it."""
        from wakeful.triggers.cron.timetable import timetable

        times = timetable(self.expression, zone_in_use(self.tz).name)
        self._set(_times=times)
        return times

    def _settled_tz(self, zone: str) -> str:
        return settled_zone(self.tz, zone)

    def _rhythm(self) -> str:
        from wakeful.triggers.cron.words import describe

        return describe(self.expression)

    def _rhythm_data(self) -> dict[str, Any]:
        return {"expression": self.expression}
