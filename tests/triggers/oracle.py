"""Cron by brute force: every minute is looked at, zoneinfo is asked about each, nothing is clever.

It shares no line with the engine. Only what the tests generate is understood: lists of numbers, ranges and steps, `*`
and `?`, `L`, `L-n`, `LW`, `nW`, `dL` and `d#n`.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)


def numbers(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = map(int, span.split("-"))
        else:
            first, last = int(span), high if step else int(span)
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def month_day_matches(day: date, text: str) -> bool:
    if text == "?":
        return True
    last = monthrange(day.year, day.month)[1]
    for item in text.split(","):
        if item == "L":
            hit = day.day == last
        elif item == "LW":
            hit = day.day == nearest_weekday(day, last)
        elif item.startswith("L-"):
            hit = day.day == last - int(item[2:])
        elif item.endswith("W"):
            hit = int(item[:-1]) <= last and day.day == nearest_weekday(day, int(item[:-1]))
        else:
            hit = day.day in numbers(item, 1, 31)
        if hit:
            return True
    return False


def nearest_weekday(month: date, wanted: int) -> int:
    last = monthrange(month.year, month.month)[1]
    weekdays = [d for d in range(1, last + 1) if month.replace(day=d).weekday() < 5]
    # Saturday goes back and Sunday forward: on a tie of one day each way there is none, so the distance decides.
    return min(weekdays, key=lambda d: abs(d - wanted))


def week_day_matches(day: date, text: str) -> bool:
    if text == "?":
        return True
    weekday = day.isoweekday() % 7
    for item in text.split(","):
        if item.endswith("L"):
            later = day + timedelta(days=7)
            hit = weekday == int(item[:-1]) % 7 and later.month != day.month
        elif "#" in item:
            wanted, nth = map(int, item.split("#"))
            hit = weekday == wanted % 7 and (day.day - 1) // 7 + 1 == nth
        else:
            hit = weekday in {n % 7 for n in numbers(item, 0, 7)}
        if hit:
            return True
    return False


class Oracle:
    def __init__(self, expression: str, zone: str) -> None:
        minute, hour, self.month_day, month, self.week_day = expression.split()
        self.minutes, self.hours = numbers(minute, 0, 59), numbers(hour, 0, 23)
        self.months = numbers(month, 1, 12)
        self.fixed = minute[0] != "*" and hour[0] != "*"
        self.zone = ZoneInfo(zone)

    def matches(self, local: datetime) -> bool:
        if local.second or local.minute not in self.minutes or local.hour not in self.hours:
            return False
        if local.month not in self.months:
            return False
        by_date = month_day_matches(local.date(), self.month_day)
        by_week = week_day_matches(local.date(), self.week_day)
        if self.month_day[0] in "*?" or self.week_day[0] in "*?":
            return by_date and by_week
        return by_date or by_week

    def times(self, after: datetime, until: datetime) -> list[datetime]:
        """All times in (after, until], which must be whole minutes in UTC, in zones with offsets of whole minutes."""
        found = self.appointments(after, until) if self.fixed else self.on_the_wall(after, until)
        return sorted(moment for moment in found if after < moment <= until)

    def on_the_wall(self, after: datetime, until: datetime) -> set[datetime]:
        """What the clock on the wall shows at every minute that passes."""
        found = set()
        moment = after
        while moment <= until:
            if self.matches(moment.astimezone(self.zone).replace(tzinfo=None)):
                found.add(moment)
            moment += MINUTE
        return found

    def appointments(self, after: datetime, until: datetime) -> set[datetime]:
        """Every minute of the calendar: kept the first time it is shown, or when a gap that swallows it ends."""
        found = set()
        local = after.astimezone(self.zone).replace(tzinfo=None, fold=0) - timedelta(days=2)
        end = until.astimezone(self.zone).replace(tzinfo=None, fold=0) + timedelta(days=1)
        while local <= end:
            if self.matches(local):
                found.add(self.first_shown(local))
            local += MINUTE
        return found

    def first_shown(self, local: datetime) -> datetime:
        moment = local.replace(tzinfo=self.zone, fold=0).astimezone(UTC)
        if moment.astimezone(self.zone).replace(tzinfo=None, fold=0) == local:
            return moment
        while (moment - MINUTE).astimezone(self.zone).replace(tzinfo=None, fold=0) > local:
            moment -= MINUTE
        return moment
