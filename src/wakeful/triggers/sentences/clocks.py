"""Times of day as people write them: `9am`, `09:00`, `half past nine`, `noon`.

A bare hour is read on the 24-hour clock: 9 is 09:00. Times of day are milliseconds since midnight.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wakeful.errors import InvalidTrigger
from wakeful.triggers.sentences.amounts import number, unit
from wakeful.triggers.sentences.text import DASHES, TO, Text, separator

HOUR, MINUTE = 3_600_000, 60_000
DAY_MS = 24 * HOUR
_CLOCK = re.compile(r"([0-9]{1,2})(?:[:.]([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,3}))?)?)?(am|pm|a|p)?", re.ASCII)
_MILITARY = re.compile(r"([01][0-9]|2[0-4])([0-5][0-9])(?:h|hrs)?", re.ASCII)
_MARK = re.compile(r":([0-5][0-9])", re.ASCII)
_NAMED = {"noon": 12 * HOUR, "midday": 12 * HOUR, "midnight": 0}
_OCLOCK = ("o'clock", "oclock", "o\u2019clock")
_HALVES = {"am": "am", "a.m": "am", "a.m.": "am", "pm": "pm", "p.m": "pm", "p.m.": "pm"}


class PartOfDay(NamedTuple):
    """A part of the day: the bare hours that are in its second half, as 6 in the evening is 18:00; and its hours."""

    later: range
    hours: range
    beyond: range = range(0)  # those after midnight
    name: str = ""


PARTS = {
    "morning": PartOfDay(range(0), range(12), name="in the morning"),
    "afternoon": PartOfDay(range(1, 8), range(12, 20), name="in the afternoon"),
    "evening": PartOfDay(range(4, 12), range(16, 24), name="in the evening"),
    "night": PartOfDay(range(6, 12), range(18, 24), range(7), name="at night"),
}


class TimeOfDay(NamedTuple):
    """A time of day; `half`: whether am or pm was said with it."""

    ms: int
    half: bool = False


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


def clocks(text: Text, index: int) -> tuple[list[TimeOfDay], int] | None:
    """Times of day, several where they are listed: `9 and 17:00`."""
    return _listed(text, index, any_clock(text, index))


def plain_clocks(text: Text, index: int) -> tuple[list[TimeOfDay], int] | None:
    """Times of day without "at" before them."""
    return _listed(text, index, clock(text, index))


def _listed(text: Text, index: int, found: tuple[int, int] | None) -> tuple[list[TimeOfDay], int] | None:
    values: list[TimeOfDay] = []
    while found is not None:
        end = found[1]
        values.append(TimeOfDay(found[0], says_half(text, index, end)))
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
        both = window(Text(f"{first} to {second}"), 0)
        return (both[0], index + 1) if both else None
    start = any_clock(text, index)
    if start is None or text.word(start[1]) not in (*TO, "and", *DASHES):
        return None
    end = any_clock(text, start[1] + 1)
    if end is None:
        return None
    if end[0] < start[0] <= 12 * HOUR and end[0] > 0 and clock(text, start[1] + 1) is None:  # 9 to 5
        afternoon = f"{start[0] // HOUR:02}:00 to {end[0] // HOUR + 12}:00"
        raise InvalidTrigger(f'ends before it begins: write "{afternoon}", or both as times such as 05:00.', "when")
    return (start[0], end[0]), end[1]


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
    return in_part(TimeOfDay(value), part), end + here


def says_half(text: Text, index: int, end: int) -> bool:
    """Whether a time that is written there says am or pm."""
    return any(word in _HALVES or word.endswith(("am", "pm")) for word in text.words[index:end])


def in_part(said: TimeOfDay, part: str) -> int:
    """A time of a part of the day: 6:30 in the evening is 18:30, and 12 at night is 00:00."""
    value, of_day = said.ms, PARTS[part]
    if not said.half and value // HOUR in of_day.later:
        value += 12 * HOUR
    elif not said.half and part == "night" and value // HOUR == 12:
        value -= 12 * HOUR
    if value // HOUR not in of_day.hours and value // HOUR not in of_day.beyond:
        clock = f"{value // HOUR:02}:{value // MINUTE % 60:02}"
        raise InvalidTrigger(f"says {clock} {of_day.name}: say one of the two.", "when")
    return value


def _clock(text: Text, index: int) -> tuple[int, int, bool] | None:
    """A time of day, the word behind it, and whether it is a bare hour."""
    word, behind = text.word(index), text.word(index + 1)
    if word in _NAMED:
        return _NAMED[word], index + 1, False
    if word in ("half", "quarter") or text.has(index, "a", "quarter"):
        return _past(text, index + (word == "a"))
    if word == "12" and behind in _NAMED:
        return _NAMED[behind], index + 2, False
    if _is_minutes_past(text, index):
        return _minutes_past(text, index)
    match = _MILITARY.fullmatch(word)
    if match:
        return _at(int(match[1]), int(match[2]), index + 1, bare=True)
    match = _CLOCK.fullmatch(word)
    if match is None:
        return None if word[:1].isdigit() else _spoken_clock(text, index)
    second = int(match[3] or 0) * 1000 + int((match[4] or "").ljust(3, "0"))
    value = int(match[1]) * HOUR + int(match[2] or 0) * MINUTE + second
    if int(match[2] or 0) > 59 or second >= MINUTE:
        return None
    half = {"a": "am", "p": "pm"}.get(match[5], match[5])
    if half:
        return _halved(value, half, index + 1)
    if behind in _HALVES or behind in _OCLOCK:
        return _with_half(text, value, index + 1)
    return (value, index + 1, match[2] is None) if value <= DAY_MS else None


def _spoken_clock(text: Text, index: int) -> tuple[int, int, bool] | None:
    """`nine`, `nine o'clock`, `nine thirty`, `nine thirty pm`."""
    hour, end = number(text, index) or (25, index)
    if hour > 24 or unit(text.word(end)) is not None:
        return None
    if text.word(end) in _OCLOCK or text.word(end) in _HALVES:
        return _with_half(text, hour * HOUR, end)
    minutes = None if text.word(end)[:1].isdigit() else number(text, end)
    if minutes is None or not 10 <= minutes[0] <= 59 or text.word(minutes[1]) in _UNITS_AHEAD:
        return _at(hour, 0, end, bare=True)
    value = hour * HOUR + minutes[0] * MINUTE
    if text.word(minutes[1]) in _HALVES:
        return _with_half(text, value, minutes[1])
    return _at(hour, minutes[0], minutes[1], bare=True)


def _is_minutes_past(text: Text, index: int) -> bool:
    found = number(text, index)
    return found is not None and "past" in (text.word(found[1]), text.word(found[1] + 1))


def _minutes_past(text: Text, index: int) -> tuple[int, int, bool] | None:
    """`ten past nine`, `10 minutes past nine`."""
    minutes, end = number(text, index) or (0, index)
    end += text.word(end) == "minutes"
    hour = any_clock(text, end + 1) if text.word(end) == "past" and 1 <= minutes <= 59 else None
    return (hour[0] + minutes * MINUTE, hour[1], False) if hour and not hour[0] % HOUR else None


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
    if hour is None or side not in ("past", "after", "to") or hour[0] % HOUR:
        return None
    value = hour[0] + (-minutes if side == "to" else minutes) * MINUTE
    return value % DAY_MS, hour[1], False


def _spoken(text: Text, index: int) -> tuple[int, int] | None:
    found = number(text, index)
    return (found[0] * HOUR, found[1]) if found and found[0] <= 24 else None


def _at(hour: int, minute: int, end: int, *, bare: bool) -> tuple[int, int, bool] | None:
    value = hour * HOUR + minute * MINUTE
    return (value, end, bare) if value <= DAY_MS else None
