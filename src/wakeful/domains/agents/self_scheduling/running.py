"""Runs of schedules that agents made: what they follow from; and the end of the question about such a schedule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.hops import RequestingAgent, hops_of
from wakeful.domains.agents.senders.tables import Senders
from wakeful.kernel.engine.ending import MCP, PROPOSED
from wakeful.store.owners import Proposals
from wakeful.store.records import RunDetails

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow


def begin(tx: Transaction, job: JobDef, run: RunRow) -> dict[str, Any]:
    """What a run of such a schedule takes with it: how many runs led to it, and whether its words are from outside."""
    made = tx.of(Proposals).of([job.id]).get(job.id) if job.source == MCP else None
    if made is None:
        return {}
    if made.outside:
        tx.of(Senders).feed(run.id)
    hops = max(made.hops, hops_of(tx, run.id))
    if hops:
        tx.runs.detail([RunDetails(run.id, payload=json.dumps({**json.loads(job.payload), "hops": hops}))])
    return {"by_agent": True, "hops": hops, "is_outside": bool(made.outside)}


def sender_in(payload: Mapping[str, Any], run_id: int) -> RequestingAgent | None:
    """The agent as the sender of a reminder that it has set itself; None for every other schedule."""
    if not payload.get("by_agent"):
        return None
    return RequestingAgent(payload["agent"], run_id, int(payload.get("hops", 0)), bool(payload.get("is_outside")))


def end_question(tx: Transaction, job: JobDef, run: RunRow, result: Result) -> bool:
    """Whether the run was the question about a schedule. What a person has approved has no hops any more."""
    if run.reason != PROPOSED:
        return False
    made = tx.of(Proposals).of([job.id]).get(job.id)
    if made is not None and result.outcome == "noop":
        tx.of(Proposals).put(made._replace(hops=0))
    return True
