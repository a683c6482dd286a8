"""The rules of wakes, system events and heartbeats: pure functions.

| reason | priority | who asks |
|---|---|---|
| retry | 0 | a run that failed |
| interval | 1 | the heartbeat |
| cron, message, agent | 2 | a schedule with `target: main`, a message, a run of an agent |
| manual, hook | 3 | a person, a webhook |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

COALESCE_MS = 250
FIRST_RETRY_MS = 1_000
MOST_EVENTS = 50
PRIORITIES = {"retry": 0, "interval": 1, "cron": 2, "message": 2, "agent": 2, "manual": 3, "hook": 3}
REASONS = tuple(reason for reason in PRIORITIES if reason not in ("retry", "agent"))  # that may be asked for
LONGEST_EVENT = 20_000
_SEEN = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]"
EVENT_LABEL = rf"^{_SEEN}*[^\s\x00-\x1f\x7f-\xa0\u2028\u2029]{_SEEN}*$"
"""Who an event is from and its key: one line that is not blank."""


class Wake(NamedTuple):
    """What an agent is to be woken for."""

    job_id: int
    reason: str
    due_at: int
    requested_at: int
    run_id: int = 0
    hops: int = 0  # runs of agents that led to it


class Event(NamedTuple):
    """Something an agent is to hear when it is next woken."""

    id: int
    job_id: int
    text: str
    source: str | None
    context_key: str | None
    at: int
    run_id: int | None = None
    outside: int = 0  # 1: others wrote it, and it is only data
    hops: int = 0  # runs of agents that led to it


def requested(known: Wake | None, job_id: int, reason: str, now: int, hops: int = 0) -> Wake:
    """The wake after one more request: the first sets the time, the most important the reason, the most the hops."""
    if known is None:
        return Wake(job_id, reason, now + COALESCE_MS, now, hops=hops)
    higher = PRIORITIES[reason] > PRIORITIES[known.reason]
    # What waits for a retry is not held back by it; what is due sooner stays so.
    return known._replace(
        reason=reason if higher else known.reason,
        due_at=min(known.due_at, now + COALESCE_MS),
        hops=max(known.hops, hops),
    )


def after_failure(known: Wake | None, job_id: int, failures: int, now: int, ladder: Sequence[int]) -> Wake:
    """The wake after a run that failed: again after a second, then by the ladder."""
    steps = (FIRST_RETRY_MS, *ladder)
    again = Wake(job_id, "retry", now + steps[min(failures, len(steps)) - 1], now)
    return again if known is None else known._replace(due_at=min(known.due_at, again.due_at))


def surplus(waiting: Sequence[Event], most: int = MOST_EVENTS) -> list[int]:
    """The ids of waiting events that must go: those replaced by a newer one with their key, then the oldest."""
    newest = {event.context_key: event.id for event in sorted(waiting) if event.context_key is not None}
    replaced = {
        event.id for event in waiting if event.context_key is not None and newest[event.context_key] != event.id
    }
    left = sorted(event.id for event in waiting if event.id not in replaced)
    return sorted([*replaced, *left[: max(0, len(left) - most)]])


class Heard(NamedTuple):
    """A reply as it is handled: its outcome, and what is delivered of it."""

    outcome: str  # sent, ok-ack or ok-empty
    text: str


def heard(reply: str, token: str | None, most: int) -> Heard:
    """Empty is `ok-empty`; the token and at most `most` further characters `ok-ack`; else the rest is `sent`."""
    text = reply.strip()
    if not text:
        return Heard("ok-empty", "")
    if token is None or token not in text:
        return Heard("sent", text)
    rest = text.replace(token, "").strip()
    return Heard("ok-ack", rest) if len(rest) <= most else Heard("sent", rest)
