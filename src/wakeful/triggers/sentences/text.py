"""A sentence as words, and how series such as "a, b and c to e" are read from it.

A reader gets the text and the number of a word. It answers what it read and the number of the word behind it, or None
where something else is written there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Reader = Callable[["Text", int], tuple[Any, int] | None]
IntReader = Callable[["Text", int], tuple[int, int] | None]

_TOKEN = re.compile(r"\.\.\.|[,()\u2026\u2013\u2014%]|[^\s,()\u2026\u2013\u2014%]+")
DASHES = ("-", "\u2013", "\u2014")
TO = ("to", "through", "thru", "till", "until", *DASHES)
_GO_ON = ("\u2026", "...")
_MOST = 1_000  # the longest series of numbers is that of the 60 minutes


class Text:
    """The words of a sentence, as they were typed (`raw`) and in small letters."""

    __slots__ = ("raw", "words")

    def __init__(self, text: str) -> None:
        self.raw = _TOKEN.findall(text)
        # Outside ASCII, small letters of other alphabets would become ours.
        self.words = [token.lower() if token.isascii() else token for token in self.raw]

    def __len__(self) -> int:
        return len(self.words)

    def word(self, index: int) -> str:
        return self.words[index] if index < len(self.words) else ""

    def has(self, index: int, *words: str) -> bool:
        return tuple(self.words[index : index + len(words)]) == words


def separator(text: Text, index: int) -> int:
    """The word behind a comma, an "and" or both; the same word where there is none."""
    if text.word(index) == ",":
        index += 1
    return index + (text.word(index) in ("and", "&"))


def series(
    text: Text, index: int, one: IntReader, *, filler: tuple[str, ...] = (), size: int = 0
) -> tuple[list[int], int] | None:
    """Numbers as people list them: "1, 3 to 5 and 9", "1, 3, 5 … 31". With `size` a span may run past the end."""
    values: list[int] = []
    end, goes_on = index, False
    while len(values) <= _MOST:
        found = one(text, index)
        if found is None:
            break
        last = one(text, found[1] + 1) if text.word(found[1]) in TO else None
        more = _further(values, found[0]) if goes_on else _span(found[0], last[0], size) if last else [found[0]]
        if more is None:
            break
        values += more
        end = last[1] if last and not goes_on else found[1]
        index = separator(text, end)
        goes_on = text.word(index) in _GO_ON
        index += goes_on
        if index == end:
            break
        index += text.word(index) in filler
    return (values, end) if values else None


def _span(first: int, last: int, size: int) -> list[int] | None:
    if last >= first:
        return list(range(first, min(last, first + _MOST) + 1))
    return [value % size for value in range(first, last + size + 1)] if size else None


def _further(values: list[int], last: int) -> list[int] | None:
    """What three dots stand for: as evenly as the two numbers before them, up to the one behind."""
    step = values[-1] - values[-2] if len(values) > 1 else 0
    if step < 1 or last <= values[-1] or (last - values[-1]) % step or last > _MOST:
        return None
    return list(range(values[-1] + step, last + 1, step))
