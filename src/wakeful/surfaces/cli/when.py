"""Times as people type them on the command line, read as moments. The present and the zone are given.

`triggers/sentences` reads them, as it reads schedules in words.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from wakeful.console.failures import WrongUse
from wakeful.errors import InvalidTrigger
from wakeful.triggers import from_ms, to_ms

UNDERSTOOD = "2026-12-24T18:00, in 20m, today 18:30, tomorrow 09:00, monday 9:00 or 09:00"


def read_when(text: str, *, now: datetime, zone: tzinfo, option: str) -> datetime:
    """The moment `text` names, in UTC; WrongUse says what is understood."""
    from wakeful.triggers.sentences import read_time

    place = "UTC" if zone is UTC else str(zone)
    try:
        return from_ms(read_time(text, to_ms(now), place))
    except InvalidTrigger as error:
        reason = str(error)
    if reason[:1].isupper():
        raise WrongUse(f"{option} {text!r}: {reason}")
    raise WrongUse(
        f"{option} {text!r} {reason}" if reason.endswith(".") else f"{option} {text!r} {reason}: write {UNDERSTOOD}."
    )
