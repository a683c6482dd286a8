"""Durations: "30s", "5m", "1h30m", "1d", "1w", a timedelta, or a number of seconds.

Whole numbers with units, such as "5m" or "5min"; anything else is refused with the mistake and the expected form.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache

from wakeful.errors import IntervalParseError

UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
#: Other ways to write a unit.
_ALIASES = {
    "w": ("d", 7), "week": ("d", 7), "weeks": ("d", 7), "day": ("d", 1), "days": ("d", 1), "hr": ("h", 1),
    "hour": ("h", 1), "hours": ("h", 1), "min": ("m", 1), "mins": ("m", 1), "minute": ("m", 1), "minutes": ("m", 1),
    "sec": ("s", 1), "secs": ("s", 1), "second": ("s", 1), "seconds": ("s", 1),
}  # fmt: skip
_PART = re.compile(r"([0-9]+)([a-z]+)")
_WORDS = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
_LONGEST = 36_500 * UNITS["d"]
LONGEST_TEXT = 20  # as the schemas say
_EXPECTED = 'Expected format: "{number}{unit}"'
_MILLISECOND = timedelta(milliseconds=1)


def parse_interval(text: str) -> timedelta:
    """The timedelta of a text such as "5m"; IntervalParseError says what is wrong with any other."""
    given: object = text
    if not isinstance(given, str):
        raise IntervalParseError(_odd(given, 'a text such as "5m"'), given)
    return timedelta(milliseconds=_read(text))


def interval_ms(value: str | float | timedelta) -> int:
    """Milliseconds of a duration given as "5m", a timedelta or seconds: at least 1, at most 36500 days."""
    given: object = value
    if isinstance(value, str):
        return _read(value)
    if isinstance(value, timedelta):
        ms = value // _MILLISECOND
        negative, zero = value < timedelta(0), not value
    elif isinstance(given, (int, float)) and not isinstance(given, bool):
        if not abs(value) <= _LONGEST:  # also what is not a number at all
            raise _too_long(value) if value > 0 else IntervalParseError(_odd(value), value)
        ms = round(value * 1000)
        negative, zero = value < 0, value == 0
    else:
        raise IntervalParseError(_odd(value), value)
    if negative:
        raise IntervalParseError("Negative intervals are not allowed", value)
    if zero:
        raise IntervalParseError("Zero interval is not allowed", value)
    if ms < 1:
        raise IntervalParseError("Intervals shorter than a millisecond are not supported", value)
    return _bounded(ms, value)


def unit_ms(name: str) -> int | None:
    """The milliseconds of a unit, by any of its names."""
    unit, times = _ALIASES.get(name, (name, 1))
    return UNITS[unit] * times if unit in UNITS else None


def format_interval(ms: int) -> str:
    """The shortest text for a duration: "1d", "90s", "5m"; "1.5s" where it is no whole second."""
    unit = _unit(ms)
    return f"{_number(ms, unit)}{unit}"


def interval_data(ms: int) -> str | float:
    """The duration as plain data that `interval_ms` reads back to the same milliseconds."""
    return format_interval(ms) if ms % 1000 == 0 else ms / 1000


def interval_words(ms: int, *, every: bool = False) -> str:
    """In plain words: "5 minutes", "1 hour"; after "every", one is left out: "hour"."""
    unit = _unit(ms)
    if ms == UNITS[unit]:
        return _WORDS[unit] if every else f"1 {_WORDS[unit]}"
    return f"{_number(ms, unit)} {_WORDS[unit]}s"


def _number(ms: int, unit: str) -> str:
    """How many of a unit, to the millisecond."""
    whole, part = divmod(ms, UNITS[unit])
    return f"{whole}.{part:03}".rstrip("0") if part else str(whole)


def _unit(ms: int) -> str:
    return next((unit for unit in "dhms" if ms % UNITS[unit] == 0), "s")


def _read(text: object) -> int:
    if not isinstance(text, str):
        raise IntervalParseError(_odd(text), text)
    return _read_text(text)


@lru_cache(maxsize=1_024)
def _read_text(text: str) -> int:
    """Cached: the jobs of a file share a handful."""
    body = text.strip()
    digits = 0
    while digits < len(body) and body[digits] in "0123456789":
        digits += 1
    number, rest = body[:digits], body[digits:]
    if len(number) > 15:
        raise _too_long(text)
    if len(text) > LONGEST_TEXT:
        raise IntervalParseError(f"Interval is longer than {LONGEST_TEXT} characters. {_EXPECTED}", text)
    total = _sum(body)
    if total is None:
        raise IntervalParseError(_complaint(body, number, rest), text)
    if total == 0:
        raise IntervalParseError("Zero interval is not allowed", text)
    return _bounded(total, text)


def _complaint(body: str, number: str, rest: str) -> str:
    if not body:
        return f"Interval is empty. {_EXPECTED}"
    if body[0] in "-\u2212":
        return "Negative intervals are not allowed"
    if rest[:1] in {".", ","} and rest[1:2].isdigit():
        return "Decimal values are not supported"
    if not rest:
        return f"Missing time unit. {_EXPECTED}"
    if any(c.isdigit() and c not in "0123456789" for c in body):
        return f"Only the digits 0 to 9 are supported. {_EXPECTED}"
    if not number:
        return f"Missing number. {_EXPECTED}"
    if any(c.isdigit() for c in rest):
        return f'Units go from long to short, each once, such as "1h30m". {_EXPECTED}'
    if rest.strip() in UNITS:
        return f"Spaces are not allowed between number and unit. {_EXPECTED}"
    return f'Invalid time unit "{rest[:20]}". Valid units are: s, m, h, d'


def _sum(body: str) -> int | None:
    """The milliseconds of "5m" or "1h30m": whole numbers with units, from the longest to the shortest, each once."""
    parts = _PART.findall(body) if _PART.sub("", body) == "" else []
    total, shortest = 0, _LONGEST
    for number, written in parts:
        unit, times = _ALIASES.get(written, (written, 1))
        if unit not in UNITS or UNITS[unit] * times >= shortest or len(number) > 15:
            return None
        shortest = UNITS[unit] * times
        total += int(number) * shortest
    return total if parts else None


def _odd(value: object, expected: str = 'a text such as "5m", a timedelta or a number of seconds') -> str:
    shown = "missing" if value is None else f"not a duration: {str(value)[:40]}"
    return f"Interval is {shown}. Expected {expected}"


def _too_long(value: object) -> IntervalParseError:
    return IntervalParseError("Interval is too long. The longest is 36500d", value)


def _bounded(ms: int, value: object) -> int:
    if ms > _LONGEST:
        raise _too_long(value)
    return ms
