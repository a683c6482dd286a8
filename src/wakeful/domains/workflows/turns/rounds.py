"""Rounds: runs of a workflow's consumers, one directly after another, counted until the workflow has nothing to do.

After a hundred rounds a producer that is due has its turn. Where consumers feed each other, and the rounds have made at
least as many events as they consumed and consumed none that is new, they may go on like this for ever: then they rest.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.workflows.arming import postpone
from wakeful.domains.workflows.timing import MAX_ROUNDS, REST_MS, YIELD_MS
from wakeful.domains.workflows.turns.order import waits_since
from wakeful.domains.workflows.turns.tables import Turns, Worked

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wakeful.domains.workflows.arming import LockedJobs
    from wakeful.domains.workflows.tables import HandlerRow, WorkflowRun
    from wakeful.store.interface import Transaction

RESTS = "its workflow rests for 30 s after 100 rounds that worked on nothing but their own events"


WORKERS = ("consumer", "steps")  # the types of handlers that work on events


class Round(NamedTuple):
    """How many rounds a handler has made now, whose are counted anew, and what the author should know."""

    made: int
    anew: Sequence[HandlerRow] = ()
    note: str | None = None


def end_round(tx: Transaction, jobs: LockedJobs, attempt: WorkflowRun) -> Round:
    """Count the round that this run was, or end the count; let others have their turn, or all consumers rest."""
    own = next((one.rounds for one in jobs.handlers() if one.name == attempt.handler), 0)
    anew = [one for one in jobs.handlers() if one.rounds and one.name != attempt.handler and one.job_id is not None]
    waiting = _waiting(tx, jobs, *WORKERS)
    if attempt.type not in WORKERS or not waiting:
        return Round(0, anew)
    if own + sum(one.rounds for one in anew) + 1 < MAX_ROUNDS:
        return Round(own + 1)
    # Without the first of them, which may have taken what started them all.
    rests = goes_round(tx.of(Turns).worked_on(attempt.workflow, MAX_ROUNDS - 1), _fed_again(tx, jobs))
    if rests or _waiting(tx, jobs, "producer"):
        for job_id in waiting:
            postpone(tx, jobs, job_id, tx.now + (REST_MS if rests else YIELD_MS))
    return Round(0, anew, RESTS if rests else None)


def goes_round(worked: Worked, fed_again: Collection[str]) -> bool:
    """Whether runs may continue like this for ever; `fed_again`: topics whose events can lead to further ones there.

    Events of other topics come to an end. So do those of these topics, where fewer are made than are consumed.
    """
    consumed = sum(count for topic, count in worked.consumed.items() if topic in fed_again)
    published = sum(count for topic, count in worked.published.items() if topic in fed_again)
    return not worked.new and published >= consumed and (published > 0 or not worked.consumed)


def _fed_again(tx: Transaction, jobs: LockedJobs) -> set[str]:
    """Those of a workflow's topics; a handler that does not say what it publishes is taken at what it did."""
    consumers = [handler for handler in jobs.handlers() if handler.type in WORKERS]
    says = all(handler.publishes is not None for handler in consumers)
    seen = {} if says else tx.of(Turns).published_by(jobs.workflow)
    leads: dict[str, set[str]] = {}
    for handler in consumers:
        to = seen.get(handler.name, set()) if handler.publishes is None else set(json.loads(handler.publishes))
        for topic in handler.topics():
            leads.setdefault(topic, set()).update(to)
    return fed_again(leads)


def fed_again(leads: Mapping[str, Collection[str]]) -> set[str]:
    """The topics from which events lead back to the same topic; `leads`: from each topic, where those go directly."""
    found = set()
    for topic in leads:
        reached: set[str] = set()
        ahead = list(leads[topic])
        while ahead:
            one = ahead.pop()
            if one not in reached:
                reached.add(one)
                ahead.extend(leads.get(one, ()))
        if topic in reached:
            found.add(topic)
    return found


def _waiting(tx: Transaction, jobs: LockedJobs, *kinds: str) -> list[int]:
    """The jobs of handlers of these types that would start now."""
    found = []
    for handler in jobs.handlers():
        state = jobs.state(handler.job_id) if handler.job_id is not None else None
        if handler.type not in kinds or state is None:
            continue
        slot_due = handler.type == "producer" and state.next_at is not None and state.next_at <= tx.now
        if waits_since(state, tx.now) is not None or (slot_due and state.enabled and not state.paused):
            found.append(state.job_id)
    return found
