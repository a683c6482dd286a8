"""Which days of a month an expression names.

Months differ only in the weekday of their first day and their length: 28 shapes in all, each worked out once.
"""

from __future__ import annotations

from typing import NamedTuple

EVERY_DATE, EVERY_WEEKDAY = 0xFFFFFFFE, 0x7F


class DayRule(NamedTuple):
    """The two day fields. Weekdays count from Sunday = 0; `dates` has bit n for the n-th."""

    dates: int
    before_last: tuple[int, ...]  # L and L-n, as days before the last
    nearest: tuple[int, ...]  # nW
    last_weekday: bool  # LW
    weekdays: int
    nth: tuple[tuple[int, int], ...]  # d#n
    last: int  # dL, as weekday bits
    both: bool  # both fields must match; else either

    def in_month(self, first_weekday: int, length: int) -> int:
        """The matching days of a month as bits; bit 0 is the first."""
        by_date = self._by_date(first_weekday, length)
        by_weekday = self._by_weekday(first_weekday, length)
        return by_date & by_weekday if self.both else by_date | by_weekday

    def simplified(self) -> DayRule:
        """The same days, written one way: two expressions mean the same days where this is equal."""
        rule = self
        if rule.dates == EVERY_DATE:
            rule = rule._replace(before_last=(), nearest=(), last_weekday=False)
        if rule.weekdays == EVERY_WEEKDAY:
            rule = rule._replace(nth=(), last=0)
        full = (rule.dates == EVERY_DATE, rule.weekdays == EVERY_WEEKDAY)
        if any(full) and not rule.both:
            return DayRule(EVERY_DATE, (), (), False, EVERY_WEEKDAY, (), 0, True)  # noqa: FBT003 - its fields in order
        return rule._replace(both=True) if any(full) else rule

    def _by_date(self, first_weekday: int, length: int) -> int:
        bits = self.dates >> 1 & (1 << length) - 1
        for back in self.before_last:
            if back < length:
                bits |= 1 << length - 1 - back
        for day in self.nearest:
            if day <= length:
                bits |= 1 << _nearest_weekday(day, first_weekday, length) - 1
        if self.last_weekday:
            bits |= 1 << _nearest_weekday(length, first_weekday, length) - 1
        return bits

    def _by_weekday(self, first_weekday: int, length: int) -> int:
        bits = 0
        for weekday in range(7):
            first = (weekday - first_weekday) % 7
            if self.weekdays >> weekday & 1:
                bits |= _WEEKLY << first
            if self.last >> weekday & 1:
                bits |= 1 << first + (length - 1 - first) // 7 * 7
        for weekday, nth in self.nth:
            bits |= 1 << (weekday - first_weekday) % 7 + 7 * (nth - 1)
        return bits & (1 << length) - 1


_WEEKLY = sum(1 << 7 * week for week in range(5))


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    """The day from Monday to Friday nearest to a day, without leaving the month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day
