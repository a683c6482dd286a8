"""Numbers with their nouns: 1 run, 3 runs."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things: "1 job", "3 jobs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"
