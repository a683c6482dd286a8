"""The order in which consumers start that wait at the same time: the one with the oldest pending event first.

An event that its consumer has passed over does not count: it may stay for ever, and others would never have their turn.
Events go by their numbers, which the clock does not change.
Starts go by the time since when they wait. Where that is not the order of the events, or does not tell them apart,
those that come first are put back by as little as it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.domains.workflows.turns.tables import Turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wakeful.domains.workflows.arming import LockedJobs
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobState


def waits_since(state: JobState, now: int) -> int | None:
    """Since when a start of the job waits for its turn; None where none does."""
    if not state.queued or not state.enabled or state.paused:
        return None
    idle = state.run_id is None and state.parked is None
    since = state.due_at if idle else state.ready_at
    return since if since is not None and since <= now else None


def line_up(tx: Transaction, jobs: LockedJobs) -> None:
    """Let the consumers that wait start in the order of their oldest pending events."""
    waiting = [
        (handler, state, since)
        for handler in jobs.handlers()
        if handler.type == "consumer" and handler.job_id is not None
        if (state := jobs.state(handler.job_id)) is not None
        if (since := waits_since(state, tx.now)) is not None
    ]
    if len(waiting) < 2:
        return
    oldest = by_number(tx.of(Turns).oldest_left(jobs.workflow, [handler for handler, _, _ in waiting]))
    waiting.sort(key=lambda one: (*oldest.get(one[0].name, (one[2], 0)), one[1].job_id))
    times = in_order([(since, state.job_id) for _, state, since in waiting])
    moved = [_since(state, at) for (_, state, since), at in zip(waiting, times, strict=True) if at != since]
    tx.jobs.save(moved)
    for state in moved:
        jobs.keep(state)


def by_number(oldest: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Times and numbers of events, each of a handler, with times that go up with the numbers.

    An event that is older than another was published no later, whatever the clock said.
    """
    found: dict[str, tuple[int, int]] = {}
    latest: int | None = None
    for name, (at, seq) in sorted(oldest.items(), key=lambda one: one[1][1], reverse=True):
        latest = at if latest is None else min(at, latest)
        found[name] = latest, seq
    return found


def in_order(starts: Sequence[tuple[int, int]]) -> list[int]:
    """The times of these starts, each of a job, that make them go one after the other.

    Of starts at the same time the one of the lower job goes first. A start that would not go before the next is moved
    to that one's time, or to just before it.
    """
    found: list[tuple[int, int]] = []
    for at, job_id in reversed(starts):
        if found and (at, job_id) > found[-1]:
            following, other = found[-1]
            at = following if job_id < other else following - 1  # noqa: PLW2901 - the time that it has from here on
        found.append((at, job_id))
    return [at for at, _ in reversed(found)]


def _since(state: JobState, at: int) -> JobState:
    if state.run_id is not None or state.parked is not None:
        return state._replace(ready_at=at)
    return state._replace(due_at=at, ready_at=None if state.ready_at is None else min(at, state.ready_at))
