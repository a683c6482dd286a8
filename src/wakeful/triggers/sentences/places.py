"""Time zones as people write them: their IANA names in any case."""

from __future__ import annotations

import re
from functools import lru_cache

from wakeful.errors import InvalidTrigger
from wakeful.triggers.sentences.text import Text
from wakeful.triggers.zones import LOCAL, zone

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT)([+-])([0-9]{1,2})(?::?00)?", re.ASCII | re.IGNORECASE)
_LONGEST_PLACE = 3  # words


def place(text: Text, index: int) -> tuple[str, int] | None:
    """The name of a zone; an unknown one with a `/` in it is refused with the nearest."""
    if index >= len(text) or not _NAME.fullmatch(text.raw[index]):
        return None
    name = text.raw[index]
    if text.word(index) == LOCAL:
        return LOCAL, index + 1
    known = _named(name)
    if known is None and "/" in name:
        zone(name)
    return (known, index + 1) if known else None


def refuse_place(text: Text, index: int) -> None:
    """InvalidTrigger where the rest of a sentence is a place that is no zone, with the nearest zone."""
    if index == 0:
        return
    inside = text.word(index) == "in"
    rest = text.raw[index + inside :]
    if rest and rest[-1].lower() == "time":
        rest = rest[:-1]
    name = " ".join(rest)
    offset = _OFFSET.fullmatch(name)
    if offset is not None and int(offset[2]) <= 12:
        sign = "-" if offset[1] == "+" else "+"  # the names of these zones count the other way
        raise InvalidTrigger(f'Unknown time zone "{name}": did you mean "Etc/GMT{sign}{int(offset[2])}"?', "tz")
    if not rest or len(rest) > _LONGEST_PLACE or not all(word.isalpha() for word in rest):
        return
    short = len(rest) == 1 and 2 <= len(name) <= 5 and name.isupper() and not "".join(text.raw).isupper()
    if inside or short or name.lower().replace(" ", "_") in _cities():
        zone(name)


@lru_cache(maxsize=1)
def _cities() -> frozenset[str]:
    return frozenset(name.rpartition("/")[2] for name in _in_small_letters())


@lru_cache(maxsize=1_024)
def _named(name: str) -> str | None:
    try:
        return zone(name).name
    except InvalidTrigger:
        return _in_small_letters().get(name.lower())


@lru_cache(maxsize=1)
def _in_small_letters() -> dict[str, str]:
    from zoneinfo import available_timezones

    return {name.lower(): name for name in sorted(available_timezones()) if not name.startswith(("posix", "right"))}
