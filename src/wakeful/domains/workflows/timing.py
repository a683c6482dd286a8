"""When handlers run again: wake times, backoff, reconciling, and what is due after a commit. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from wakeful.domains.workflows.failures import shown
from wakeful.triggers.moments import iso, to_ms

MIN_WAKE_MS = 30_000
MAX_WAKE_MS = 86_400_000
FIRST_BACKOFF_MS = 10_000
MAX_BACKOFF_MS = 600_000
ATTENTION_AFTER = 5  # transient failures in a row
MAX_FIXES = 3  # corrections that are requested between two commits of a handler
MAX_CRASHES = 5  # that a handler is blamed for between two commits
RECONCILE_LIMIT_MS = 30_000
RECONCILE_TRIES = 5
FIRST_RECONCILE_MS = 10_000
MAX_RECONCILE_MS = 600_000
MAX_ROUNDS = 100
REST_MS = 30_000
YIELD_MS = 1_000  # long enough for a producer that is due to start, and nobody waits for it otherwise


class WakeTime(NamedTuple):
    """A wake time as it counts, and what its author should know about it."""

    at: int | None
    note: str | None = None


def read_wake_at(given: object, now: int) -> WakeTime:
    """The wake time that prepare asked for, within bounds; one that cannot be read is none."""
    if given is None:
        return WakeTime(None)
    moment = _moment(given)
    if moment is None:
        return WakeTime(
            None, f"wake_at {shown(given)} was dropped: it is no time with a zone, such as 2024-01-15T09:00:00Z"
        )
    if moment < now + MIN_WAKE_MS:
        return WakeTime(
            now + MIN_WAKE_MS, f"wake_at {iso(moment)} was moved to {iso(now + MIN_WAKE_MS)}, 30 s from now"
        )
    if moment > now + MAX_WAKE_MS:
        return WakeTime(
            now + MAX_WAKE_MS, f"wake_at {iso(moment)} was moved to {iso(now + MAX_WAKE_MS)}, 24 h from now"
        )
    return WakeTime(moment)


def within_a_day(wake_at: int | None, now: int) -> int | None:
    """A wake time that was chosen a while ago; it lies further ahead only where the clock was set back since."""
    return None if wake_at is None else min(wake_at, now + MAX_WAKE_MS)


def _moment(given: object) -> int | None:
    try:
        parsed = datetime.fromisoformat(given) if isinstance(given, str) else given
        if not isinstance(parsed, datetime) or parsed.tzinfo is None:
            return None
        return to_ms(parsed.astimezone(UTC), "wake_at")
    except (ValueError, OverflowError):
        return None


def backoff(failures: int) -> int:
    """How long a workflow waits after the n-th transient failure in a row."""
    return min(FIRST_BACKOFF_MS << min(max(failures - 1, 0), 10), MAX_BACKOFF_MS)


def reconcile_delay(tries: int) -> int | None:
    """The delay after the n-th failed try; None when a person must decide."""
    if tries >= RECONCILE_TRIES:
        return None
    return min(FIRST_RECONCILE_MS << max(tries - 1, 0), MAX_RECONCILE_MS)


def due_after_commit(*, pending: bool, looks_again: bool, wake_at: int | None, now: int) -> int | None:
    """When a consumer that has committed runs again; None: not by itself.

    It looks at its pending events again where one came or changed since its prepare began, and where the run reserved
    some, so that the rest is looked at as well.
    """
    return now if pending and looks_again else wake_at
