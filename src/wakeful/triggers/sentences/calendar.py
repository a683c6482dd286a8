"""Days of the week, dates of a month and months as people write them, as what a cron expression says.

Weekdays count from Sunday = 0. A list of dates is read into the two day fields of cron: `15W` and `L` belong to one,
`2#3` and `5L` to the other.
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

from wakeful.triggers.sentences.amounts import ordinal
from wakeful.triggers.sentences.text import TO, Text, separator, series

WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_SHORT = {"tues": 2, "weds": 3, "thur": 4, "thurs": 4}
_SINGULAR = {
    **{name: n for n, name in enumerate(WEEKDAYS)},
    **{name[:3]: n for n, name in enumerate(WEEKDAYS)},
    **_SHORT,
}
_PLURAL = {f"{name}s": n for name, n in _SINGULAR.items()}
_NAMED = {**_PLURAL, **_SINGULAR}  # "tues" is one day
_MONTH_NAMES = {
    **{name: n for n, name in enumerate(MONTHS, 1)},
    **{name[:3]: n for n, name in enumerate(MONTHS, 1)},
    "sept": 9,
}
EVERY_DAY, WORKDAYS, WEEKEND = 0b1111111, 0b0111110, 0b1000001
_GROUPS = {
    "weekday": WORKDAYS, "weekdays": WORKDAYS, "workday": WORKDAYS, "workdays": WORKDAYS, "workingday": WORKDAYS,
    "weekend": WEEKEND, "weekends": WEEKEND,
}  # fmt: skip
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DAY_NUMBER = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)?", re.ASCII)
_REPEATING = ("the", "every", "each")
_FROM_END = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)-to-last", re.ASCII)


class Dates(NamedTuple):
    """Days of a month: parts of the field for dates, and of the field for weekdays."""

    of_month: tuple[str, ...]
    of_week: tuple[str, ...]


def single_weekday(text: Text, index: int) -> tuple[int, int] | None:
    """One day in the singular: `tuesday`."""
    word = text.word(index)
    return (_SINGULAR[word], index + 1) if word in _SINGULAR else None


def weekday(text: Text, index: int) -> tuple[int, int] | None:
    """One day, singular or plural."""
    word = text.word(index)
    return (_NAMED[word], index + 1) if word in _NAMED else None


class Days(NamedTuple):
    """Weekdays as bits; `single` where one was named in the singular, which is a day and not a rhythm."""

    bits: int
    single: bool


def weekdays(text: Text, index: int) -> tuple[Days, int] | None:
    """`weekdays`, `mondays and thursdays`, `mon-fri`, `friday to sunday`."""
    bits, count, end = 0, 0, index
    single = text.word(index) in _SINGULAR
    while found := _some_days(text, index):
        bits |= found[0]
        count += 1
        end = found[1]
        index = separator(text, end)
        if index == end:
            break
        index += text.word(index) in ("on", "every", "the")
    return (Days(bits, single and count == 1 and bits.bit_count() == 1), end) if bits else None


def _some_days(text: Text, index: int) -> tuple[int, int] | None:
    """One name, one group, or a span."""
    word = text.word(index)
    if word in _GROUPS:
        return _GROUPS[word], index + 1
    if word in ("working", "business", "week") and text.word(index + 1) in ("day", "days"):
        return WORKDAYS, index + 2
    listed = word.split("/")
    if len(listed) > 1 and all(name in _NAMED for name in listed):
        return sum({1 << _NAMED[name] for name in listed}), index + 1
    first, dash, last = word.partition("-")
    if dash and first in _NAMED and last in _NAMED:
        return _span(_NAMED[first], _NAMED[last]), index + 1
    found = weekday(text, index)
    if found is None:
        return None
    behind = weekday(text, found[1] + 1) if text.word(found[1]) in TO else None
    return (_span(found[0], behind[0]), behind[1]) if behind else (1 << found[0], found[1])


def _span(first: int, last: int) -> int:
    bits = 0
    for day in range(first, last + 1 if last >= first else last + 8):
        bits |= 1 << day % 7
    return bits


def month(text: Text, index: int) -> tuple[int, int] | None:
    word = text.word(index)
    return (_MONTH_NAMES[word], index + 1) if word in _MONTH_NAMES else None


def months(text: Text, index: int) -> tuple[frozenset[int], int] | None:
    """`january and july`, `march to may`, `november to february`."""
    found = series(text, index, month, size=12)
    return (frozenset(value or 12 for value in found[0]), found[1]) if found else None


def day_of_month(text: Text, index: int) -> tuple[int, int] | None:
    """`15` or `15th`, besides the name of a month."""
    match = _DAY_NUMBER.fullmatch(text.word(index))
    if match:
        return (int(match[1]), index + 1) if 1 <= int(match[1]) <= 31 else None
    return ordinal(text, index)


def month_day(text: Text, index: int) -> tuple[tuple[int, int], int] | None:
    """`january 15`, `15 january`, `the 15th of january`."""
    first = month(text, index)
    if first:
        index = first[1] + (text.word(first[1]) == "the")
        day = day_of_month(text, index)
        return ((first[0], day[0]), day[1]) if day else None
    index += text.word(index) == "the"
    day = day_of_month(text, index)
    behind = month(text, day[1] + (text.word(day[1]) == "of")) if day else None
    return ((behind[0], day[0]), behind[1]) if day and behind else None


def iso_date(text: Text, index: int) -> tuple[date, int] | None:
    word = text.word(index)
    if not _DATE.fullmatch(word):
        return None
    try:
        return date.fromisoformat(word), index + 1
    except ValueError:
        return None


def iso_dates(text: Text, index: int) -> tuple[list[date], int] | None:
    """`2026-12-24, 2026-12-27 to 2026-12-31`."""
    days: list[date] = []
    end = index
    while found := iso_date(text, index):
        last = iso_date(text, found[1] + 1) if text.word(found[1]) in TO else None
        first, stop = found[0].toordinal(), (last or found)[0].toordinal()
        if stop < first:
            break
        days += map(date.fromordinal, range(first, min(stop, first + 36_600) + 1))
        end = (last or found)[1]
        index = separator(text, end)
        if index == end or len(days) > 100_000:
            break
    return (days, end) if days else None


def dates(text: Text, index: int) -> tuple[Dates, int] | None:
    """What follows "the": `1st and 15th`, `last day`, `last friday`, `weekday nearest the 15th`, `first day`."""
    of_month: list[str] = []
    of_week: list[str] = []
    end = index
    while found := _special(text, index) or _ordinals(text, index):
        (in_month, in_week), end = found
        of_month += in_month
        of_week += in_week
        index = separator(text, end)
        if index == end:
            break
        index += text.word(index) == "on"
        index += text.word(index) == "the"
    return (Dates(tuple(of_month), tuple(of_week)), end) if of_month or of_week else None


def _special(text: Text, index: int) -> tuple[Dates, int] | None:
    """A day that has no fixed number."""
    word = text.word(index)
    if text.has(index, "weekday", "nearest"):
        index += 2 + (text.word(index + 2) == "the")
        near = ordinal(text, index)
        return _dates(near[1], f"{near[0]}W") if near and 1 <= near[0] <= 31 else None
    back = _FROM_END.fullmatch(word)
    if back and text.word(index + 1) == "day":
        return _dates(index + 2, _back(int(back[1])))
    if word == "last":
        return _last(text, index + 1)
    nth = ordinal(text, index)
    if nth is None:
        return None
    if text.has(nth[1], "to", "last", "day"):
        return _dates(nth[1] + 3, _back(nth[0]))
    if nth[0] == 1 and (behind := _working_day(text, nth[1])):
        return _dates(behind, "1W")
    listed, end = series(text, index, ordinal) or ([], index)
    day = weekday(text, end)
    if day is None or max(listed) > 5:
        return None
    return Dates((), tuple(f"{day[0]}#{one}" for one in listed)), day[1]


def _last(text: Text, index: int) -> tuple[Dates, int] | None:
    if text.word(index) == "day":
        return _dates(index + 1, "L")
    if behind := _working_day(text, index):
        return _dates(behind, "LW")
    day = weekday(text, index)
    return (Dates((), (f"{day[0]}L",)), day[1]) if day else None


def _working_day(text: Text, index: int) -> int | None:
    """The word behind `weekday`, `workday`, `working day` or `business day`."""
    if text.word(index) in ("weekday", "workday"):
        return index + 1
    return index + 2 if text.word(index) in ("working", "business") and text.word(index + 1) == "day" else None


def _back(nth: int) -> str:
    return "L" if nth == 1 else f"L-{nth - 1}"


def _dates(end: int, *of_month: str) -> tuple[Dates, int]:
    return Dates(of_month, ()), end


def _ordinals(text: Text, index: int) -> tuple[Dates, int] | None:
    found = series(text, index, _plain_ordinal, filler=("the",))
    if found is None:
        return None
    end = found[1] + (text.word(found[1]) in ("day", "days"))
    return Dates(tuple(map(str, found[0])), ()), end


def _plain_ordinal(text: Text, index: int) -> tuple[int, int] | None:
    """The number of a day, where nothing behind it makes another day of it: `24th december` is a date."""
    found = ordinal(text, index)
    if found is not None and text.word(found[1]) in _MONTH_NAMES and text.word(index - 1) not in _REPEATING:
        return None
    if found is None or not 1 <= found[0] <= 31 or text.word(found[1]) in _NAMED or text.has(found[1], "to", "last"):
        return None
    return found
