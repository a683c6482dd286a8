"""The rules of wakes, system events and heartbeats: pure functions.

| reason | priority | who asks |
|---|---|---|
| retry | 0 | a run that failed |
| interval | 1 | the heartbeat |
| cron, message, agent | 2 | a schedule with `target: main`, a message, a run of an agent |
| manual, hook | 3 | a person, a webhook |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

COALESCE_MS = 250
FIRST_RETRY_MS = 1_000
MOST_EVENTS = 50
PRIORITIES = {"retry": 0, "interval": 1, "cron": 2, "message": 2, "agent": 2, "manual": 3, "hook": 3}
REASONS = tuple(reason for reason in PRIORITIES if reason not in ("retry", "agent"))  # that may be asked for
INTERVAL = "interval"
LONGEST_EVENT = 20_000
WRITTEN, RELAYED, CAUSED = 1, 2, 3  # by others; by a run that was given text from outside; because of such a run
_SEEN = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]"
EVENT_LABEL = rf"^{_SEEN}*[^\s\x00-\x1f\x7f-\xa0\u2028\u2029]{_SEEN}*$"
"""Who an event is from and its key: one line that is not blank."""


class AgentWake(NamedTuple):
    """What an agent is to be woken for."""

    job_id: int
    reason: str
    due_at: int
    requested_at: int
    run_id: int = 0
    hops: int = 0  # runs of agents that led to it
    by_interval: int = 0  # 1: nothing but the heartbeat's interval asked for it
    outside: int = 0  # 1: a run that was given text from outside led to it


class WakeEvent(NamedTuple):
    """Something an agent is to hear when it is next woken."""

    id: int
    agent: str
    text: str
    source: str | None
    context_key: str | None
    at: int
    run_id: int | None = None
    outside: int = 0  # WRITTEN, RELAYED: it is only data; CAUSED: its text is our own
    hops: int = 0  # runs of agents that led to it
    sender: str | None = None  # the agent whose run left it, or a person's chat; None: a person here, or a schedule

    @property
    def is_data(self) -> bool:
        """Whether others wrote it, at first or second hand."""
        return self.outside in (WRITTEN, RELAYED)


def requested(
    known: AgentWake | None, job_id: int, reason: str, now: int, hops: int = 0, *, is_outside: bool = False
) -> AgentWake:
    """The wake after one more request: the first sets the time, the most important the reason, the most the hops.

    `is_outside`: a run asked that was given text from outside; that stays so, whoever else asks.
    """
    if known is None:
        by_interval, outside = int(reason == INTERVAL), int(is_outside)
        return AgentWake(job_id, reason, now + COALESCE_MS, now, hops=hops, by_interval=by_interval, outside=outside)
    higher = PRIORITIES[reason] > PRIORITIES[known.reason]
    # What waits for a retry is not held back by it; what is due sooner stays so.
    return known._replace(
        reason=reason if higher else known.reason,
        due_at=min(known.due_at, now + COALESCE_MS),
        hops=max(known.hops, hops),
        by_interval=known.by_interval if reason == INTERVAL else 0,
        outside=max(known.outside, int(is_outside)),
    )


def after_failure(known: AgentWake | None, job_id: int, failures: int, now: int, ladder: Sequence[int]) -> AgentWake:
    """The wake after a run that failed: again after a second, then by the ladder."""
    steps = (FIRST_RETRY_MS, *ladder)
    again = AgentWake(job_id, "retry", now + steps[min(failures, len(steps)) - 1], now)
    return again if known is None else known._replace(due_at=min(known.due_at, again.due_at))


def only_by_interval(reason: str, wake: AgentWake | None, carried: Mapping[str, Any]) -> bool:
    """Whether a run starts for the heartbeat's interval alone.

    `reason`: its own; `wake`: what waits and is taken by it; `carried`: what it has kept of a wake that it took before.
    """
    if reason == "manual":
        return False
    causes = [] if wake is None else [wake.by_interval]
    causes += [carried.get("by_interval", 0)] if "reason" in carried else []
    return bool(causes) and all(causes)


def surplus(waiting: Sequence[WakeEvent], most: int = MOST_EVENTS) -> list[int]:
    """The ids of waiting events that must go: those replaced by a newer one with their sender's key, then one by one.

    Room is made by the sender of the newest, else by the sender with the most; what has no sender stays, unless it is
    all there is. So the newest goes itself where its sender has no other and nobody has more than one.
    """
    newest = {(event.sender, event.context_key): event.id for event in sorted(waiting)}
    left = [
        event
        for event in sorted(waiting)
        if event.context_key is None or newest[event.sender, event.context_key] == event.id
    ]
    while len(left) > most:
        left.remove(_first_to_go(left))
    kept = {event.id for event in left}
    return sorted(event.id for event in waiting if event.id not in kept)


def _first_to_go(waiting: Sequence[WakeEvent]) -> WakeEvent:
    """Of events in their order, the one that makes room."""
    counts, newest = Counter(event.sender for event in waiting if event.sender is not None), waiting[-1]
    if not counts:
        return waiting[0]
    most, sender = max((number, sender) for sender, number in counts.items())
    if newest.sender is not None and (counts[newest.sender] > 1 or most == 1):
        sender = newest.sender
    return next(event for event in waiting if event.sender == sender)
