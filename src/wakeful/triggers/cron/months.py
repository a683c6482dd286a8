"""Months as bit sets of their matching days, over integer days since 1970."""

from __future__ import annotations

from datetime import date

from wakeful.triggers.cron.days import DayRule
from wakeful.triggers.moments import DAY, LAST_SECOND

Month = tuple[int, int, int]  # its first day, the day after its last, bits of the matching days (bit 0: the first)

CYCLE = 400 * 12  # months after which the calendar repeats: what has not matched by then never will
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_LAST_DAY = LAST_SECOND // DAY
_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Months:
    """The matching days of every month. Months differ only in their first weekday and their length."""

    __slots__ = ("_named", "_rule", "_shapes")

    def __init__(self, named: int, rule: DayRule) -> None:
        self._named = named
        self._rule = rule
        self._shapes: dict[int, int] = {}

    def of(self, day: int) -> Month:
        """The month that holds a day."""
        there = date.fromordinal(day + _EPOCH_DAY)
        return self._month(day - there.day + 1, there.year, there.month)

    def following(self, first: int) -> Month | None:
        """The first month with a matching day, from the one that begins on day `first`; None: there is none."""
        there = date.fromordinal(min(first, _LAST_DAY) + _EPOCH_DAY)
        year, month = there.year, there.month
        for _ in range(CYCLE):
            if first >= _LAST_DAY:
                break
            found = self._month(first, year, month)
            if found[2]:
                return found
            first = found[1]
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        return None

    def count(self, day: int, stop: int) -> int:
        """How many days match in [day, stop)."""
        total = 0
        while day < stop:
            first, beyond, bits = self.of(day)
            upto = min(beyond, stop)
            total += (bits >> day - first & (1 << upto - day) - 1).bit_count()
            day = upto
        return total

    def shortest_gap(self) -> int | None:
        """The fewest days from one matching day to another, ever; None when fewer than two match."""
        shortest, last = None, None
        month = self.following(0)
        while month is not None and month[0] < CYCLE * 31 and shortest != 1:
            first, beyond, bits = month
            while bits:
                day = first + (bits & -bits).bit_length() - 1
                if last is not None and (shortest is None or day - last < shortest):
                    shortest = day - last
                last = day
                bits &= bits - 1
            month = self.following(beyond)
        return shortest

    def _month(self, first: int, year: int, month: int) -> Month:
        length = _LENGTHS[month]
        if month == 2 and year % 4 == 0 and (year % 100 or year % 400 == 0):
            length = 29
        if not self._named >> month & 1:
            return first, first + length, 0
        shape = (first + 4) % 7 << 5 | length  # 1970 began on a Thursday
        bits = self._shapes.get(shape)
        if bits is None:
            bits = self._shapes[shape] = self._rule.in_month(shape >> 5, length)
        return first, first + length, bits
