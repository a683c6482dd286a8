"""Whether a job of an agent may start now: hours of its heartbeat, the rate limit of its account, and budgets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.budgets.spending import over_budget, refuse_start
from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.hours import CLOSED, opening, opening_of, refuse_closed
from wakeful.domains.agents.inbound.listening import answer_waiting
from wakeful.domains.agents.limits.holding import RATE_LIMITED, limit_of
from wakeful.domains.agents.runners.spec import limited_as
from wakeful.kernel.hooks import Refused
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.domains.agents.waking import AgentWake
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState


def admit(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
    """None, or why not and until when the start waits. People whose messages wait with it are told."""
    refused = _refused(tx, context, job, state)
    if refused is not None and refused.reason and refused.until is not None and state.queued:
        answer_waiting(tx, context, job, refused.detail or refused.reason)
    return refused


def _refused(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
    """A start that was asked for is not bound to hours."""
    payload: dict[str, Any] = json.loads(job.payload)
    if payload["does"] == "beat":
        opens = None if state.queued else opening(payload, tx.now)
        return None if opens is None else Refused(CLOSED, f"its hours begin at {iso(opens)}", opens)
    if payload["does"] == "wake" and (refused := refuse_closed(tx, job, payload["agent"])) is not None:
        return refused
    limit = limit_of(tx, limited_as(effective_payload(tx, payload)))
    if limit is None:
        return refuse_start(tx, context, job, state)
    detail = f"the account {limit.account} is at its limit until {iso(limit.until)}: {limit.why}"
    return Refused(RATE_LIMITED, detail, limit.until)


def waits_for(tx: Transaction, job: JobDef, wake: AgentWake) -> tuple[str | None, int | None]:
    """Why a start that is requested now waits, and until when where that is known; None if it does not wait."""
    if tx.nodes.held() is not None:
        return "held", None
    payload = effective_payload(tx, json.loads(job.payload))
    opens = opening_of(tx, payload["agent"]) if wake.by_interval else None
    if opens is not None:
        return CLOSED, opens
    limit = limit_of(tx, limited_as(payload))
    return (RATE_LIMITED, limit.until) if limit is not None else over_budget(tx, payload)
