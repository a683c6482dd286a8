"""Agents as people see them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.agents.budgets.rules import BudgetLimits, Spent, in_units, own_budget
from wakeful.domains.agents.budgets.spending import limits_of, shown, spent_today, why_over
from wakeful.domains.agents.hours import beat_at
from wakeful.domains.agents.limits.tables import RateLimits
from wakeful.domains.agents.naming import AGENT, HEARTBEAT, WAKE, shared_session
from wakeful.domains.agents.runners.spec import limited_as, passed_names
from wakeful.domains.agents.self_scheduling.bounds import bounds_of
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.wakes import find_agent
from wakeful.kernel.engine.ending import MCP
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.views.cut_off import cut_off_runs
from wakeful.store.listing import JobFilter, status_at_rest, status_of
from wakeful.store.owners import Proposals
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.kernel.cluster.nodes import Seen
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

Pair = tuple["JobDef", "JobState"]


def agent_views(tx: Transaction, seen: Seen | None = None) -> list[dict[str, Any]]:
    """All agents, by name; with `seen`, runs whose server has ended are not running."""
    by_agent: dict[str, list[Pair]] = {}
    for pair in tx.jobs.matching(JobFilter(kind=AGENT)):
        by_agent.setdefault(json.loads(pair[0].payload)["agent"], []).append(pair)
    counted = _count(tx, [pair for pairs in by_agent.values() for pair in pairs], list(by_agent), seen)
    return [_summary(name, pairs, counted) for name, pairs in sorted(by_agent.items()) if _wake_of(pairs)]


def agent_view(tx: Transaction, agent: str, seen: Seen | None = None) -> dict[str, Any]:
    """One agent with its schedules, sessions and events; AgentNotFound where there is none."""
    wake, _ = find_agent(tx, agent)
    tables = tx.of(AgentTables)
    numbers = tables.jobs_of(agent)
    jobs, states = tx.jobs.definitions(numbers), tx.jobs.states(numbers)
    pairs = [(jobs[number], states[number]) for number in numbers if number in jobs]
    events = tables.waiting(agent)
    schedules = [pair for pair in pairs if not pair[0].name.endswith((f".{WAKE}", f".{HEARTBEAT}"))]
    counted = _count(tx, pairs, [agent], seen)
    beats = [_schedule(*pair, counted) for pair in pairs if pair[0].name.endswith(f".{HEARTBEAT}")]
    return {
        **_summary(agent, pairs, counted),
        "description": json.loads(wake.payload).get("description"),
        "env": passed_names(json.loads(wake.payload).get("runner") or {}),
        "schedules": [_schedule(*pair, counted) for pair in schedules],
        "self_schedule": _own_schedules(tx, wake, schedules),
        "sessions": [
            {
                "name": kept.name,
                "session": kept.session,
                "created_at": iso(kept.created_at),
                "used_at": iso(kept.used_at),
            }
            for kept in tables.sessions_of(agent, shared_session(json.loads(wake.payload)))
        ],
        "events": [
            {
                "id": ids.encode("evt", event.id),
                "text": event.text,
                "source": event.source,
                "context_key": event.context_key,
                "at": iso(event.at),
            }
            for event in events
        ],
        "heartbeat": beats[0] if beats else None,
    }


def _own_schedules(tx: Transaction, wake: JobDef, schedules: Sequence[Pair]) -> dict[str, Any]:
    """What an agent may schedule itself, and what it has asked for."""
    known = tx.of(Proposals).of([job.id for job, _ in schedules if job.source == MCP])
    bounds = bounds_of(json.loads(wake.payload).get("self_schedule"))
    asked = [
        {
            "job": job.name,
            "asked_at": iso(known[job.id].asked_at),
            "asked_in": None if (run := known[job.id].asked_in) is None else ids.run_text(run),
            "waits_for": None if (question := known[job.id].run_id) is None else ids.run_text(question),
        }
        for job, _ in schedules
        if job.id in known
    ]
    return {"mode": bounds.mode, "max": bounds.max, "asked": asked}


class _Counted(NamedTuple):
    """What is counted about agents."""

    now: int
    events: Mapping[str, int]
    work: Mapping[str, int]
    skips: Mapping[int, Mapping[str, int]]  # by job
    spent: Mapping[str, Spent]  # by agent
    together: Spent  # by all agents
    limits: BudgetLimits
    cut_off: Container[int | None]  # runs whose server has ended
    asking: Container[int | None]  # runs that wait for a person
    rate_limits: Mapping[str | None, Mapping[str, Any]]  # that hold now, by account


def _count(tx: Transaction, pairs: Sequence[Pair], agents: Sequence[str], seen: Seen | None) -> _Counted:
    """A few questions, however many agents there are."""
    limits, cut_off = limits_of(tx), cut_off_runs(tx, seen)
    if not pairs:
        return _Counted(tx.now, {}, {}, {}, {}, Spent(), limits, cut_off, (), {})
    open_runs = [state.run_id for _, state in pairs if state.run_id is not None]
    asking = tx.runs.asking(open_runs) if open_runs else ()
    tables = tx.of(AgentTables)
    everything = sorted(job.id for job, _ in pairs)
    together, spent = spent_today(tx, agents)
    events, work, skips = tables.waiting_counts(agents), tables.ready_counts(agents), tables.skips(everything)
    held = [limit for limit in tx.of(RateLimits).all() if limit.until > tx.now]
    known: dict[str | None, dict[str, str]] = {
        one.account: {"account": one.account, "until": iso(one.until), "why": one.why} for one in held
    }
    return _Counted(tx.now, events, work, skips, spent, together, limits, cut_off, asking, known)


def _summary(name: str, pairs: Sequence[Pair], counted: _Counted) -> dict[str, Any]:
    wake = _wake_of(pairs)
    assert wake is not None  # noqa: S101 - the caller has looked
    asking = [pair for pair in pairs if json.loads(pair[0].payload)["does"] in ("ask", "wake")]
    latest = max(asking, key=lambda pair: pair[1].last_finished_at or 0)[1]
    failed = [state for _, state in pairs if state.last_error is not None]
    erred = max(failed, key=lambda state: state.last_finished_at or 0, default=None)
    skips: Counter[str] = Counter()
    for job, _ in pairs:
        skips.update(counted.skips.get(job.id, {}))
    runs = [run for _, state in asking if (run := state.run_id) is not None and run not in counted.asking]
    cut_off = sum(run_id in counted.cut_off for run_id in runs)
    payload = json.loads(wake[0].payload)
    used_up = why_over(payload, counted.limits, counted.spent[name], counted.together)
    coming = [at for job, state in pairs if (at := beat_at(job, state.next_at, counted.now)) is not None]
    begun = [state.last_run_at for _, state in asking if state.last_run_at is not None]
    return {
        "name": name,
        "status": _status(wake[1], running=len(runs) > cut_off),
        "running": len(runs) - cut_off,
        "cut_off": cut_off,
        "paused": bool(wake[1].paused),
        "over_budget": used_up[1] if used_up is not None else None,
        "rate_limited": counted.rate_limits.get(limited_as(payload) or ""),
        "max_concurrent": payload.get("max_concurrent", 1),
        "schedules": len([pair for pair in pairs if not pair[0].name.endswith((f".{WAKE}", f".{HEARTBEAT}"))]),
        "next_run_at": iso(min(coming)) if coming else None,
        "last_run_at": iso(max(begun)) if begun else None,
        "last_outcome": latest.last_outcome,
        "last_error": None if erred is None else erred.last_error,
        "events_waiting": counted.events.get(name, 0),
        "work_waiting": counted.work.get(name, 0),
        "spent_today": shown(counted.spent[name]),
        "reserved": {"runs": counted.spent[name].held_runs, "cost": in_units(counted.spent[name].held_cost)},
        "budget": own_budget(payload.get("budget"), counted.limits),
        "skips": dict(skips),
    }


def _status(wake: JobState, *, running: bool) -> str:
    if running:
        return "running"
    if wake.paused:
        return "paused"
    return "idle" if wake.enabled else "disabled"


def _wake_of(pairs: Sequence[Pair]) -> Pair | None:
    return next((pair for pair in pairs if pair[0].name.endswith(f".{WAKE}")), None)


def _schedule(job: JobDef, state: JobState, counted: _Counted) -> dict[str, Any]:
    agent, _, name = job.name.partition(".")
    kind, was_cut_off = trigger_of(job.trigger).type, state.run_id in counted.cut_off
    next_at = beat_at(job, state.next_at, counted.now)
    return {
        "name": name or job.name,
        "job": job.name,
        "status": status_at_rest(state) if was_cut_off else status_of(state, asking=state.run_id in counted.asking),
        "cut_off": was_cut_off,
        "last_run_at": None if state.last_run_at is None else iso(state.last_run_at),
        "next_run_at": None if next_at is None else iso(next_at),
        "last_error": state.last_error,
        "type": kind,
        **({"hook": f"/hooks/{agent}/{name}", "requests_waiting": state.queued} if kind == "webhook" else {}),
    }
