"""Time zones as people write them: their IANA names in any case."""

from __future__ import annotations

import re
from functools import lru_cache

from wakeful.errors import InvalidTrigger
from wakeful.triggers.sentences.text import Text
from wakeful.triggers.zones import LOCAL, zone

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}", re.ASCII)


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
