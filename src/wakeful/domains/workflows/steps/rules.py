"""What follows when an event has failed: a further attempt, a stop, or being set aside. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from wakeful.domains.workflows.timing import ATTENTION_AFTER, backoff

Follows = Literal["retry", "stop", "park"]
MAX_HOPS = 20  # from workflow to workflow


class RetryDecision(NamedTuple):
    """What follows, and when it is tried again."""

    follows: Follows
    at: int | None = None


def fate(failure: str, tries: int, retry: Sequence[int] | None, on_failure: str, now: int) -> RetryDecision:
    """What follows the n-th failed attempt at an event.

    Without `retry`, what may be over by itself is tried again four times. A mistake in the code is tried again only
    where the author asked for it; one that Wakeful found (`mistake`) would be found again.
    """
    last = RetryDecision("park" if on_failure == "park" else "stop")
    if failure == "mistake":
        return last
    if retry is not None:
        return RetryDecision("retry", now + retry[tries - 1]) if tries <= len(retry) else last
    if failure == "transient" and tries < ATTENTION_AFTER:
        return RetryDecision("retry", now + backoff(tries))
    return last
