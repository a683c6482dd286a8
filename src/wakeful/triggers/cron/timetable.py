"""The times of a cron expression in a zone, in whole UTC seconds.

A day's times are a sorted table of minutes and one of seconds within a minute, so that the next one, and how many lie
before it, are one bisection each. Days come from bit sets per month, offsets from the zone's segments.

When the clock is moved, an expression that is *fixed* keeps its appointments: what the clock jumps over happens at the
first moment after the gap, once; what it shows twice happens the first time only. The segment's mark, how far the
local clock had come before, says both. Any other expression uses elapsed time: what matches on the wall, fires.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from wakeful.triggers.cron.fields import Fields, members, read
from wakeful.triggers.cron.months import Month, Months
from wakeful.triggers.moments import DAY, FIRST_SECOND, LAST_SECOND
from wakeful.triggers.zones import Segment, Zone, zone

_REACH = 2 * DAY  # more than any clock was ever moved
_CYCLE = 401 * 366 * DAY  # what falls into a gap every time for as long as the calendar takes to repeat never fires


class Timetable:
    """All times of one expression in one zone. Caches inside, a value outside."""

    __slots__ = (
        "_first",
        "_fixed",
        "_last_second",
        "_minutes",
        "_month",
        "_months",
        "_per_day",
        "_seconds",
        "_segment",
        "_zone",
    )

    def __init__(self, fields: Fields, place: Zone) -> None:
        self._zone = place
        self._fixed = fields.fixed
        self._minutes = minutes_of_day(fields.minutes, fields.hours)
        self._seconds = members(fields.seconds)
        self._first = self._minutes[0] + self._seconds[0]
        self._last_second = self._seconds[-1]
        self._per_day = len(self._minutes) * len(self._seconds)
        self._months = Months(fields.months, fields.days)
        self._segment: Segment = (0, 0, 0, 0)
        self._month: Month = (0, 0, 0)

    def next(self, second: int) -> int | None:
        """The first time strictly after a second, or None."""
        segment = self._segment
        if not segment[0] <= second < segment[1]:
            if second >= LAST_SECOND:
                return None
            second = max(second, FIRST_SECOND)
            segment = self._segment = self._zone.segment(second)
        _, end, offset, mark = segment
        local = second + offset + 1
        if local < mark and self._fixed:
            local = mark
        found = self._next_local(local)
        if found is None:
            return None
        found -= offset
        return found if found < end else self._next_beyond(end, found)

    def count(self, after: int, until: int) -> int:
        """How many times lie in (after, until]."""
        total = 0
        second, stop = max(after + 1, FIRST_SECOND), min(until + 1, LAST_SECOND)
        while second < stop:
            start, end, offset, mark = self._zone.segment(second)
            local = second + offset
            if self._fixed and local < mark:
                local = mark
            elif self._fixed and second == start and mark < local:
                # All that the gap swallowed and what falls on its very end are one firing.
                found = self._next_local(mark)
                total += found is not None and found <= local
                local += 1
            second = min(end, stop)
            total += self._count_local(local, second + offset)
        return total

    def count_each(self, bounds: Sequence[int]) -> list[int]:
        """The same between each two seconds that follow each other."""
        found: list[int] = []
        first, beyond, bits = self._month
        for after, until in pairwise(bounds):
            begin, end, offset, mark = self._zone.segment(min(max(after + 1, FIRST_SECOND), LAST_SECOND - 1))
            day, second = divmod(after + 1 + offset, DAY)
            stop, last = divmod(until + 1 + offset, DAY)
            if not first <= day < beyond:
                first, beyond, bits = self._months.of(day)
            steady = begin <= after < until < end - 1 and after + 1 + offset > mark
            if not steady or stop >= beyond:  # the clock is moved, or the month ends
                found.append(self.count(after, until))
                continue
            days = (bits >> day - first & (1 << stop - day) - 1).bit_count()
            total = days * self._per_day
            total += self._within(last) if bits >> stop - first & 1 else 0
            found.append(total - (self._within(second) if bits >> day - first & 1 else 0))
        return found

    def _next_beyond(self, end: int, about: int) -> int | None:
        """The first time at or after the change of offset at `end`, when none lies much before `about`.

        But for those shortly after `end`, where a clock that was moved back shows again what came before.
        """
        near, horizon = end + _REACH, min(end + _CYCLE, LAST_SECOND)
        while end < near or max(end, about) < horizon:
            if end >= LAST_SECOND:
                return None
            start, end, offset, mark = self._zone.segment(end if end < near else max(end, about - _REACH))
            found = self._next_local(mark if self._fixed else start + offset)
            if found is None:
                return None
            about = found - offset
            if about < end:
                return max(about, start)
        return None

    def _next_local(self, local: int) -> int | None:
        """The first matching second of the local clock at or after one."""
        day, second = divmod(local, DAY)
        first, beyond, bits = self._month
        if not first <= day < beyond:
            first, beyond, bits = self._month = self._months.of(day)
        bits >>= day - first
        if bits & 1:
            index = bisect_left(self._minutes, second - self._last_second)
            if index < len(self._minutes):
                minute = self._minutes[index]
                if minute >= second:
                    return day * DAY + minute + self._seconds[0]
                return day * DAY + minute + self._seconds[bisect_left(self._seconds, second - minute)]
        bits >>= 1
        if not bits:
            month = self._months.following(beyond)
            if month is None:
                return None
            self._month = month
            day, _, bits = month
            day -= 1
        return (day + (bits & -bits).bit_length()) * DAY + self._first

    def _count_local(self, begin: int, end: int) -> int:
        """How many matching seconds the local clock shows in [begin, end)."""
        if begin >= end:
            return 0
        days = self._months.count(begin // DAY, end // DAY)
        return days * self._per_day + self._before(end) - self._before(begin)

    def _before(self, local: int) -> int:
        """How many matching seconds the local clock shows on a day before one of its seconds."""
        day, second = divmod(local, DAY)
        first, _, bits = self._months.of(day)
        return self._within(second) if bits >> day - first & 1 else 0

    def _within(self, second: int) -> int:
        """How many matching seconds a matching day has before one of its seconds."""
        index = bisect_left(self._minutes, second - self._last_second)
        whole = index * len(self._seconds)
        if index == len(self._minutes) or self._minutes[index] >= second:
            return whole
        return whole + bisect_left(self._seconds, second - self._minutes[index])


@lru_cache(maxsize=2048)
def timetable(expression: str, zone_name: str) -> Timetable:
    """The timetable of an expression, shared by all triggers that have it."""
    return Timetable(read(expression), zone(zone_name))


@lru_cache(maxsize=512)
def minutes_of_day(minutes: int, hours: int) -> tuple[int, ...]:
    """The seconds of the day at which matching minutes begin."""
    within_hour = [minute * 60 for minute in members(minutes)]
    return tuple([hour * 3600 + minute for hour in members(hours) for minute in within_hour])


@lru_cache(maxsize=512)
def shortest_gap(expression: str) -> int | None:
    """The fewest seconds that can ever lie between two times by the clock on the wall; None: it never fires twice."""
    fields = read(expression)
    minutes, seconds = minutes_of_day(fields.minutes, fields.hours), members(fields.seconds)
    days = Months(fields.months, fields.days).shortest_gap()
    if days is None:
        return None
    overnight = days * DAY + minutes[0] + seconds[0] - minutes[-1] - seconds[-1]
    across = [b - a + seconds[0] - seconds[-1] for a, b in pairwise(minutes)]
    return min([overnight, *across, *[b - a for a, b in pairwise(seconds)]])
