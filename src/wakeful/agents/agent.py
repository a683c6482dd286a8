"""The kind `agent`: jobs that ask an agent, wake it, or leave it a system event.

What must stay true:
- everything that wakes an agent goes through `request_wake`; one row says what for, and one run waits for it;
- system events are given to a run in the transaction that claims it, go when it succeeds, and wait again when not;
- an account's rate limit holds for all its agents, from the first that ran into it;
- a reply is stored for delivery in the transaction that ends its run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.agents.naming import AGENT, VARIABLE
from wakeful.command import end_programs
from wakeful.errors import InvalidJob
from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind, Refused

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.kernel.views.stories import Subject
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

HIDDEN = "***"


def _check(payload: Any) -> None:
    if not isinstance(payload, dict) or not {"agent", "does"} <= payload.keys():
        raise InvalidJob("Jobs of kind agent are made with their agent: add it to agents in wakeful.yaml.")


def _admit(tx: Transaction, _: Context, job: JobDef, state: JobState) -> Refused | None:
    from wakeful.agents.admitting import admit

    return admit(tx, job, state)


def _claimed(tx: Transaction, _: Context, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    from wakeful.agents.wakes import take_wake
    from wakeful.agents.work import take_item

    return take_wake(tx, job, run) or take_item(tx, job, run)


def _ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    from wakeful.agents.wakes import end_run
    from wakeful.agents.work import end_item

    end_run(tx, context, job, run, result)
    end_item(tx, run, result)


async def _end_leftovers(folder: Path, run_ids: list[str]) -> None:
    await end_programs(folder, run_ids, VARIABLE)


def _prune(tx: Transaction, before: int, limit: int) -> int:
    from wakeful.agents.tables import AgentTables

    tables = tx.of(AgentTables)
    pruned = tables.prune_sessions(before, limit)
    return pruned + (tables.prune_items(before, limit - pruned) if pruned < limit else 0)


def _redact(payload: Any) -> Any:
    """Values that a runner sets may be secrets."""
    runner = payload.get("runner") if isinstance(payload, dict) else None
    if not isinstance(runner, dict) or not runner.get("env"):
        return payload
    env = [f"{name}={HIDDEN}" if sign else name for name, sign, _ in (item.partition("=") for item in runner["env"])]
    return {**payload, "runner": {**runner, "env": env}}


def _story(subject: Subject) -> list[str]:
    from wakeful.agents.story import story

    return story(subject)


domain = Domain(
    AGENT,
    kinds=(
        Kind(
            AGENT,
            check_payload=_check,
            admin_only=True,
            admit=_admit,
            claimed=_claimed,
            ended=_ended,
            before_recovery=_end_leftovers,
            redact=_redact,
        ),
    ),
    job_tables=("agent_wakes", "agent_events", "agent_work"),
    precious_tables=("agent_events", "agent_sessions", "agent_work"),
    id_prefixes={"item": "wrk"},
    prune=_prune,
    skip_reasons={
        "rate_limited": "its account was at its rate limit",
        "too_many_hops": "too many agents in a row had woken each other",
    },
    start_reasons={
        "interval": "its heartbeat woke it",
        "cron": "a schedule woke it",
        "message": "a message woke it",
        "agent": "another run of an agent woke it",
        "hook": "a webhook woke it",
    },
    stories={AGENT: _story},
    parts={"agents": "wakeful.agents.registry:AgentRegistry"},
    section="agents",
    settings="wakeful.agents.configuration:Agents",
    install="wakeful.agents.configuration:install_agents",
    routes="wakeful.agents.routes:agent_router",
    commands={AGENT: "wakeful.agents.commands:app", "work": "wakeful.agents.commands:work"},
)
