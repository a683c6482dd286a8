"""Agents that wake agents: how far a row of them may go, and that text from outside stays marked on its way.

What a person, a schedule or a webhook causes has no hops. A run has as many as the most of what it was woken for and
hears, and what it causes has one more. Beyond `MOST_HOPS` nothing is stored, so that agents that wake each other stop.
What a run writes is text from outside if the run, or one that led to it, was given such text (`senders/`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.domains.agents.senders.feeding import is_fed
from wakeful.errors import NotAllowed, ScheduleTriggerError

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

MOST_HOPS = 5
TOO_MANY = "too_many_hops"


class TooManyHops(ScheduleTriggerError):
    """A wake or an event to which too many runs of agents led; nothing was stored."""

    code = TOO_MANY


class RequestingAgent(NamedTuple):
    """An agent whose run asks for something, how many hops that has, and whether its text is from outside."""

    agent: str
    run_id: int
    hops: int
    is_fed: bool = False

    def source(self, given: str | None) -> str:
        """Where an event comes from: the agent, and what it says itself."""
        return self.agent if given is None else f"{self.agent}/{given}"


def sender_of(tx: Transaction, run_id: int) -> RequestingAgent:
    """Who asks with the token of a run; NotAllowed once that run has ended."""
    run = tx.runs.get(run_id)
    job = tx.jobs.definitions([run.job_id]).get(run.job_id) if run is not None else None
    if run is None or job is None or run.status != "active":
        message = f"{ids.run_text(run_id)} has ended, and its token with it."
        raise NotAllowed(message)
    return RequestingAgent(json.loads(job.payload)["agent"], run_id, hops_of(tx, run_id) + 1, is_fed(tx, run_id))


def hops_of(tx: Transaction, run_id: int) -> int:
    """How many runs of agents led to a run."""
    details = tx.runs.details(run_id)
    carried = json.loads(details.payload) if details is not None and details.payload is not None else None
    return int(carried.get("hops", 0)) if isinstance(carried, dict) else 0


def too_far(agent: str, sender: RequestingAgent) -> TooManyHops:
    """The refusal of what goes too far."""
    message = (
        f"{agent} is neither woken nor left an event: {ids.run_text(sender.run_id)} of {sender.agent} is "
        f"{counted(sender.hops - 1, 'hop')} from where this began, and {MOST_HOPS} is the most."
    )
    return TooManyHops(message, {"agent": agent, "reason": TOO_MANY})
