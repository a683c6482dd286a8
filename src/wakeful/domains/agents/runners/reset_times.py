"""When a rate limit ends, as tools say it. Pure.

| said | meaning |
|---|---|
| `resetsAt: 1790000000` | that moment, in seconds or milliseconds |
| `resets in 2h39m52s`, `try again in 2 hours`, `retry after 2733 seconds` | so long from now |
| `resets 3:45pm`, `try again at 3:05 PM`, `resets 1pm (America/Recife)` | the next time the clock shows that |
| `resets Mon 12:00am` | the next Monday |
| `resets Apr 23 at 4pm`, `try again at Aug 9th, 2026 3:05 PM` | that day |
| `resets 2026-08-09 00:00 UTC` | that moment |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.triggers.moments import from_ms

SECONDS_MOST = 100_000_000_000  # as milliseconds that is 1973, as seconds the year 5138
FURTHEST_MS = 35 * 86_400_000  # a month: a time further away was misread
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_AMOUNT = r"\d+(?:\.\d+)?\s*(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b"
_SPAN = re.compile(  # not when the tool itself tries again
    rf"(?<!retrying )\b(?:in|after)\s+((?:{_AMOUNT}\s*,?\s*(?:and\s+)?)+|(?:\d+[dhms]){{1,4}})", re.IGNORECASE
)
_ONE = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.IGNORECASE)
_ISO = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)\s*(Z|UTC|[+-]\d{2}:\d{2})?")
_EPOCH = re.compile(r"\|(\d{10,13})\b")
_CLOCK = re.compile(
    r"(?:resets?|again)(?:\s+at|\s+on)?\s+"
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?"
    r"|(?P<weekday>Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s+(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm)(?:\s*\((?P<zone>[A-Za-z_/+-]+)\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def moment_of(value: Any, now: int) -> int | None:
    """A moment that a tool gives as a number or as ISO text, in epoch milliseconds; None where it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _ahead(value * 1000 if value < SECONDS_MOST else value, now)
    if isinstance(value, str):
        return moment_of(float(value), now) if value.isdecimal() else reset_time(value, now)
    return None


def reset_time(text: str, now: int, zone: str = "UTC") -> int | None:
    """When the limit that a text mentions ends, in epoch milliseconds; None if it names no time."""
    if (found := _EPOCH.search(text)) and (moment := moment_of(int(found[1]), now)) is not None:
        return moment
    if (found := _ISO.search(text)) and (moment := _ahead(_iso(found, zone), now)) is not None:
        return moment
    if found := _SPAN.search(text):
        seconds = sum(float(number) * _UNITS[unit.lower()] for number, unit in _ONE.findall(found[1]))
        return _ahead(now + seconds * 1000, now)
    if found := _CLOCK.search(text):
        return _ahead(_clock(found, now, zone), now)
    return None


def _ahead(moment: float | None, now: int) -> int | None:
    """The moment, if it can be meant; also a tool's Infinity and NaN are numbers."""
    return int(moment) if moment is not None and now < moment <= now + FURTHEST_MS else None


def _iso(found: re.Match[str], zone: str) -> int | None:
    offset = {"Z": "+00:00", "UTC": "+00:00", None: ""}.get(found[3], found[3])
    try:
        moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{offset}")
    except ValueError:
        return None
    return _ms(moment if moment.tzinfo is not None else moment.replace(tzinfo=_zone(zone)))


def _clock(found: re.Match[str], now: int, zone: str) -> int | None:
    there = _zone(found["zone"] or zone)
    today = from_ms(now).astimezone(there)
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    try:
        moment = today.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"] and found["month"].lower() in _MONTHS:
            month, year = _MONTHS.index(found["month"].lower()) + 1, int(found["year"] or today.year)
            moment = moment.replace(year=year, month=month, day=int(found["day"]))
            return _ms(moment if moment > today or found["year"] else moment.replace(year=year + 1))
    except ValueError:
        return None
    if found["weekday"]:
        moment += timedelta(days=(_DAYS.index(found["weekday"].lower()) - moment.weekday()) % 7)
    if moment <= today:
        moment += timedelta(days=7 if found["weekday"] else 1)
    return _ms(moment)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
