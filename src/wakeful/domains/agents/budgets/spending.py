"""Budgets in transactions: whether an agent may run again, what a run reserves, and what its end counts as."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.budgets.rules import (
    AT_MOST,
    COST_PER_DAY,
    MEAN,
    RECENT,
    REPORTED,
    RUNS_PER_DAY,
    UNKNOWN,
    Assumed,
    BudgetLimits,
    Caps,
    Charge,
    Spent,
    assumed,
    caps_of,
    charge,
    day_of,
    in_millionths,
    in_units,
    money,
    next_day,
    over,
    own_budget,
    spent_words,
    written,
)
from wakeful.domains.agents.budgets.tables import FLEET, Budgets, Reservation, scope_of
from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.naming import HEARTBEAT, wake_job
from wakeful.kernel.engine.alerts import alert_key, close_alert, open_alert
from wakeful.kernel.hooks import Refused
from wakeful.kernel.model.explanations import PassedOver
from wakeful.kernel.model.measures import RunCost
from wakeful.kernel.rules.policy import trigger_of
from wakeful.triggers.moments import spoken
from wakeful.triggers.zones import place_named

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

FACT = "budgets"
OVER_BUDGET, ALERT = "over_budget", "budget"
ASKING = ("ask", "wake")  # what calls an agent
NOT_CALLED = ("InvalidJob", "AgentNotStarted", "PromptRefused")  # errors of runs that could not call theirs
SPREAD_MS = 30 * 60_000
AFTER_BEAT_MS = 1_000  # so that the beat joins what waits, and they are one run
AGAIN_MS = 20  # when a claim comes again that found another node deciding
BASES = {
    REPORTED: ", which it reported",
    AT_MOST: ": it reported none, and that is its max_cost",
    MEAN: f": it reported none, and that is the mean of the last {RECENT} that {{agent}} reported",
    UNKNOWN: ": it reported none, and there is no max_cost",
}
DEFAULT = BudgetLimits(Caps(cost=in_millionths(COST_PER_DAY)), "UTC", RUNS_PER_DAY)


# -- the budget of all agents together --------------------------------------------------------------------------------


def limits_of(tx: Transaction) -> BudgetLimits:
    """The budget of all agents together, as every process on this store knows it."""
    text = tx.facts.get(FACT)
    return DEFAULT if text is None else _read_limits(text)


@lru_cache(maxsize=64)
def _read_limits(text: str) -> BudgetLimits:
    """As stored; every start and every end of a run asks."""
    found: dict[str, Any] = json.loads(text)
    return BudgetLimits(caps_of(found), found["timezone"], found.get("each"))


def store_limits(tx: Transaction, limits: BudgetLimits) -> bool:
    """Keep the budget of all; what waits looks again where it was changed. Whether it was."""
    text = json.dumps({**written(limits.caps), "timezone": limits.zone, "each": limits.each})
    if tx.facts.get(FACT) == text:
        return False
    tx.facts.put({FACT: text})
    tx.of(Budgets).wait_again(tx.now)
    return True


# -- before a start ---------------------------------------------------------------------------------------------------


def refuse_start(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
    """What stands against a start that is being claimed: a slot is passed over, everything else waits for a new day."""
    payload = effective_payload(tx, json.loads(job.payload))
    if payload["does"] not in ASKING:
        return None
    limits = limits_of(tx)
    budgets, day = tx.of(Budgets), day_of(tx.now, limits.zone)
    if not budgets.hold(day, wait=False):
        return Refused("", until=tx.now + AGAIN_MS)
    why = _why(tx, payload, limits, day)
    if why is None:
        _close_alerts(tx, context, payload["agent"])
        return None
    waiting = [run for run in tx.runs.open(job.id) if run.status == "queued" and run.due_at <= tx.now]
    first = min(waiting, key=lambda run: (run.due_at, run.id)) if state.queued and waiting else None
    if first is not None and budgets.reservations([first.id]):
        return None  # it was claimed before, given back, and has what it needs
    _alert(tx, context, payload["agent"], why)
    until = fresh_start(tx, payload["agent"], limits)
    if first is None and trigger_of(job.trigger).type != "once":
        return Refused(OVER_BUDGET, why[1])
    if first is not None and first.reason == "manual" and payload["does"] == "ask":
        return Refused(OVER_BUDGET, why[1])
    return Refused(OVER_BUDGET, f"{why[1]}, and it waits until {spoken(until, place_named(limits.zone))}", until)


def refuse_by_hand(tx: Transaction, context: Context, job: JobDef) -> Refused | None:
    """What stands against a start by hand, asked before it is stored."""
    payload = effective_payload(tx, json.loads(job.payload))
    if payload["does"] not in ASKING:
        return None
    limits = limits_of(tx)
    why = _why(tx, payload, limits, day_of(tx.now, limits.zone))
    if why is None:
        return None
    _alert(tx, context, payload["agent"], why)
    tomorrow = spoken(next_day(tx.now, limits.zone), place_named(limits.zone))
    return Refused(OVER_BUDGET, f"{why[1]} (over_budget); the next day begins at {tomorrow}")


def passed_over(tx: Transaction, jobs: Sequence[JobDef]) -> dict[int, PassedOver]:
    """Of jobs that call agents by themselves, those whose next times find no budget: they wait for the next day."""
    limits, payloads = limits_of(tx), {job.id: json.loads(job.payload) for job in jobs}
    asking = {job_id: payload for job_id, payload in payloads.items() if payload["does"] in ASKING}
    scopes = {payload["agent"]: scope_of(payload["agent"]) for payload in asking.values()}
    spent = tx.of(Budgets).spent([FLEET, *scopes.values()], day_of(tx.now, limits.zone)) if asking else {}
    found, once = dict[int, PassedOver](), {job.id for job in jobs if trigger_of(job.trigger).type == "once"}
    for job_id, payload in asking.items():
        agent = payload["agent"]
        why = why_over(effective_payload(tx, payload), limits, spent[scopes[agent]], spent[FLEET])
        if why is not None:  # as in `refuse_start`
            until = fresh_start(tx, agent, limits) if job_id in once else next_day(tx.now, limits.zone)
            at = spoken(until, place_named(limits.zone))
            then = f"and it waits until {at}" if job_id in once else f"and times before {at} are passed over"
            found[job_id] = PassedOver(until, f"{why[1]}, {then}")
    return found


def over_budget(tx: Transaction, payload: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The reason for which a start that is requested now waits, and until when; None where there is budget for it."""
    limits = limits_of(tx)
    if _why(tx, payload, limits, day_of(tx.now, limits.zone)) is None:
        return None, None
    return OVER_BUDGET, fresh_start(tx, payload["agent"], limits)


def _why(tx: Transaction, payload: Mapping[str, Any], limits: BudgetLimits, day: int) -> tuple[str, str] | None:
    """Whose budget is used up, and how, or None."""
    scope = scope_of(payload["agent"])
    spent = tx.of(Budgets).spent([FLEET, scope], day)
    return why_over(payload, limits, spent[scope], spent[FLEET])


def why_over(payload: Mapping[str, Any], limits: BudgetLimits, own: Spent, together: Spent) -> tuple[str, str] | None:
    """Whose budget is used up by what the agent and all agents together have used, and how, or None."""
    agent, max_cost = payload["agent"], max_cost_of(payload)
    used_up = over(caps_of(own_budget(payload.get("budget"), limits)), own, max_cost)
    if used_up is not None:
        return scope_of(agent), f"{agent} is over budget: {used_up}"
    all_of_them = over(limits.caps, together, max_cost)
    return None if all_of_them is None else (FLEET, f"all agents together are over budget: {all_of_them}")


def max_cost_of(payload: Mapping[str, Any]) -> int | None:
    """What one run may cost, if that is limited; what others feed may have a higher limit."""
    own, fed = [in_millionths((payload.get(key) or {}).get("max_cost")) for key in ("runner", "untrusted")]
    return own if own is None or fed is None else max(own, fed)


def fresh_start(tx: Transaction, agent: str, limits: BudgetLimits) -> int:
    """When an agent that is over budget starts again: in the next day, and not all of them in its first second.

    With the first beat of its heart, since heartbeats are spread; else at a time of its own in the first half hour.
    """
    begins = next_day(tx.now, limits.zone)
    beats = tx.jobs.by_name(f"{agent}.{HEARTBEAT}")
    beat = trigger_of(beats[0].trigger).next_slot(begins - 1) if beats is not None else None
    if beat is not None and beat - begins < SPREAD_MS:
        return beat + AFTER_BEAT_MS
    return begins + int.from_bytes(hashlib.sha256(agent.encode()).digest()[:8]) % SPREAD_MS


# -- alerts: one for each agent and day, and one for all together -----------------------------------------------------


def _alert(tx: Transaction, context: Context, agent: str, why: tuple[str, str]) -> None:
    subject, text = why
    if _open(tx, subject):
        return
    known = tx.jobs.names([wake_job(agent)]) if subject != FLEET else {}
    begun = text if subject != FLEET else f"{text[0].upper()}{text[1:]}"
    message = f"{begun}. Slots are passed over, and other starts wait for the next day or a larger budget."
    open_alert(tx, context, ALERT, subject, message, job_id=known.get(wake_job(agent)))


def _close_alerts(tx: Transaction, context: Context, agent: str) -> None:
    for subject in _open(tx, scope_of(agent), FLEET):
        close_alert(tx, context, ALERT, subject, "there is budget again")


def _open(tx: Transaction, *subjects: str) -> list[str]:
    known = {alert.key for alert in tx.alerts.open_of(ALERT)}
    return [subject for subject in subjects if alert_key(ALERT, subject) in known]


# -- from the claim to the end ----------------------------------------------------------------------------------------


def reserve(tx: Transaction, job: JobDef, run: RunRow) -> None:
    """A run that is being claimed reserves what it may cost; one that was given back has done so."""
    payload = effective_payload(tx, json.loads(job.payload))
    budgets = tx.of(Budgets)
    if payload["does"] in ASKING and not budgets.reservations([run.id]):
        agent, may_cost = payload["agent"], max_cost_of(payload)
        costs = assumed(may_cost, () if may_cost is not None else budgets.reported(agent))
        budgets.reserve(Reservation(run.id, agent, day_of(tx.now, limits_of(tx).zone), *costs))


def settle(tx: Transaction, run: RunRow, result: Result) -> None:
    """The end of a run: what was reserved is free, and what it cost counts on the day on which it began."""
    budgets = tx.of(Budgets)
    for made in budgets.reservations([run.id]):
        budgets.hold(made.day, wait=True)
        usage = json.loads(result.usage) if result.usage is not None else None
        otherwise = Assumed(made.cost, made.basis)
        if made.basis == UNKNOWN:  # others may have reported since
            otherwise = assumed(None, budgets.reported(made.agent))
        called = run.started_at is not None and result.error_type not in NOT_CALLED
        counts = charge(result.outcome, usage, otherwise) if called else Charge()
        budgets.settle(made, counts)
        if counts.runs:
            tx.events.count(RunCost(made.agent, in_units(counts.cost)))


# -- as people see it -------------------------------------------------------------------------------------------------


def spent_today(tx: Transaction, agents: Sequence[str] = ()) -> tuple[Spent, dict[str, Spent]]:
    """What all agents together have used today, and what each of these."""
    day = day_of(tx.now, limits_of(tx).zone)
    found = tx.of(Budgets).spent([FLEET, *map(scope_of, agents)], day)
    return found[FLEET], {agent: found[scope_of(agent)] for agent in agents}


def shown(spent: Spent) -> dict[str, Any]:
    """What has ended, as plain data."""
    return {"runs": spent.runs, "cost": in_units(spent.cost), "tokens": spent.tokens}


def fleet_today(tx: Transaction) -> dict[str, Any] | None:
    """What all agents together have used today, as plain data and in words; None where no agent ran."""
    spent, _ = spent_today(tx)
    if spent == Spent():
        return None
    caps = limits_of(tx).caps
    reserved = {"runs": spent.held_runs, "cost": in_units(spent.held_cost)}
    return {
        "spent_today": shown(spent),
        "reserved": reserved,
        "budget": written(caps),
        "words": spent_words(caps, spent),
    }


def used_today(tx: Transaction, job: JobDef) -> list[str]:
    """What `explain` says about the budget of a job that calls an agent."""
    payload = effective_payload(tx, json.loads(job.payload))
    if payload.get("does") not in ASKING:
        return []
    agent, limits = payload["agent"], limits_of(tx)
    together, each = spent_today(tx, [agent])
    own = spent_words(caps_of(own_budget(payload.get("budget"), limits)), each[agent])
    return [f"Used today: {own} by {agent}; {spent_words(limits.caps, together)} by all agents together."]


def counted_as(tx: Transaction, run_id: int) -> list[str]:
    """What `explain` says about what a run counts as."""
    charged = tx.of(Budgets).charged(run_id)
    if charged is None:
        return []
    return [
        f"It counts as a run with a cost of {money(charged.cost)}{BASES[charged.basis].format(agent=charged.agent)}."
    ]
