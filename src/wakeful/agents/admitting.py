"""Whether a job of an agent may start now: hours of its heartbeat, the rate limit of its account, and budgets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful.agents.budgets.spending import refuse_start
from wakeful.agents.inherited import whole_payload
from wakeful.agents.runners.spec import account_of
from wakeful.agents.tables import AgentTables
from wakeful.kernel.kinds import Refused
from wakeful.triggers.active_hours import ActiveHours
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState


def admit(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
    """None, or why not and until when the start waits. A start that was asked for is not bound to hours."""
    payload: dict[str, Any] = json.loads(job.payload)
    if payload["does"] == "beat":
        opens = None if state.queued else opening(payload, tx.now)
        return None if opens is None else Refused("outside_active_hours", f"its hours begin at {iso(opens)}", opens)
    account = account_of(whole_payload(tx, payload).get("runner") or {})
    limit = tx.of(AgentTables).limit(account) if account is not None else None
    if limit is None or limit[0] <= tx.now:
        return refuse_start(tx, context, job, state)
    until, why = limit
    return Refused("rate_limited", f"the account {account} is at its limit until {iso(until)}: {why}", until)


def opening(payload: dict[str, Any], now: int) -> int | None:
    """When the hours of a heartbeat begin next; None where it is within them now, or has none."""
    if payload.get("active_hours") is None:
        return None
    opens = ActiveHours.read(payload["active_hours"]).opens(now)
    return None if opens == now else opens
