"""Waking agents, in transactions: the wake itself, what a run takes with it, and what its end releases."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.agents.admitting import waits_for
from wakeful.domains.agents.belongings.tables import Belongings
from wakeful.domains.agents.hops import MOST_HOPS, TOO_MANY, RequestingAgent, hops_of
from wakeful.domains.agents.hours import carried_by
from wakeful.domains.agents.naming import AGENT, agent_of, wake_job
from wakeful.domains.agents.senders.feeding import is_fed
from wakeful.domains.agents.senders.tables import Senders
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.waking import (
    LONGEST_EVENT,
    MOST_EVENTS,
    PRIORITIES,
    REASONS,
    RELAYED,
    WRITTEN,
    AgentWake,
    WakeEvent,
    after_failure,
    only_by_interval,
    requested,
    surplus,
)
from wakeful.errors import AgentNotFound, InvalidJob, QueueFull, ScheduleTriggerError
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import FAILURES, clean
from wakeful.spelling import did_you_mean
from wakeful.store.records import RunDetails, RunRow, SkipRow

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

HEARD = ("success", "noop")
CHAT = "chat:"  # before the connector and the id of a person, as the sender of an event; no agent has such a name
DISABLED = "disabled"


class Requested(NamedTuple):
    """What became of a request: when the agent is woken, None where it is not; and whether it joined another."""

    agent: str
    reason: str
    wake_at: int | None
    coalesced: bool
    run_id: int | None = None
    waits_for: str | None = None  # held, rate_limited, over_budget, outside_active_hours; disabled, if it is not woken
    waits_until: int | None = None
    refused: bool = False  # too many runs of agents led to it


def find_agent(tx: Transaction, agent: str) -> tuple[JobDef, JobState]:
    """The wake job of an agent; AgentNotFound offers the nearest name."""
    found = tx.jobs.by_name(wake_job(agent))
    if found is not None and found[0].kind == AGENT:
        return found
    jobs = tx.jobs.definitions(tx.of(AgentTables).wake_jobs("", 1000))
    hint = did_you_mean(agent, [agent_of(job.name) for job in jobs.values()])
    left = tx.of(Belongings).waiting([agent]).get(agent)
    still = f" {left.in_words()} for it still: wakeful agent move {agent} NAME." if left is not None else ""
    raise AgentNotFound(f"There is no agent {agent!r:.80}.{hint}{still}")


def request_wake(
    tx: Transaction, context: Context, agent: str, reason: str = "manual", *, sender: RequestingAgent | None = None
) -> Requested:
    """Wake an agent; every wake goes through here. Requests within 250 ms, and those during a run, become one run.

    What a run of an agent asks for (`sender`) has a reason of its own, goes only so far, and follows from what the run
    was given.
    """
    if reason not in REASONS:
        raise InvalidJob(f"A wake's reason is one of {', '.join(REASONS)}, not {reason!r:.60}.")
    job, state = find_agent(tx, agent)
    reason, hops = (reason, 0) if sender is None else ("agent", sender.hops)
    if hops > MOST_HOPS:
        tx.skips.count([SkipRow(job.id, TOO_MANY, 1, tx.now, f"asked for by {sender.agent if sender else agent}")])
        return Requested(agent, reason, None, coalesced=False, refused=True)
    if not state.enabled:
        message = f"{agent} is disabled: resume it first (wakeful agent resume {agent})."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "disabled"})
    if state.paused and reason != "manual":
        tx.skips.count([SkipRow(job.id, "paused", 1, tx.now, None)])
        return Requested(agent, reason, None, coalesced=False)
    known_wake = tx.of(AgentTables).wake(job.id)
    wake = requested(known_wake, job.id, reason, tx.now, hops, is_outside=sender is not None and sender.is_fed)
    run_id = _store(tx, context, (job, state), wake)
    coalesced, (why, until) = known_wake is not None, waits_for(tx, job, wake)
    return Requested(agent, wake.reason, wake.due_at, coalesced, run_id, waits_for=why, waits_until=until)


def wake_unless_disabled(
    tx: Transaction, context: Context, agent: str, reason: str, *, sender: RequestingAgent | None = None
) -> Requested:
    """Wake an agent for one of its own jobs, or for an event, which waits until its wake job is resumed.

    That the wake job is disabled is counted there, and is no error here.
    """
    job, state = find_agent(tx, agent)
    if state.enabled:
        return request_wake(tx, context, agent, reason, sender=sender)
    tx.skips.count([SkipRow(job.id, DISABLED, 1, tx.now, None)])
    return Requested(agent, reason, None, coalesced=False, waits_for=DISABLED)


def resumed(tx: Transaction, context: Context, job: JobDef) -> None:
    """A job of an agent was resumed: events that waited wake the agent."""
    payload = json.loads(job.payload)
    if payload["does"] == "wake" and tx.of(AgentTables).waiting(payload["agent"]):
        request_wake(tx, context, payload["agent"], "cron")


def add_event(
    tx: Transaction,
    context: Context,
    agent: str,
    text: str,
    *,
    source: str | None,
    context_key: str | None,
    sender: RequestingAgent | None = None,
    chat: str | None = None,
    outside: int = 0,
) -> tuple[int, int]:
    """Add an event that the agent gets when it is next woken; the event's number and how many wait.

    `sender`: whose run leaves it; `chat`: the person who wrote it. QueueFull where all that wait are others' and stay.
    Text from outside is given to the agent as data.
    """
    if not text.strip():
        raise InvalidJob("An event needs a text.")
    if len(text) > LONGEST_EVENT:
        raise InvalidJob(f"An event has {LONGEST_EVENT} characters at most, not {len(text)}.")
    job, _ = find_agent(tx, agent)
    tables, event = tx.of(AgentTables), WakeEvent(context.new_id(), agent, clean(text), source, context_key, tx.now)
    if sender is not None:
        outside = RELAYED if sender.is_fed else 0
        event = event._replace(hops=sender.hops, sender=sender.agent)
    elif chat is not None:
        outside, event = WRITTEN, event._replace(sender=f"{CHAT}{chat}")
    tables.add_event(event._replace(outside=outside), job.id)
    waiting = trim_events(tables, agent)
    if event.id in waiting:
        return event.id, len(waiting)
    raise QueueFull(f"{MOST_EVENTS} events of others wait for {agent}: leave this one again later.")


def take_wake(tx: Transaction, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    """What a run takes with it that is being claimed: the wake, and the events that wait."""
    if json.loads(job.payload)["does"] != "wake":
        return None
    tables = tx.of(AgentTables)
    wake, carried = tables.wake(job.id), carried_by(tx, run.id)
    own = ids.run_text(run.id)
    agent = agent_of(job.name)
    tx.of(Belongings).name_all(agent)
    # What it waited for was taken by another run, unless it was claimed and given back itself.
    if wake is None and carried.get("taken_by") != own and run.reason != "manual" and not tables.waiting(agent):
        return {"is_stale": True}
    reason = wake.reason if wake is not None else carried.get("reason", run.reason)
    if run.reason == "manual" and PRIORITIES.get(reason, 0) < PRIORITIES["manual"]:
        reason = "manual"  # whoever starts it by hand takes along what waits
    tables.drop_wake(job.id)
    payload, bound = json.loads(job.payload), tables.bind(agent, run.id)
    hops = max([0 if wake is None else wake.hops, carried.get("hops", 0), *(event.hops for event in bound)])
    if (wake is not None and wake.outside) or any(event.outside for event in bound):
        tx.of(Senders).feed(run.id)
    kept = {**payload, "reason": reason, "taken_by": own, **({"hops": hops} if hops else {})}
    if only_by_interval(run.reason, wake, carried):
        kept["by_interval"] = 1
    tx.runs.detail([RunDetails(run.id, payload=json.dumps(kept))])
    return {"reason": reason, **given_events(bound, payload.get("work_keys", ()))}


def given_events(bound: list[WakeEvent], keys: Collection[str]) -> dict[str, Any]:
    """The events of a run: its own, those that are data, and those that ask for a work item; if a person wrote one."""
    events, work_events = list[list[str]](), list[list[str]]()
    for event in bound:
        if event.is_data:
            continue
        asks_for_work = event.sender is None and event.source == "cron" and event.context_key in keys
        (work_events if asks_for_work else events).append([event.source or "event", event.text])
    outside = [[event.source or "message", event.text] for event in bound if event.is_data]
    given: dict[str, Any] = {"events": events, "outside": outside}
    if any(event.outside == WRITTEN for event in bound):
        given["is_answer"] = True
    return {**given, "work_events": work_events} if work_events else given


def end_run(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """What the end of a woken agent's run means: its events go or wait again, and it is tried again."""
    if json.loads(job.payload)["does"] != "wake":
        return
    tables = tx.of(AgentTables)
    if result.outcome in HEARD:
        tables.hear(run.id)
        return
    if tables.give_back(run.id):
        trim_events(tables, agent_of(job.name))
        if job.removed_at is not None:
            _wake_successor(tx, context, job)
    known = tables.wake(job.id)
    if run.started_at is None and known is not None and known.run_id == run.id:
        tables.drop_wake(job.id)  # it was never started, and is no longer needed
    elif run.started_at is not None and known is None:
        _try_again(tx, context, job, run, result)
    elif run.started_at is not None and known is not None:
        tables.put_wake(_with(tx, known, run))  # it is also for what this run did not do


def _with(tx: Transaction, wake: AgentWake, run: RunRow) -> AgentWake:
    """A wake that is also for what a run did not do: neither its hops nor its text from outside are lost."""
    return wake._replace(
        by_interval=wake.by_interval if _by_interval(tx, run) else 0,
        hops=max(wake.hops, hops_of(tx, run.id)),
        outside=max(wake.outside, int(is_fed(tx, run.id))),
    )


# -- inside -----------------------------------------------------------------------------------------------------------


def _store(tx: Transaction, context: Context, pair: tuple[JobDef, JobState], wake: AgentWake) -> int:
    """Keep the wake, with one run that waits for it; that run."""
    job, state = pair
    tables = tx.of(AgentTables)
    if not wake.run_id:
        run = RunRow.queued(context.new_id(), job, wake.reason, wake.due_at)
        tx.runs.add([run])
        wake, state = wake._replace(run_id=run.id), state._replace(queued=state.queued + 1)
    else:
        known = tx.runs.get(wake.run_id)
        goes_on = known is not None and known.reason == "recovery"  # it tells the agent so
        tx.runs.reschedule(wake.run_id, wake.due_at, None if goes_on else wake.reason)
    tables.put_wake(wake)
    # A parked job keeps its place in the line; a running one is looked at when it ends.
    if state.run_id is None and state.parked is None:
        state = state._replace(due_at=wake.due_at if state.due_at is None else min(state.due_at, wake.due_at))
    tx.jobs.save([state])
    return wake.run_id


def trim_events(tables: AgentTables, agent: str) -> set[int]:
    """Drop events beyond the limit; the ids of those that wait."""
    waiting = tables.waiting(agent)
    gone = surplus(waiting)
    tables.drop_events(gone)
    return {event.id for event in waiting}.difference(gone)


def _try_again(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """A run that was claimed and did not succeed has its wake again, unless a person ended it on purpose."""
    state = tx.jobs.states([job.id])[job.id]
    if job.removed_at is not None or not state.enabled or state.paused:
        return
    waiting = [other for other in tx.runs.open(job.id) if other.status == "queued" and other.id != run.id]
    if waiting:  # the kernel has queued a further attempt: deferred, cut off, or recovered
        again = min(waiting, key=lambda other: (other.due_at, other.id))
        wake = AgentWake(job.id, _reason(run.reason), again.due_at, tx.now, again.id)
        tx.of(AgentTables).put_wake(_like(tx, run, wake))
    elif result.outcome in FAILURES:
        ladder = from_text(job.options).backoff
        wake = after_failure(None, job.id, max(1, state.errors), tx.now, ladder)
        _store(tx, context, (job, state), _like(tx, run, wake))


def _like(tx: Transaction, run: RunRow, wake: AgentWake) -> AgentWake:
    """The wake with what led to the run that it is to try again."""
    outside = int(is_fed(tx, run.id))
    return wake._replace(hops=hops_of(tx, run.id), by_interval=_by_interval(tx, run), outside=outside)


def _wake_successor(tx: Transaction, context: Context, removed: JobDef) -> None:
    """Wake an agent that was removed and is there again, for the events that a run from before gave back."""
    found = tx.jobs.by_name(removed.name)
    if found is not None and found[0].kind == AGENT:
        wake_unless_disabled(tx, context, agent_of(removed.name), "cron")


def _by_interval(tx: Transaction, run: RunRow) -> int:
    """1 where a run that was claimed had no other cause than the interval."""
    return int(carried_by(tx, run.id).get("by_interval", 0))


def _reason(reason: str) -> str:
    return reason if reason in PRIORITIES else "retry"
