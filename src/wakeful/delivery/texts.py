"""What people read: the digest of quiet hours, and long texts in parts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

DIGEST_MOST = 20_000
ENTRY_MOST = 2_000


class Entry(NamedTuple):
    """One message of a digest."""

    clock: str  # when, as the clock on the wall showed it
    title: str | None
    text: str


def digest(entries: Sequence[Entry]) -> tuple[str, str]:
    """Title and text of one message that combines many; those that do not fit are counted."""
    title = "1 message from quiet hours" if len(entries) == 1 else f"{len(entries)} messages from quiet hours"
    parts: list[str] = []
    size = 0
    for entry in entries:
        head = f"{entry.clock} {entry.title}".rstrip() if entry.title else entry.clock
        part = f"{head}\n{cut(entry.text, ENTRY_MOST)}"
        if parts and size + len(part) > DIGEST_MOST:
            break
        parts.append(part)
        size += len(part) + 2
    left = len(entries) - len(parts)
    if left:
        parts.append(f"... and {left} more: wakeful delivery list")
    return title, "\n\n".join(parts)


def cut(text: str, most: int, more: str = "") -> str:
    """The text, or its beginning and how much is missing."""
    if len(text) <= most:
        return text
    hint = f": {more}" if more else ""
    return f"{text[:most]}\n... ({len(text) - most} more characters{hint})"


def last_lines(text: str, lines: int, most: int) -> str:
    """The end of a text, at most so many lines and characters."""
    kept = "\n".join(text.rstrip().splitlines()[-lines:])
    return kept if len(kept) <= most else f"... {kept[-most:]}"


def split(text: str, most: int) -> list[str]:
    """The text in parts of at most `most` characters: between paragraphs, else lines, else words, else anywhere.

    The parts, joined with what they were split at, are the text: nothing is lost.
    """
    parts: list[str] = []
    rest = text
    while len(rest) > most:
        at = cut_at(rest, most)
        parts.append(rest[:at].rstrip("\n "))
        rest = rest[at:].lstrip("\n ")
    return [part for part in (*parts, rest) if part] or [text[:most]]


def cut_at(text: str, most: int) -> int:
    """Where to cut a text so that the first part has at most `most` characters."""
    for mark in ("\n\n", "\n", " "):
        found = text.rfind(mark, 0, most + 1)
        if found > most // 4:  # avoid parts that are much shorter than allowed
            return found
    return most
