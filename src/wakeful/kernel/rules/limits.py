"""How often a job that was not made by the operator may run.

The last author of a job's trigger sets the trust in it. What came over the API or from an agent carries the option
`bounded` and obeys the server's minimum interval: it is refused when it is written, and should the limit be raised
later, or the record be changed behind our back, its slots are passed over when they come.

What counts is the smallest gap between two slots that the trigger allows, ever, by the clock on the wall: neither
jitter and stagger, which only move a start within its period, nor the hour a clock change takes away once a year.
"""

from __future__ import annotations

from wakeful.errors import TooOften
from wakeful.triggers import Trigger

MIN_INTERVAL_MS = 3_600_000
BELOW = "below_min_interval"  # the reason a slot is refused for

_SECOND, _MINUTE, _HOUR = 1_000, 60_000, 3_600_000


def too_often(trigger: Trigger, limit_ms: int | None) -> bool:
    """Whether two slots of the trigger can ever lie closer together than the limit; None and 0 are no limit."""
    gap = trigger.min_gap_ms() if trigger.timed else None
    return bool(limit_ms) and gap is not None and gap < (limit_ms or 0)


def refuse_too_often(trigger: Trigger, limit_ms: int | None) -> None:
    """TooOften, with the limit in words, when the trigger asks for more than the limit gives."""
    if too_often(trigger, limit_ms):
        raise TooOften(limit_words(limit_ms or 0))


def limit_words(limit_ms: int) -> str:
    """The limit as people read it: "Minimum interval is 60 minutes (1 hour)"."""
    if limit_ms % _MINUTE:
        return f"Minimum interval is {_counted(limit_ms / _SECOND, 'second')}"
    hours = f" ({_counted(limit_ms / _HOUR, 'hour')})" if limit_ms % _HOUR == 0 else ""
    return f"Minimum interval is {_counted(limit_ms / _MINUTE, 'minute')}{hours}"


def _counted(count: float, noun: str) -> str:
    return f"{count:.15g} {noun}" if count == 1 else f"{count:.15g} {noun}s"
