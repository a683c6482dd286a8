"""Times of day as people write them: `9am`, `09:00`, `half past nine`, `noon`.

A bare hour is read on the 24-hour clock: 9 is 09:00. Times of day are milliseconds since midnight.
"""

from __future__ import annotations

import re

from wakeful.triggers.sentences.amounts import number
from wakeful.triggers.sentences.text import DASHES, TO, Text, separator

HOUR, MINUTE = 3_600_000, 60_000
DAY_MS = 24 * HOUR
_CLOCK = re.compile(r"([0-9]{1,2})(?:[:.]([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,3}))?)?)?(am|pm|a|p)?", re.ASCII)
_MILITARY = re.compile(r"([01][0-9]|2[0-4])([0-5][0-9])(?:h|hrs)?", re.ASCII)
_MARK = re.compile(r":([0-5][0-9])", re.ASCII)
_NAMED = {"noon": 12 * HOUR, "midday": 12 * HOUR, "midnight": 0}
_HALVES = {"am": "am", "a.m": "am", "a.m.": "am", "pm": "pm", "p.m": "pm", "p.m.": "pm"}
#: The parts of a day, and the bare hours that are in their second half: 6 in the evening is 18:00.
PARTS = {"morning": (), "afternoon": range(1, 12), "evening": range(1, 12), "night": range(6, 12)}


def clock(text: Text, index: int) -> tuple[int, int] | None:
    """A time of day that cannot be anything else: `9am`, `09:00`, `noon`, `9 o'clock`."""
    found = _clock(text, index)
    if found is None or not found[2]:
        return found[:2] if found else None
    return within(text, found[0], found[1])


def any_clock(text: Text, index: int) -> tuple[int, int] | None:
    """A time of day where one is expected: `9` is 09:00."""
    found = _clock(text, index)
    if found is None or not found[2]:
        return found[:2] if found else None
    value, end, _ = found
    return within(text, value, end) or (value, end)


def clocks(text: Text, index: int) -> tuple[list[int], int] | None:
    """Times of day, several where they are listed: `9 and 17:00`."""
    return _listed(text, index, any_clock(text, index))


def plain_clocks(text: Text, index: int) -> tuple[list[int], int] | None:
    """Times of day without "at" before them."""
    return _listed(text, index, clock(text, index))


def _listed(text: Text, index: int, found: tuple[int, int] | None) -> tuple[list[int], int] | None:
    values: list[int] = []
    while found is not None:
        values.append(found[0])
        end = found[1]
        index = separator(text, end)
        if index == end or len(values) > 1_440:
            break
        index += text.word(index) == "at"
        found = None if text.word(index + 1) in _UNITS_AHEAD else any_clock(text, index)
    return (values, end) if values else None


_UNITS_AHEAD = ("runs", "run", "times", "time", "%", "percent", "seconds", "minutes", "hours", "days")


def window(text: Text, index: int) -> tuple[tuple[int, int], int] | None:
    """`08:00 to 20:00`, `9-17`, `9am–5pm`, `8 and 20`: a start and an end; the end may be 24:00."""
    first, dash, second = text.word(index).partition("-")
    if dash and first and second:
        start, end = any_clock(Text(first), 0), any_clock(Text(second), 0)
        return ((start[0], end[0]), index + 1) if start and end else None
    start = any_clock(text, index)
    if start is None or text.word(start[1]) not in (*TO, "and", *DASHES):
        return None
    end = any_clock(text, start[1] + 1)
    return ((start[0], end[0]), end[1]) if end else None


def marks(text: Text, index: int) -> tuple[int, int] | None:
    """`:15`, a minute of every hour."""
    match = _MARK.fullmatch(text.word(index))
    return (int(match[1]), index + 1) if match else None


def within(text: Text, value: int, end: int) -> tuple[int, int] | None:
    """The hour that "in the evening" makes of a bare one."""
    here = 3 if text.has(end, "in", "the") else 2 if text.has(end, "at", "night") else 0
    part = text.word(end + here - 1) if here == 2 else text.word(end + 2)
    if not here or part not in PARTS:
        return None
    return in_part(value, part), end + here


def in_part(value: int, part: str) -> int:
    """A time of a part of the day: 6:30 in the evening is 18:30."""
    return value + 12 * HOUR if value // HOUR in PARTS[part] else value


def _clock(text: Text, index: int) -> tuple[int, int, bool] | None:
    """A time of day, the word behind it, and whether it is a bare hour."""
    word, behind = text.word(index), text.word(index + 1)
    if word in _NAMED:
        return _NAMED[word], index + 1, False
    if word in ("half", "quarter"):
        return _past(text, index)
    if word == "12" and behind in _NAMED:
        return _NAMED[behind], index + 2, False
    match = _MILITARY.fullmatch(word)
    if match:
        return _at(int(match[1]), int(match[2]), index + 1, bare=True)
    match = _CLOCK.fullmatch(word)
    if match is None:
        spoken = None if word[:1].isdigit() else number(text, index)
        oclock = spoken and text.word(spoken[1]) in ("o'clock", "oclock", "o\u2019clock", *_HALVES)
        return _with_half(text, spoken[0] * HOUR, spoken[1]) if spoken and oclock else None
    second = int(match[3] or 0) * 1000 + int((match[4] or "").ljust(3, "0"))
    value = int(match[1]) * HOUR + int(match[2] or 0) * MINUTE + second
    if int(match[2] or 0) > 59 or second >= MINUTE:
        return None
    half = {"a": "am", "p": "pm"}.get(match[5], match[5])
    if half:
        return _halved(value, half, index + 1)
    if behind in _HALVES or behind in ("o'clock", "oclock", "o\u2019clock"):
        return _with_half(text, value, index + 1)
    return (value, index + 1, match[2] is None) if value <= DAY_MS else None


def _with_half(text: Text, value: int, end: int) -> tuple[int, int, bool] | None:
    """A time before `am`, `pm` or `o'clock`, whose word has the number `end`."""
    if text.word(end) in _HALVES:
        return _halved(value, _HALVES[text.word(end)], end + 1)
    if value > DAY_MS:
        return None
    value, end = within(text, value, end + 1) or (value, end + 1)
    return value, end, False


def _halved(value: int, half: str, end: int) -> tuple[int, int, bool] | None:
    hour, rest = divmod(value, HOUR)
    return ((hour % 12 + 12 * (half == "pm")) * HOUR + rest, end, False) if 1 <= hour <= 12 else None


def _past(text: Text, index: int) -> tuple[int, int, bool] | None:
    """`half past nine`, `quarter to ten`."""
    minutes = 30 if text.word(index) == "half" else 15
    side = text.word(index + 1)
    hour = any_clock(text, index + 2) or _spoken(text, index + 2)
    if hour is None or side not in ("past", "to") or hour[0] % HOUR:
        return None
    value = hour[0] + (minutes if side == "past" else -minutes) * MINUTE
    return value % DAY_MS, hour[1], False


def _spoken(text: Text, index: int) -> tuple[int, int] | None:
    found = number(text, index)
    return (found[0] * HOUR, found[1]) if found and found[0] <= 24 else None


def _at(hour: int, minute: int, end: int, *, bare: bool) -> tuple[int, int, bool] | None:
    value = hour * HOUR + minute * MINUTE
    return (value, end, bare) if value <= DAY_MS else None
