"""What people do to an agent as a whole: each is one action on all its jobs, and can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.domains.agents.naming import WAKE
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.views import agent_view
from wakeful.domains.agents.wakes import find_agent
from wakeful.kernel.actions import pausing
from wakeful.kernel.actions.proposing import unanswered
from wakeful.kernel.actions.recording import on_record, origin_of

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState


class Acted(NamedTuple):
    """An agent as it is now, and the action by which that can be undone, where anything changed."""

    agent: dict[str, Any]
    action: str | None


def pause_agent(tx: Transaction, context: Context, agent: str) -> Acted:
    """Pause all jobs of an agent except those that are switched off; runs in progress finish."""
    pairs = [pair for pair in _jobs(tx, agent) if pair[1].enabled]
    _, action = on_record(tx, origin_of(context), "pause", pairs, lambda: pausing.pause_all(tx, context, pairs, None))
    return Acted(agent_view(tx, agent), action)


def resume_agent(tx: Transaction, context: Context, agent: str) -> Acted:
    """Resume all jobs of an agent but those that are switched off or wait for approval; waiting events wake it."""
    pairs = _jobs(tx, agent)
    waiting = unanswered(tx, [job for job, _ in pairs])
    pairs = [pair for pair in pairs if pair[0].id not in waiting]
    stopped = [pair for pair in pairs if pair[1].paused or pair[1].errors or _is_stopped_wake(*pair)]
    _, action = on_record(tx, origin_of(context), "resume", pairs, lambda: pausing.resume_all(tx, context, stopped))
    return Acted(agent_view(tx, agent), action)


def _jobs(tx: Transaction, agent: str) -> list[tuple[JobDef, JobState]]:
    find_agent(tx, agent)
    found = [tx.jobs.by_id(job_id) for job_id in tx.of(AgentTables).jobs_of(agent)]
    return [pair for pair in found if pair is not None]


def _is_stopped_wake(job: JobDef, state: JobState) -> bool:
    """No file switches off the job that runs a woken agent: whoever resumes the agent wants it."""
    return not state.enabled and job.name.endswith(f".{WAKE}")
