"""The kind `agent`: jobs that ask an agent, wake it, or leave it a system event.

What must stay true:
- everything that wakes an agent goes through `request_wake`; one row says what for, and one run waits for it;
- system events are given to a run in the transaction that claims it, go when it succeeds, and wait again when not;
- an account's rate limit holds for all its agents, from the first that ran into it;
- no agent is called beyond a budget;
- a session has one run at a time;
- what waits for an agent belongs to its name: it outlives the agent's jobs;
- a reply is stored for delivery in the transaction that ends its run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.naming import AGENT, AGENTS_OWN, VARIABLE, agent_of, check_job_name, wake_job
from wakeful.domains.command import end_programs
from wakeful.errors import InvalidJob
from wakeful.kernel.domain import Domain, Remedy
from wakeful.kernel.hooks import Refused
from wakeful.kernel.kinds import Kind

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.hooks import Draft, Showing
    from wakeful.kernel.model.explanations import PassedOver, Subject
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow
    from wakeful.triggers import Trigger
    from wakeful.triggers.active_hours import ActiveHours

HIDDEN = "***"


def _check(payload: Any) -> None:
    if not isinstance(payload, dict) or not {"agent", "does"} <= payload.keys():
        raise InvalidJob("Jobs of kind agent are made with their agent: add it to agents in wakeful.yaml.")


def _owned_by(payload: Any) -> str:
    return str(payload["agent"])


def _takes_lanes(tx: Transaction, job: JobDef, run: RunRow | None) -> Collection[str]:
    from wakeful.domains.agents.session_lanes import lanes_of_agent

    return lanes_of_agent(tx, job, run)


def _admit(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
    from wakeful.domains.agents.admitting import admit

    return admit(tx, context, job, state)


def _by_hand(tx: Transaction, context: Context, job: JobDef) -> Refused | None:
    from wakeful.domains.agents.budgets.spending import refuse_by_hand

    return refuse_by_hand(tx, context, job)


def _claimed(tx: Transaction, _: Context, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    from wakeful.domains.agents.budgets.spending import reserve
    from wakeful.domains.agents.effective_payload import effective_payload
    from wakeful.domains.agents.inbound.receiving import take_request
    from wakeful.domains.agents.replies.routing import keep_route
    from wakeful.domains.agents.schedule_options import with_own_limit
    from wakeful.domains.agents.self_scheduling.running import begin
    from wakeful.domains.agents.session_lanes import given_to
    from wakeful.domains.agents.wakes import take_wake
    from wakeful.domains.agents.work import take_item

    reserve(tx, job, run)
    woken = take_wake(tx, job, run)
    request = take_request(tx, job, run) if woken is None else None
    wants_item = (woken is None and request is None) or "work_events" in (woken or {})
    item = take_item(tx, job, run) if wants_item else None
    payload = {**json.loads(job.payload), **given_to(tx, run)}
    whole = with_own_limit(effective_payload(tx, payload))
    keep_route(tx, whole, run)
    own = begin(tx, job, run)
    return {**({} if whole is payload else whole), **(woken or request or {}), **(item or {}), **own} or None


def _ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    from wakeful.domains.agents.budgets.spending import settle
    from wakeful.domains.agents.limits import holding as limits
    from wakeful.domains.agents.replies.routing import send_reply
    from wakeful.domains.agents.self_scheduling.running import end_question
    from wakeful.domains.agents.wakes import end_run
    from wakeful.domains.agents.work import end_item

    if end_question(tx, job, run, result):
        return
    limits.end_run(tx, context, job, run, result)
    settle(tx, run, result)
    end_run(tx, context, job, run, result)
    send_reply(tx, context, job, run, result)
    end_item(tx, context, job, run, result)


def _stored(tx: Transaction, context: Context, jobs: Sequence[JobDef]) -> None:
    from wakeful.domains.agents.belongings.moving import wake_returned

    wake_returned(tx, context, jobs)


def _waiting(tx: Transaction, coming: Collection[str], going: Collection[str]) -> list[str]:
    from wakeful.domains.agents.belongings.moving import waiting_notes

    return waiting_notes(tx, coming, going)


def _reported(tx: Transaction, job: JobDef, run: RunRow, result: Result) -> Result:
    from wakeful.domains.agents.finishing import as_reported

    return as_reported(tx, job, run, result)


async def _end_leftovers(folder: Path, run_ids: list[str]) -> None:
    await end_programs(folder, run_ids, VARIABLE)


def _prune(tx: Transaction, before: int, limit: int) -> int:
    from wakeful.domains.agents.budgets.rules import day_of
    from wakeful.domains.agents.budgets.tables import Budgets
    from wakeful.domains.agents.senders.tables import Senders
    from wakeful.domains.agents.tables import AgentTables
    from wakeful.ids import first_id_at

    tables = tx.of(AgentTables)
    pruned = tables.prune_sessions(before, limit)
    pruned += tables.prune_items(before, limit - pruned) if pruned < limit else 0
    pruned += tx.of(Senders).prune(first_id_at(before), limit - pruned) if pruned < limit else 0
    return pruned + (tx.of(Budgets).prune(day_of(before, "UTC") - 1, limit - pruned) if pruned < limit else 0)


def _reserves(tx: Transaction, names: Sequence[str]) -> str | None:
    """A name that would look like a schedule of an agent is not for other jobs."""
    found = tx.jobs.names(sorted({wake_job(agent_of(name)) for name in names}))
    wakes = tx.jobs.definitions(list(found.values())) if found else {}
    agents = {agent_of(job.name) for job in wakes.values() if job.kind == AGENT}
    taken = next((name for name in names if agent_of(name) in agents), None)
    if taken is None:
        return None
    return f"{taken!r:.120} would be a schedule of the agent {agent_of(taken)}: choose a name without a dot."


def _keeps_dots(tx: Transaction) -> bool:
    """Where there are agents, a name with a dot may be for a schedule of one that is yet to come."""
    return tx.jobs.has_kind(AGENT)


def _sweep(tx: Transaction, context: Context) -> None:
    from wakeful.domains.agents.limits.holding import watch
    from wakeful.kernel.actions.proposing import drop_late

    watch(tx, context)
    drop_late(tx, context)


def _joined(tx: Transaction, waiting: RunRow, cause: RunRow) -> None:
    from wakeful.domains.agents.senders.feeding import join

    join(tx, waiting, cause)


def _shown(tx: Transaction, reader: int, showing: Showing) -> Callable[[Transaction], None] | None:
    from wakeful.domains.agents.senders.feeding import shown

    return shown(tx, reader, showing)


def _spread(drafts: Sequence[Draft], now: int) -> Mapping[str, Trigger]:
    from wakeful.domains.agents.spreading import spread_beats

    return spread_beats(drafts, now)


def _resumed(tx: Transaction, context: Context, job: JobDef) -> None:
    from wakeful.domains.agents.wakes import resumed

    resumed(tx, context, job)


def _redact(payload: Any) -> Any:
    """Hide what may be secret: values that a runner sets, the token of a source of work, a webhook's secret."""
    if isinstance(payload, dict) and isinstance(payload.get("work"), dict) and payload["work"].get("token"):
        payload = {**payload, "work": {**payload["work"], "token": HIDDEN}}
    if isinstance(payload, dict) and isinstance(payload.get("webhook"), dict):
        payload = {**payload, "webhook": {**payload["webhook"], "secret": HIDDEN}}
    runner = payload.get("runner") if isinstance(payload, dict) else None
    if not isinstance(runner, dict) or not runner.get("env"):
        return payload
    env = [f"{name}={HIDDEN}" if sign else name for name, sign, _ in (item.partition("=") for item in runner["env"])]
    return {**payload, "runner": {**runner, "env": env}}


def _simulated(kind: Kind) -> Kind:
    from wakeful.domains.agents.foreseeing import simulated

    return simulated(kind)


def _story(subject: Subject) -> list[str]:
    from wakeful.domains.agents.explanation import story

    return story(subject)


def _passing(tx: Transaction, jobs: Sequence[JobDef]) -> Mapping[int, PassedOver]:
    from wakeful.domains.agents.budgets.spending import passed_over

    return passed_over(tx, jobs)


def _hours(job: JobDef) -> ActiveHours | None:
    from wakeful.domains.agents.hours import hours_of_beat

    return hours_of_beat(job)


domain = Domain(
    AGENT,
    kinds=(
        Kind(
            AGENT,
            check_payload=_check,
            check_name=check_job_name,
            owned_by=_owned_by,
            admin_only=True,
            admit=_admit,
            takes_lanes=_takes_lanes,
            keeps_lanes=True,
            reserved_lanes=AGENTS_OWN,
            by_hand=_by_hand,
            claimed=_claimed,
            ended=_ended,
            reported=_reported,
            before_recovery=_end_leftovers,
            resumed=_resumed,
            redact=_redact,
            reserves=_reserves,
            keeps_dots=_keeps_dots,
            spread=_spread,
            stored=_stored,
            waiting=_waiting,
            simulated=_simulated,
        ),
    ),
    simulated_tables=(
        *("agent_wakes", "agent_events", "agent_limits"),
        *("budget_days", "budget_reservations", "budget_charges"),
    ),
    remedies={
        "over_budget": Remedy("budget", "Raise the budget, or run its schedules less often."),
        "rate_limited": Remedy("rate_limit", "Wait for the limit to end, or use another account."),
    },
    spending="wakeful.domains.agents.foreseeing:spending",
    job_tables=("agent_wakes",),
    precious_tables=("agent_events", "agent_sessions", "agent_work"),
    id_prefixes={"item": "wrk"},
    prune=_prune,
    joined=_joined,
    shown=_shown,
    swept=_sweep,
    alerts={
        "rate_limited": "an account has been at its rate limit for 6 hours",
        "work_failed": "a work item of an agent failed too often and was set aside",
    },
    skip_reasons={
        "rate_limited": "its account was at its rate limit",
        "over_budget": "a budget was used up",
        "too_many_hops": "too many agents in a row had woken each other",
    },
    start_reasons={
        "interval": "its heartbeat woke it",
        "cron": "a schedule woke it",
        "message": "a message woke it",
        "agent": "another run of an agent woke it",
        "hook": "an event or a webhook woke it",
    },
    stories={AGENT: _story},
    passing={AGENT: _passing},
    hours={AGENT: _hours},
    parts={"agents": "wakeful.domains.agents.registry:AgentRegistry"},
    section="agents",
    settings="wakeful.domains.agents.configuration:AgentsSection",
    fill="wakeful.domains.agents.agent_defaults:with_agent_defaults",
    reads_jobs="wakeful.domains.agents.agents_file:AgentsReader",
    install="wakeful.domains.agents.configuration:install_agents",
    run_here={AGENT: "wakeful.domains.agents.waking_here:prepare_here"},
    routes=(
        "wakeful.domains.agents.routes.agents:router",
        "wakeful.domains.agents.routes.limits:router",
        "wakeful.domains.agents.routes.work:router",
        "wakeful.domains.agents.belongings.routes:router",
    ),
    commands={AGENT: "wakeful.domains.agents.commands:app", "work": "wakeful.domains.agents.belongings.commands:app"},
)
