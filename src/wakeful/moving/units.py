"""Unit files of systemd as sections with lists of values, and their words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_UNITS = {
    "us": 0.001, "usec": 0.001, "ms": 1, "msec": 1, "": 1000, "s": 1000, "sec": 1000, "second": 1000, "seconds": 1000,
    "m": 60_000, "min": 60_000, "minute": 60_000, "minutes": 60_000, "h": 3_600_000, "hr": 3_600_000,
    "hour": 3_600_000, "hours": 3_600_000, "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
    "w": 604_800_000, "week": 604_800_000, "weeks": 604_800_000, "month": 2_629_800_000, "months": 2_629_800_000,
    "y": 31_557_600_000, "year": 31_557_600_000, "years": 31_557_600_000,
}  # fmt: skip
_SPAN = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]*)")


class Unit(NamedTuple):
    """A unit's values by section and name, each with all its assignments in order."""

    values: dict[tuple[str, str], list[str]]

    def all(self, section: str, key: str) -> list[str]:
        return self.values.get((section, key), [])

    def last(self, section: str, key: str) -> str | None:
        found = self.all(section, key)
        return found[-1] if found else None

    def flag(self, section: str, key: str) -> bool:
        return (self.last(section, key) or "").lower() in ("1", "yes", "true", "on", "y", "t")


def read_unit(text: str) -> Unit:
    """The values of a unit; an empty assignment takes back those before it."""
    found: dict[tuple[str, str], list[str]] = {}
    section = ""
    for line in _joined(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        key, equals, value = line.partition("=")
        if not equals:
            continue
        values = found.setdefault((section, key.strip()), [])
        if value.strip():
            values.append(value.strip())
        else:
            values.clear()
    return Unit(found)


def _joined(text: str) -> Iterator[str]:
    """Lines without comments; a backslash at the end continues a line."""
    begun = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(("#", ";")) or (not line and not begun):
            continue
        if line.endswith("\\"):
            begun += line[:-1] + " "
            continue
        yield (begun + line).strip()
        begun = ""
    if begun:
        yield begun.strip()


def span_ms(text: str) -> int | None:
    """A span of time such as `1h 30min` or `90`, in milliseconds; None where it cannot be read."""
    total, at = 0.0, 0
    while at < len(text.rstrip()):
        found = _SPAN.match(text, at)
        if found is None or found[2] not in _UNITS:
            return None
        total += float(found[1]) * _UNITS[found[2]]
        at = found.end()
    return round(total) if text.strip() else None


def written(ms: int) -> str | float:
    """A duration as jobs take it."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return ms / 1000
