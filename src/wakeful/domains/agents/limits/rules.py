"""How long a rate limit lasts: pure functions. An account's limit holds for all agents that name it.

| what the tool says | the limit lasts |
|---|---|
| a time in a field of its output, or in its error | until then |
| a time in what it printed otherwise, which anybody could have written | until then, an hour at most |
| no time, and that what was bought or allotted is used up | an hour |
| no time | 15 minutes |

A limit that is met again within a day is the same incident, unless a run succeeded in between.
"""

from __future__ import annotations

from typing import NamedTuple

from wakeful.domains.agents.runners.turn import Limited

UNSAID_MS = 15 * 60_000
UNCONFIRMED_MS = QUOTA_MS = 60 * 60_000
ALERT_MS = 6 * 3_600_000
OVER_MS = 24 * 3_600_000


class RateLimit(NamedTuple):
    """The rate limit of an account: when it ends, what the tool said, and since when no run has succeeded."""

    account: str
    until: int
    why: str
    since: int  # 0: met before this was stored


def ends_at(limited: Limited, now: int) -> int:
    """When a limit ends; after that the account is tried again."""
    if limited.until is None:
        return now + (QUOTA_MS if limited.is_quota else UNSAID_MS)
    return limited.until if limited.confirmed else min(limited.until, now + UNCONFIRMED_MS)


def met_again(known: RateLimit | None, account: str, until: int, why: str, now: int) -> RateLimit:
    """The limit after a call that met it; of two calls that met it at once, the later end counts."""
    if known is None or is_over(known, now):
        return RateLimit(account, until, why, now)
    since = known.since or now
    return RateLimit(account, until, why, since) if until > known.until else known._replace(since=since)


def is_over(limit: RateLimit, now: int) -> bool:
    """Whether a limit has not been met for so long that meeting it is another incident."""
    return limit.until + OVER_MS <= now


def needs_a_person(limit: RateLimit, now: int) -> bool:
    """Whether an account has been at its limit for so long that a person should know."""
    return limit.until > now and bool(limit.since) and limit.since + ALERT_MS <= now
