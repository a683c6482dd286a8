"""Agents in simulations and forecasts: their kind without what reaches outside, and what their budgets are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.budgets.rules import Spent, caps_of, in_units, own_budget
from wakeful.domains.agents.budgets.spending import ASKING, limits_of, reserve, settle, spent_today
from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.hours import within_hours
from wakeful.domains.agents.naming import AGENT, agent_of, wake_job
from wakeful.domains.agents.runners.spec import DEFAULT_TIMEOUT_MS
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.wakes import add_event, end_run, take_wake, wake_unless_disabled
from wakeful.kernel.domain import Budget, Spending
from wakeful.kernel.rules.policy import trigger_of, trigger_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wakeful.domains.agents.budgets.rules import Caps
    from wakeful.kernel.context import Context
    from wakeful.kernel.kinds import Kind
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow

LEADING = ("beat", "event")  # what wakes the agent, and is no call of it


def simulated(kind: Kind) -> Kind:
    """The kind with its budgets and wakes, and without replies, sessions, work items and requests."""
    return kind._replace(claimed=_claimed, ended=_ended, stored=None, resumed=None)


def _claimed(tx: Transaction, _: Context, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    reserve(tx, job, run)
    woken = take_wake(tx, job, run)
    payload = json.loads(job.payload)
    whole = effective_payload(tx, payload)
    return {**({} if whole is payload else whole), **(woken or {})} or None


def _ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    settle(tx, run, result)
    end_run(tx, context, job, run, result)
    payload = json.loads(job.payload)
    if result.outcome != "success" or payload["does"] not in LEADING:
        return
    # A handler would do this; a simulation has none.
    agent, beats = payload["agent"], payload["does"] == "beat"
    if tx.jobs.by_name(wake_job(agent)) is None:
        return
    if not beats:
        schedule = payload["schedule"]
        add_event(tx, context, agent, f"It is time for {schedule}.", source="cron", context_key=schedule)
    wake_unless_disabled(tx, context, agent, "interval" if beats else "cron")


def spending(tx: Transaction | None) -> Spending:
    """Whose runs count toward which budget, and what each has used today."""
    if tx is None:
        return Spending((AGENT,), owner_of, leads_to, (), queue_of, {}, limit_of, times_of)
    limits = limits_of(tx)
    wakes = [job for job in tx.jobs.of_kinds([AGENT]) if job.name == wake_job(agent_of(job.name))]
    together, each = spent_today(tx, [agent_of(job.name) for job in wakes])
    budgets = [_budget(None, limits.zone, limits.caps, together)] if wakes else []
    for job in wakes:
        agent = agent_of(job.name)
        caps = caps_of(own_budget(json.loads(job.payload).get("budget"), limits))
        budgets.append(_budget(agent, limits.zone, caps, each[agent]))
    waiting = tx.of(AgentTables).ready_counts([agent_of(job.name) for job in wakes])
    return Spending((AGENT,), owner_of, leads_to, budgets, queue_of, waiting, limit_of, times_of)


def owner_of(name: str, payload: str) -> str | None:
    """The agent that a run of the job calls; None where it calls none itself."""
    return agent_of(name) if json.loads(payload)["does"] in ASKING else None


def queue_of(payload: str) -> str | None:
    """The agent whose items a run of the job takes; None where it works on none."""
    given = json.loads(payload)
    return given["agent"] if given.get("work") and given["does"] != "wake" else None


def limit_of(payload: str) -> int | None:
    """The limit of a call of the agent, which ends it before the time limit of the job does."""
    given = json.loads(payload)
    return given["runner"].get("timeout") or DEFAULT_TIMEOUT_MS if given.get("runner") else None


def times_of(trigger: str, payload: str) -> str:
    """The trigger of a heartbeat with its hours, which are in the payload."""
    if '"active_hours"' not in payload:
        return trigger
    return trigger_text(within_hours(trigger_of(trigger), json.loads(payload)))


def leads_to(name: str, payload: str) -> str | None:
    """The job that runs the agent, for those that wake it."""
    return wake_job(agent_of(name)) if json.loads(payload)["does"] in LEADING else None


def _budget(owner: str | None, zone: str, caps: Caps, spent: Spent) -> Budget:
    cost = None if caps.cost is None else in_units(caps.cost)
    used = in_units(spent.cost + spent.held_cost)
    return Budget(owner, zone, caps.runs, cost, caps.tokens, spent.runs + spent.held_runs, used, spent.tokens)
