"""Times as people type them, read as moments. Pure: the present and the zone are given.

What has an offset means that moment; everything else is what the clock on the wall of the zone shows.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from wakeful.cli.failures import WrongUse

UNDERSTOOD = "2026-12-24T18:00, in 20m, today 18:30, tomorrow 09:00, monday 9:00 or 09:00"

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?\s*(am|pm)?", re.ASCII)
_SECONDS = {
    **dict.fromkeys(("s", "sec", "second"), 1),
    **dict.fromkeys(("m", "min", "minute"), 60),
    **dict.fromkeys(("h", "hr", "hour"), 3_600),
    **dict.fromkeys(("d", "day"), 86_400),
    **dict.fromkeys(("w", "week"), 604_800),
}
_AMOUNT = re.compile(r"(\d{1,9})\s*(s|[a-z]+?)s?", re.ASCII)


def read_when(text: str, *, now: datetime, zone: tzinfo, option: str) -> datetime:
    """The moment `text` names, in UTC; WrongUse says what is understood."""
    try:
        return _read(text, now=now, zone=zone, option=option)
    except OverflowError:
        raise WrongUse(f"{option} {text!r} is out of reach: use the years 2 to 9998.") from None


def is_on_the_wall(text: str) -> bool:
    """Whether the text names what a clock shows somewhere, rather than a moment that is the same everywhere."""
    words = " ".join(text.lower().split())
    if words == "now" or words.startswith("in "):
        return False
    try:
        return datetime.fromisoformat(text.strip().replace(" at ", " ")).tzinfo is None
    except ValueError:
        return True


def _read(text: str, *, now: datetime, zone: tzinfo, option: str) -> datetime:
    words = " ".join(text.lower().split())
    if words == "now":
        return now.astimezone(UTC)
    if words.startswith("in "):
        return now.astimezone(UTC) + _amount(words[3:], text, option)
    if re.match(r"\d{4}-?\d{2}-?\d{2}", words, re.ASCII):
        return _iso(text.strip(), zone, option)
    return _spoken(words, text, now=now, zone=zone, option=option)


def _iso(text: str, zone: tzinfo, option: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace(" at ", " "))
    except ValueError:
        raise WrongUse(f"{option} {text!r} is not a date and time: write {UNDERSTOOD}.") from None
    return moment.astimezone(UTC) if moment.tzinfo is not None else on_the_wall(moment, zone, option)


def _spoken(words: str, text: str, *, now: datetime, zone: tzinfo, option: str) -> datetime:
    """`09:00`, or a day and a time: today, tomorrow, or the next day of that name."""
    here = now.astimezone(zone)
    first, _, rest = words.partition(" ")
    clock = _clock(words)
    if clock is not None:
        return _first_after(now, [here.date(), here.date() + timedelta(1)], clock, zone, option)
    clock = _clock(rest.removeprefix("at "))
    days = [number for number, name in enumerate(_DAYS) if len(first) > 2 and name.startswith(first)]
    if not rest and (days or first in ("today", "tomorrow")):
        raise WrongUse(f"{option} {text!r} lacks a time of day: write {first} 09:00.")
    if clock is None or not (days or first in ("today", "tomorrow")):
        raise WrongUse(f"{option} {text!r} is not a time: write {UNDERSTOOD}.")
    if days:
        ahead = (days[0] - here.weekday()) % 7
        return _first_after(now, [here.date() + timedelta(ahead + week) for week in (0, 7)], clock, zone, option)
    moment = _at(here.date() + timedelta(first == "tomorrow"), clock, zone, option)
    if moment <= now:
        raise WrongUse(f"{option} {text!r} has passed: it is {here:%H:%M} now; write tomorrow {clock:%H:%M}.")
    return moment


def _first_after(now: datetime, days: list[date], clock: time, zone: tzinfo, option: str) -> datetime:
    moments = (_at(day, clock, zone, option) for day in days)
    return next(moment for moment in moments if moment > now)


def _at(day: date, clock: time, zone: tzinfo, option: str) -> datetime:
    return on_the_wall(datetime.combine(day, clock), zone, option)


def on_the_wall(naive: datetime, zone: tzinfo, option: str) -> datetime:
    """The moment at which the zone's clocks show this; of two, the first. One they pass over is refused."""
    moment = naive.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None, fold=0) != naive.replace(fold=0):
        raise WrongUse(
            f"{option}: {naive:%Y-%m-%d %H:%M} does not exist in {zone}, the clock moves forward then: "
            "choose another time."
        )
    return moment


def _clock(words: str) -> time | None:
    """`9:00`, `09:00:30`, `9am`, `9:30 pm`; a bare number is no time of day."""
    match = _CLOCK.fullmatch(words)
    if match is None or (match[2] is None and match[4] is None):
        return None
    hour = int(match[1])
    if match[4] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4] == "pm" else 0)
    try:
        return time(hour, int(match[2] or 0), int(match[3] or 0))
    except ValueError:
        return None


def _amount(words: str, text: str, option: str) -> timedelta:
    """`20m`, `20 minutes`, `1 hour`."""
    match = _AMOUNT.fullmatch(words)
    seconds = _SECONDS.get(match[2]) if match is not None else None
    if match is None or seconds is None:
        raise WrongUse(f"{option} {text!r} is not a time: write in 20m, in 2 hours or in 3 days.")
    return timedelta(seconds=int(match[1]) * seconds)
