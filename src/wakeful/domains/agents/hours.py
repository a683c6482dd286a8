"""Active hours of a heartbeat: they hold for every call of the agent whose only cause is the interval.

They are checked when the call is made. A beat may have waited for the agent, a budget, a rate limit or a further
attempt until its hours were over; it then waits for the next ones. What anyone else asked for is not bound to hours.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.naming import HEARTBEAT
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.waking import COALESCE_MS, only_by_interval
from wakeful.kernel.hooks import Refused
from wakeful.triggers import trigger_from_data
from wakeful.triggers.active_hours import ActiveHours
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef
    from wakeful.triggers import Trigger

CLOSED = "outside_active_hours"


def within_hours(trigger: Trigger, payload: Mapping[str, Any]) -> Trigger:
    """A trigger with the hours of a heartbeat, as if they were its own."""
    hours = payload.get("active_hours")
    return trigger if hours is None else trigger_from_data({**trigger.to_data(), "active_hours": hours})


def hours_of_beat(job: JobDef) -> ActiveHours | None:
    """The hours of a job that is a heartbeat; None where it has none."""
    if '"active_hours"' not in job.payload:
        return None
    hours = json.loads(job.payload).get("active_hours")
    return None if hours is None else ActiveHours.read(hours)


def beat_at(job: JobDef, due: int | None, now: int) -> int | None:
    """When a job that is due then starts: outside of the hours of a heartbeat, when they begin."""
    hours = hours_of_beat(job)
    if hours is None or due is None:
        return due
    at = max(due, now)
    return due if hours.is_open(at) else hours.opens(at)


def opening(payload: dict[str, Any], now: int) -> int | None:
    """When the hours of a heartbeat begin next; None where it is within them now, or has none."""
    if payload.get("active_hours") is None:
        return None
    opens = ActiveHours.read(payload["active_hours"]).opens(now)
    return None if opens == now else opens


def opening_of(tx: Transaction, agent: str) -> int | None:
    """When the hours of an agent's heartbeat begin next; None where they are open, or it has none."""
    found = tx.jobs.by_name(f"{agent}.{HEARTBEAT}")
    return None if found is None else opening(json.loads(found[0].payload), tx.now)


def refuse_closed(tx: Transaction, job: JobDef, agent: str) -> Refused | None:
    """What stands against the start of a woken agent: it is due for its interval alone, outside the hours.

    That run waits for the hours. A run alongside it that somebody asked for does not.
    """
    queued = sorted((run.due_at, run.id, run.reason) for run in tx.runs.open(job.id) if run.status == "queued")
    tables = tx.of(AgentTables)
    if not queued or queued[0][0] > tx.now:
        return None
    (_, run_id, reason), others = queued[0], queued[1:]
    wake = tables.wake(job.id)
    if not only_by_interval(reason, wake, carried_by(tx, run_id)):
        return None
    opens = opening_of(tx, agent)
    if opens is None:
        return None
    due = opens + COALESCE_MS  # with the beat that comes when the hours begin
    tx.runs.reschedule(run_id, due)
    if wake is not None and wake.run_id == run_id:
        tables.put_wake(wake._replace(due_at=due))
    again = min([due, *(max(due_at, tx.now + 1) for due_at, _, _ in others)])
    return Refused(CLOSED, f"the active hours of {agent}.{HEARTBEAT} begin at {iso(opens)}", again)


def carried_by(tx: Transaction, run_id: int) -> dict[str, Any]:
    """What a run has kept of the wake it took before it was cut off, put off or given back."""
    details = tx.runs.details(run_id)
    found = json.loads(details.payload) if details is not None and details.payload is not None else {}
    return found if isinstance(found, dict) else {}
