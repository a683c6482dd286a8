"""Numbers and durations as people write them: "20 minutes", "1h30m", "half an hour", "twenty-five"."""

from __future__ import annotations

import re

from wakeful.triggers.durations import UNITS, unit_ms
from wakeful.triggers.sentences.text import Text

_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
_NUMBERS = {**{word: number for number, word in enumerate(_ONES)}, **_TENS}
_NTH = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
]  # fmt: skip
ORDINALS = {word: number for number, word in enumerate(_NTH, 1)}
_DIGITS = re.compile(r"[0-9]{1,15}", re.ASCII)
_ORDINAL = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)", re.ASCII)
_DECIMAL = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,3}))?", re.ASCII)
_COMPACT = re.compile(r"(?:[0-9]{1,15}(?:\.[0-9]{1,3})?[a-z]+)+", re.ASCII)
_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?([a-z]+)", re.ASCII)
_PERCENT = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,40})?(?:e-?[0-9]{1,3})?", re.ASCII)
#: Units that `parse_interval` does not know.
_ALSO = {"hrs": UNITS["h"], "fortnight": 14 * UNITS["d"], "fortnights": 14 * UNITS["d"]}
_MOST_MS = 10**16  # more than any duration may have, and what datetime can still count


def number(text: Text, index: int) -> tuple[int, int] | None:
    """`20`, `twenty`, `twenty-five`."""
    word = text.word(index)
    if _DIGITS.fullmatch(word):
        return int(word), index + 1
    tens, dash, ones = word.partition("-")
    if dash:
        known = tens in _TENS and ones in _ONES[1:10]
        return (_TENS[tens] + _NUMBERS[ones], index + 1) if known else None
    if word in _TENS and text.word(index + 1) in _ONES[1:10]:
        return _TENS[word] + _NUMBERS[text.word(index + 1)], index + 2
    return (_NUMBERS[word], index + 1) if word in _NUMBERS else None


def ordinal(text: Text, index: int) -> tuple[int, int] | None:
    """`1st`, `first`, `other` (the second)."""
    word = text.word(index)
    match = _ORDINAL.fullmatch(word)
    if match:
        return int(match[1]), index + 1
    return (ORDINALS[word], index + 1) if word in ORDINALS else None


def percent(text: Text, index: int) -> tuple[float, int] | None:
    """`5 %` or `5%`, as the number that is printed."""
    word = text.word(index)
    if not _PERCENT.fullmatch(word) or text.word(index + 1) not in ("%", "percent"):
        return None
    exact = float(word)
    return int(exact) if exact.is_integer() else exact, index + 2


def unit(word: str) -> int | None:
    """The milliseconds of a unit's name."""
    return _ALSO[word] if word in _ALSO else unit_ms(word)


def span(text: Text, index: int) -> tuple[int, int] | None:
    """A duration in milliseconds: one or several amounts, from the longest unit to the shortest."""
    total, shortest, start, end = 0, _MOST_MS + 1, index, index
    while found := _amount(text, index):
        amount, size, index = found
        if size >= shortest:
            break
        total, shortest, end = total + amount, size, index
        if text.has(end, "and", "a", "half"):
            total, end = total + size // 2, end + 3
            break
        index += text.word(index) == "and"
    return (total, end) if end > start and total <= _MOST_MS else None


def every_span(text: Text, index: int) -> tuple[int, int] | None:
    """What follows "every": also `hour`, `other day`, `2nd day`, `couple of hours`."""
    word = text.word(index)
    nth = (2, index + 1) if word == "other" else ordinal(text, index)
    size = unit(text.word(nth[1])) if nth else None
    if nth and size and len(text.word(nth[1])) > 1:
        return (nth[0] * size, nth[1] + 1) if nth[0] else None
    size = unit(word) if len(word) > 1 else None
    if size:
        half = 3 if text.has(index + 1, "and", "a", "half") else 0
        return size + size // 2 * (half > 0), index + 1 + half
    if text.has(index, "couple", "of"):
        size = unit(text.word(index + 2))
        return (2 * size, index + 3) if size else None
    return span(text, index)


def _amount(text: Text, index: int) -> tuple[int, int, int] | None:
    """One amount: its milliseconds, those of its (shortest) unit, and the word behind it."""
    word = text.word(index)
    if word[:1].isdigit() and _COMPACT.fullmatch(word):
        return _compact(word, index + 1)
    if word in ("half", "quarter") or text.has(index, "a", "quarter"):
        return _fraction(text, index)
    index += word in ("a", "an", "one") and text.word(index + 1) == "couple"
    if text.has(index, "couple", "of"):
        size = unit(text.word(index + 2))
        return (2 * size, size, index + 3) if size else None
    match = _DECIMAL.fullmatch(word)
    if match:
        return _sized(int(match[1] + (match[2] or "").ljust(3, "0")), unit(text.word(index + 1)), index + 2)
    counted = (1, index + 1) if word in ("a", "an") else number(text, index)
    if counted is None:
        return None
    amount, index = counted
    if text.has(index, "and", "a", "half"):
        return _sized(amount * 1000 + 500, unit(text.word(index + 3)), index + 4)
    return _sized(amount * 1000, unit(text.word(index)), index + 1)


def _sized(thousandths: int, size: int | None, end: int) -> tuple[int, int, int] | None:
    """An amount given in thousandths of a unit, where it is whole milliseconds."""
    return None if size is None or thousandths * size % 1000 else (thousandths * size // 1000, size, end)


def _fraction(text: Text, index: int) -> tuple[int, int, int] | None:
    """`half an hour`, `a quarter of an hour`."""
    index += text.word(index) == "a"
    parts = 2 if text.word(index) == "half" else 4
    index += 1
    index += text.word(index) == "of"
    index += text.word(index) in ("a", "an")
    size = unit(text.word(index))
    return (size // parts, size, index + 1) if size and size % parts == 0 else None


def _compact(word: str, end: int) -> tuple[int, int, int] | None:
    """`1h30m`, `20min`, `1.5s`."""
    total, shortest = 0, _MOST_MS + 1
    for whole, part, name in _PART.findall(word):
        found = _sized(int(whole + part.ljust(3, "0")), unit(name), end)
        if found is None or found[1] >= shortest:
            return None
        total, shortest = total + found[0], found[1]
    return total, shortest, end
