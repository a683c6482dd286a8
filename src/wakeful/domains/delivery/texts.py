"""What people read: the digest of quiet hours, and long texts in parts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from unicodedata import category

from wakeful.counting import counted

BLANKS = "\u2800\u3164\u115f\u1160\uffa0"  # letters and signs that show nothing
DIGEST_MOST = 20_000  # characters of one part of a digest; a message that is longer is a part of its own


class DigestEntry(NamedTuple):
    """One message of a digest."""

    clock: str  # when, as the clock on the wall showed it
    title: str | None
    text: str


class DigestPart(NamedTuple):
    """One message of those that a digest takes, and how many of its entries are in it."""

    title: str
    text: str
    entries: int


def digest(entries: Sequence[DigestEntry]) -> list[DigestPart]:
    """The messages that combine many, in order and each whole: one where that is short enough, else several."""
    parts: list[list[str]] = []
    size = 0
    for entry in entries:
        head = f"{entry.clock} {entry.title}".rstrip() if entry.title else entry.clock
        text = f"{head}\n{entry.text}"
        if not parts or size + len(text) > DIGEST_MOST:
            parts.append([])
            size = 0
        parts[-1].append(text)
        size += len(text) + 2
    title = f"{counted(len(entries), 'message')} from quiet hours"
    of = f" of {len(parts)}"
    return [
        DigestPart(f"{title}, part {number}{of}" if len(parts) > 1 else title, "\n\n".join(part), len(part))
        for number, part in enumerate(parts, 1)
    ]


def cut(text: str, most: int, more: str = "") -> str:
    """The text, or its beginning and how much is missing."""
    if len(text) <= most:
        return text
    hint = f": {more}" if more else ""
    return f"{text[:most]}\n... ({counted(len(text) - most, 'more character')}{hint})"


def last_lines(text: str, lines: int, most: int) -> str:
    """The end of a text, at most so many lines and characters."""
    kept = "\n".join(text.rstrip().splitlines()[-lines:])
    return kept if len(kept) <= most else f"... {kept[-most:]}"


Width = Callable[[str], int]
"""How long a service takes a text to be."""


def split(text: str, most: int, width: Width = len, *, first: int | None = None) -> list[str]:
    """The text in parts of at most `most`: between paragraphs, else lines, else words, else anywhere.

    The parts, joined with what they were split at, are the text: nothing is lost. `first`: as much as the first takes.
    """
    parts: list[str] = []
    rest, room = text, most if first is None else first
    while width(rest) > room:
        at = max(1, cut_at(rest, longest(rest, room, width)))
        parts.append(rest[:at].rstrip("\n "))
        rest, room = rest[at:].lstrip("\n "), most
    return [part for part in (*parts, rest) if part] or [text[:most]]


def utf16(text: str) -> int:
    """How many units of UTF-16 a text has."""
    return len(text) + sum(ord(letter) > 0xFFFF for letter in text)


def longest(text: str, most: int, width: Width) -> int:
    """How many characters of a text are at most so long."""
    if width is len:
        return min(len(text), most)
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width(text[:middle]) <= most else (low, middle - 1)
    return low


def is_visible(text: str) -> bool:
    """Whether there is anything to see in a text: chats refuse one of blanks alone, also of blanks without a width."""
    return any(category(letter)[0] not in "ZC" and letter not in BLANKS for letter in text)


def cut_at(text: str, most: int) -> int:
    """Where to cut a text so that the first part has at most `most` characters."""
    for mark in ("\n\n", "\n", " "):
        found = text.rfind(mark, 0, most + 1)
        if found > most // 4:  # avoid parts that are much shorter than allowed
            return found
    return most
