"""`OnCalendar` of systemd as a cron expression, where one means the same."""

from __future__ import annotations

import re
from typing import NamedTuple
from zoneinfo import available_timezones

SHORT = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
}
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DATE = re.compile(r"(?:([\d*,./]+)-)?([\d*,./]+)([-~])([\d*,./]+)")
_NUMBER = re.compile(r"\d{1,4}")
_YEARS = "names years: use start and until with a schedule that repeats"
_WEEKS = {"1..7": 1, "8..14": 2, "15..21": 3, "22..28": 4}


class Calendar(NamedTuple):
    """When a timer fires: an expression and its zone, or one moment."""

    cron: str | None
    zone: str | None
    at: str | None = None


class NoCron(Exception):
    """Times that no cron expression has; the reason, as the end of a sentence."""


def read_calendar(text: str) -> Calendar:
    """The same times as a cron expression; NoCron where there is none."""
    words = SHORT.get(text.strip().lower(), text.strip()).split()
    if not words:
        raise NoCron("it names no time")
    zone = None
    if words and (words[-1] in available_timezones() or words[-1] == "UTC"):
        zone = words.pop()
        words = SHORT.get(words[0].lower(), words[0]).split() if len(words) == 1 else words
    days = words.pop(0) if words and words[0][:3].lower() in DAYS else None
    date, time = _parts(words, text)
    year, month, mark, day = _date(date, text)
    hour, minute, second = _time(time, text)
    if year != "*" and days is None and mark == "-":
        return Calendar(None, zone, _moment(text, (year, month, day), (hour, minute, second)))
    if year != "*":
        raise NoCron(f"{text!r} {_YEARS}")
    dom, dow = _both(_field(day, 1, 31, text) if mark == "-" else _from_end(day, text), day, days, text)
    fields = [_field(minute, 0, 59, text), _field(hour, 0, 23, text), dom, _field(month, 1, 12, text), dow]
    seconds = _field(second, 0, 59, text)
    return Calendar(" ".join(fields if seconds == "0" else [seconds, *fields]), zone)


def _parts(words: list[str], text: str) -> tuple[str, str]:
    """Date and time; either may be left out."""
    date = words.pop(0) if words and ":" not in words[0] else "*-*-*"
    time = words.pop(0) if words else "00:00:00"
    if words or ":" not in time:
        raise NoCron(f"{text!r} cannot be read")
    return date, time


def _date(date: str, text: str) -> tuple[str, str, str, str]:
    if date == "*":
        return "*", "*", "-", "*"
    found = _DATE.fullmatch(date)
    if found is None:
        raise NoCron(f"{text!r} cannot be read")
    return found[1] or "*", found[2], found[3], found[4]


def _time(time: str, text: str) -> tuple[str, str, str]:
    parts = time.split(":")
    if len(parts) == 2:
        parts.append("00")
    if len(parts) != 3:
        raise NoCron(f"{text!r} cannot be read")
    whole, _, fraction = parts[2].partition(".") if ".." not in parts[2] else (parts[2], "", "")
    if fraction.strip("0"):
        raise NoCron(f"{text!r} has parts of a second")
    return parts[0], parts[1], whole


def _moment(text: str, date: tuple[str, str, str], time: tuple[str, str, str]) -> str:
    """A date with a year is one moment, or none that can be written."""
    if not all(_NUMBER.fullmatch(part) for part in (*date, *time)):
        raise NoCron(f"{text!r} {_YEARS}")
    clock = ":".join(part.zfill(2) for part in time)
    return f"{date[0].zfill(4)}-{date[1].zfill(2)}-{date[2].zfill(2)}T{clock}"


def _field(value: str, low: int, high: int, text: str) -> str:
    """One field: `*`, `5`, `1,3`, `1..5`, and `/step` behind `*` or a number."""
    if value == "*":
        return "*"
    return ",".join(_part(part, low, high, text) for part in value.split(","))


def _part(part: str, low: int, high: int, text: str) -> str:
    base, slash, step = part.partition("/")
    if slash and base == "*":
        return f"*/{_number(step, 1, high, text)}"
    first, dots, last = base.partition("..")
    begin = _number(first, low, high, text)
    if not dots and not slash:
        return str(begin)
    end = _number(last, low, high, text) if dots else high
    if end < begin:
        raise NoCron(f"{text!r} has a range that ends before it begins")
    return f"{begin}-{end}" + (f"/{_number(step, 1, high, text)}" if slash else "")


def _number(text: str, low: int, high: int, whole: str) -> int:
    if _NUMBER.fullmatch(text) and low <= int(text) <= high:
        return int(text)
    raise NoCron(f"{whole!r} cannot be read")


def _from_end(day: str, text: str) -> str:
    """`*-02~01` is the last day of February, `~03` the one two days before."""
    number = _number(day, 1, 28, text)
    return "L" if number == 1 else f"L-{number - 1}"


def _both(dom: str, day: str, days: str | None, text: str) -> tuple[str, str]:
    """Days of the month and of the week: systemd wants both to match, and cron either."""
    dow = "*" if days is None else _weekdays(days, text)
    if dow == "*" or dom == "*":
        return dom, dow
    if day in _WEEKS and "," not in dow and "-" not in dow:
        return "*", f"{dow}#{_WEEKS[day]}"
    raise NoCron(f"{text!r} asks for days of the month that are also certain days of the week, which cron cannot say")


def _weekdays(days: str, text: str) -> str:
    found = []
    for part in days.lower().split(","):
        first, dots, last = part.partition("..")
        if first[:3] not in DAYS or (dots and last[:3] not in DAYS):
            raise NoCron(f"{text!r} cannot be read")
        begin, end = DAYS.index(first[:3]), DAYS.index(last[:3]) if dots else None
        if end is not None and end < begin:
            end += 7
        found.append(
            str(begin) if end is None else f"{begin}-{end}" if end <= 7 else f"{_span(begin, 6)},{_span(0, end - 7)}"
        )
    return ",".join(found)


def _span(begin: int, end: int) -> str:
    return str(begin) if begin == end else f"{begin}-{end}"
