"""Agents as people see them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.agents.budgets.rules import Spent, in_units
from wakeful.agents.budgets.spending import shown, spent_today
from wakeful.agents.naming import AGENT, HEARTBEAT, WAKE, agent_of
from wakeful.agents.tables import AgentTables
from wakeful.agents.wakes import find_agent
from wakeful.kernel.rules.policy import trigger_of
from wakeful.store.listing import JobFilter, status_of
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

Pair = tuple["JobDef", "JobState"]


def agent_views(tx: Transaction) -> list[dict[str, Any]]:
    """All agents, by name."""
    by_agent: dict[str, list[Pair]] = {}
    for pair in tx.jobs.matching(JobFilter(kind=AGENT)):
        by_agent.setdefault(pair[0].owner or agent_of(pair[0].name), []).append(pair)
    counted = _count(tx, [pair[0] for pairs in by_agent.values() for pair in pairs], list(by_agent))
    return [_summary(name, pairs, counted) for name, pairs in sorted(by_agent.items()) if _wake_of(pairs)]


def agent_view(tx: Transaction, agent: str) -> dict[str, Any]:
    """One agent with its schedules, sessions and events; AgentNotFound where there is none."""
    wake, _ = find_agent(tx, agent)
    tables = tx.of(AgentTables)
    numbers = tables.jobs_of(agent)
    jobs, states = tx.jobs.definitions(numbers), tx.jobs.states(numbers)
    pairs = [(jobs[number], states[number]) for number in numbers if number in jobs]
    events = tables.waiting(wake.id)
    schedules = [pair for pair in pairs if not pair[0].name.endswith((f".{WAKE}", f".{HEARTBEAT}"))]
    beats = [_schedule(*pair) for pair in pairs if pair[0].name.endswith(f".{HEARTBEAT}")]
    return {
        **_summary(agent, pairs, _count(tx, [job for job, _ in pairs], [agent])),
        "description": json.loads(wake.payload).get("description"),
        "schedules": [_schedule(*pair) for pair in schedules],
        "sessions": [
            {
                "name": kept.name,
                "session": kept.session,
                "created_at": iso(kept.created_at),
                "used_at": iso(kept.used_at),
            }
            for kept in tables.sessions_of(agent)
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


class _Counted(NamedTuple):
    """What is counted about agents, by job."""

    events: Mapping[int, int]
    work: Mapping[int, int]
    skips: Mapping[int, Mapping[str, int]]
    spent: Mapping[str, Spent]  # by agent


def _count(tx: Transaction, jobs: Sequence[JobDef], agents: Sequence[str]) -> _Counted:
    """A few questions, however many agents there are."""
    if not jobs:
        return _Counted({}, {}, {}, {})
    tables = tx.of(AgentTables)
    wakes = sorted(job.id for job in jobs if job.name.endswith(f".{WAKE}"))
    everything = sorted(job.id for job in jobs)
    _, spent = spent_today(tx, agents)
    return _Counted(tables.waiting_counts(wakes), tables.ready_counts(wakes), tables.skips(everything), spent)


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
    coming = [state.next_at for _, state in pairs if state.next_at is not None]
    return {
        "name": name,
        "status": _status(wake[1], asking),
        "running": sum(state.run_id is not None for _, state in asking),
        "max_concurrent": json.loads(wake[0].payload).get("max_concurrent", 1),
        "schedules": len([pair for pair in pairs if not pair[0].name.endswith((f".{WAKE}", f".{HEARTBEAT}"))]),
        "next_run_at": iso(min(coming)) if coming else None,
        "last_outcome": latest.last_outcome,
        "last_error": None if erred is None else erred.last_error,
        "events_waiting": counted.events.get(wake[0].id, 0),
        "work_waiting": counted.work.get(wake[0].id, 0),
        "spent_today": shown(counted.spent[name]),
        "reserved": {"runs": counted.spent[name].held_runs, "cost": in_units(counted.spent[name].held_cost)},
        "budget": json.loads(wake[0].payload).get("budget") or {},
        "skips": dict(skips),
    }


def _status(wake: JobState, asking: Sequence[Pair]) -> str:
    if any(state.run_id is not None for _, state in asking):
        return "running"
    if wake.paused:
        return "paused"
    return "idle" if wake.enabled else "disabled"


def _wake_of(pairs: Sequence[Pair]) -> Pair | None:
    return next((pair for pair in pairs if pair[0].name.endswith(f".{WAKE}")), None)


def _schedule(job: JobDef, state: JobState) -> dict[str, Any]:
    agent, _, name = job.name.partition(".")
    kind = trigger_of(job.trigger).type
    return {
        "name": name or job.name,
        "job": job.name,
        "status": status_of(state, asking=False),
        "last_run_at": None if state.last_run_at is None else iso(state.last_run_at),
        "next_run_at": None if state.next_at is None else iso(state.next_at),
        "last_error": state.last_error,
        "type": kind,
        **({"hook": f"/hooks/{agent}/{name}", "requests_waiting": state.queued} if kind == "webhook" else {}),
    }
