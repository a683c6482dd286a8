"""Waking agents, in transactions: the wake itself, what a run takes with it, and what its end releases."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.agents.budgets.spending import waits_for
from wakeful.agents.hops import MOST_HOPS, TOO_MANY, Sender, hops_of
from wakeful.agents.inherited import whole_payload
from wakeful.agents.naming import AGENT, agent_of, wake_job
from wakeful.agents.tables import AgentTables
from wakeful.agents.waking import LONGEST_EVENT, PRIORITIES, REASONS, Event, Wake, after_failure, requested, surplus
from wakeful.delivery import Post, enqueue, has_connectors
from wakeful.errors import AgentNotFound, InvalidJob, ScheduleTriggerError
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import FAILURES, clean
from wakeful.store.records import RunDetails, RunRow, SkipRow

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

HEARD = ("success", "noop")


class Requested(NamedTuple):
    """What became of a request: when the agent is woken, None where it is not; and whether it joined another."""

    agent: str
    reason: str
    wake_at: int | None
    coalesced: bool
    run_id: int | None = None
    waits_for: str | None = None  # held or over_budget
    refused: bool = False  # too many runs of agents led to it


def find_agent(tx: Transaction, agent: str) -> tuple[JobDef, JobState]:
    """The wake job of an agent; AgentNotFound offers the nearest name."""
    found = tx.jobs.by_name(wake_job(agent))
    if found is not None and found[0].kind == AGENT:
        return found
    from difflib import get_close_matches  # only when something is wrong

    jobs = tx.jobs.definitions(tx.of(AgentTables).wake_jobs("", 1000))
    near = get_close_matches(agent, [agent_of(job.name) for job in jobs.values()], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise AgentNotFound(f"There is no agent {agent!r:.80}.{hint}")


def request_wake(
    tx: Transaction, context: Context, agent: str, reason: str = "manual", *, sender: Sender | None = None
) -> Requested:
    """Wake an agent; every wake goes through here. Requests within 250 ms, and those during a run, become one run.

    What a run of an agent asks for (`sender`) has a reason of its own, and goes only so far.
    """
    if reason not in REASONS:
        raise InvalidJob(f"A wake's reason is one of {', '.join(REASONS)}, not {reason!r:.60}.")
    job, state = find_agent(tx, agent)
    reason, hops = (reason, 0) if sender is None else ("agent", sender.hops)
    if hops > MOST_HOPS:
        tx.journal.skip([SkipRow(job.id, TOO_MANY, 1, tx.now, f"asked for by {sender.agent if sender else agent}")])
        return Requested(agent, reason, None, coalesced=False, refused=True)
    if not state.enabled:
        message = f"{agent} is disabled: resume it first (wakeful agent resume {agent})."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "disabled"})
    if state.paused and reason != "manual":
        tx.journal.skip([SkipRow(job.id, "paused", 1, tx.now, None)])
        return Requested(agent, reason, None, coalesced=False)
    known_wake = tx.of(AgentTables).wake(job.id)
    wake = requested(known_wake, job.id, reason, tx.now, hops)
    run_id = _store(tx, context, (job, state), wake)
    return Requested(
        agent, wake.reason, wake.due_at, coalesced=known_wake is not None, run_id=run_id, waits_for=waits_for(tx, job)
    )


def add_event(
    tx: Transaction,
    context: Context,
    agent: str,
    text: str,
    *,
    source: str | None,
    context_key: str | None,
    hops: int = 0,
    is_outside: bool = False,
) -> tuple[int, int]:
    """Add an event that the agent gets when it is next woken; the event's number and how many wait.

    Text from outside is given to it as data.
    """
    if not text.strip():
        raise InvalidJob("An event needs a text.")
    if len(text) > LONGEST_EVENT:
        raise InvalidJob(f"An event has {LONGEST_EVENT} characters at most, not {len(text)}.")
    job, _ = find_agent(tx, agent)
    tables, event_id = tx.of(AgentTables), context.new_id()
    event = Event(event_id, job.id, clean(text), source, context_key, tx.now, outside=int(is_outside), hops=hops)
    tables.add_event(event)
    return event_id, _trim(tables, job.id)


def take_wake(tx: Transaction, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    """What a run takes with it that is being claimed: the wake, and the events that wait."""
    if json.loads(job.payload)["does"] != "wake":
        return None
    tables = tx.of(AgentTables)
    wake, details = tables.wake(job.id), tx.runs.details(run.id)
    carried = json.loads(details.payload) if details is not None and details.payload is not None else {}
    own = ids.run_text(run.id)
    # What it waited for was taken by another run, unless it was claimed and given back itself.
    if wake is None and carried.get("taken_by") != own and run.reason != "manual":
        return {"is_stale": True}
    reason = wake.reason if wake is not None else carried.get("reason", run.reason)
    tables.drop_wake(job.id)
    payload, bound = json.loads(job.payload), tables.bind(job.id, run.id)
    hops = max([0 if wake is None else wake.hops, carried.get("hops", 0), *(event.hops for event in bound)])
    kept = {**payload, "reason": reason, "taken_by": own, **({"hops": hops} if hops else {})}
    tx.runs.detail([RunDetails(run.id, payload=json.dumps(kept))])
    return {"reason": reason, **_given(bound, payload.get("work_keys", ()))}


def _given(bound: list[Event], keys: Collection[str]) -> dict[str, Any]:
    """The events of a run: its own, those that others wrote, and those that ask for a work item."""
    events, work_events = list[list[str]](), list[list[str]]()
    for event in bound:
        if event.outside:
            continue
        asks_for_work = event.source == "cron" and event.context_key in keys
        (work_events if asks_for_work else events).append([event.source or "event", event.text])
    outside = [[event.source or "message", event.text] for event in bound if event.outside]
    given = {"events": events, "outside": outside}
    return {**given, "work_events": work_events} if work_events else given


def end_run(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """What the end of an agent's run means: events go or wait again, it is tried again, its reply is delivered."""
    payload = json.loads(job.payload)
    if payload["does"] == "wake":
        _end_wake(tx, context, job, run, result)
    if result.outcome == "success" and result.output is not None:
        output = json.loads(result.output)
        _deliver(tx, context, job, run, (_with_answer(tx, whole_payload(tx, payload), run, output), output))


# -- inside -----------------------------------------------------------------------------------------------------------


def _store(tx: Transaction, context: Context, pair: tuple[JobDef, JobState], wake: Wake) -> int:
    """Keep the wake, with one run that waits for it; that run."""
    job, state = pair
    tables = tx.of(AgentTables)
    if not wake.run_id:
        run = RunRow.queued(context.new_id(), job, wake.reason, wake.due_at)
        tx.runs.add([run])
        wake, state = wake._replace(run_id=run.id), state._replace(queued=state.queued + 1)
    else:
        tx.runs.reschedule(wake.run_id, wake.due_at, wake.reason)
    tables.put_wake(wake)
    # A parked job keeps its place in the line; a running one is looked at when it ends.
    if state.run_id is None and state.parked is None:
        state = state._replace(due_at=wake.due_at if state.due_at is None else min(state.due_at, wake.due_at))
    tx.jobs.save([state])
    return wake.run_id


def _trim(tables: AgentTables, job_id: int) -> int:
    """Drop events beyond the limit; how many wait."""
    waiting = tables.waiting(job_id)
    gone = surplus(waiting)
    tables.drop_events(gone)
    return len(waiting) - len(gone)


def _end_wake(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    tables = tx.of(AgentTables)
    if result.outcome in HEARD:
        tables.hear(run.id)
        return
    if tables.give_back(run.id):
        _trim(tables, job.id)
    known = tables.wake(job.id)
    if run.started_at is None and known is not None and known.run_id == run.id:
        tables.drop_wake(job.id)  # it was never started, and is no longer needed
    elif run.started_at is not None and known is None:
        _try_again(tx, context, job, run, result)


def _try_again(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """A run that was claimed and did not succeed has its wake again, unless a person ended it on purpose."""
    state = tx.jobs.states([job.id])[job.id]
    if job.removed_at is not None or not state.enabled or state.paused:
        return
    waiting = [other for other in tx.runs.open(job.id) if other.status == "queued" and other.id != run.id]
    if waiting:  # the kernel has queued a further attempt: deferred, cut off, or recovered
        again = min(waiting, key=lambda other: (other.due_at, other.id))
        hops = hops_of(tx, run.id)
        tx.of(AgentTables).put_wake(Wake(job.id, _reason(run.reason), again.due_at, tx.now, again.id, hops))
    elif result.outcome in FAILURES:
        ladder = from_text(job.options).backoff
        wake = after_failure(None, job.id, max(1, state.errors), tx.now, ladder)
        _store(tx, context, (job, state), wake._replace(hops=hops_of(tx, run.id)))


def _reason(reason: str) -> str:
    return reason if reason in PRIORITIES else "retry"


def _with_answer(tx: Transaction, payload: dict[str, Any], run: RunRow, output: Any) -> dict[str, Any]:
    """Where the reply goes: a chat message is answered where it came from, unless its schedule says otherwise."""
    if "chat" not in payload:
        is_limited = isinstance(output, dict) and output.get("untrusted")
        to = payload.get("untrusted", {}).get("deliver") if is_limited else None
        return payload if to is None else {**payload, "deliver": to}
    if payload.get("deliver") is not None:
        return payload
    from wakeful.agents.inbound.receiving import request_of  # which itself wakes agents

    request = request_of(tx, run)
    if request is None:
        return payload
    about = json.loads(request.about)
    return {**payload, "deliver": about["connector"], "recipient": about["sender"]}


def _deliver(tx: Transaction, context: Context, job: JobDef, run: RunRow, said: tuple[dict[str, Any], Any]) -> None:
    payload, output = said
    if not isinstance(output, dict) or output.get("outcome") != "sent" or not output.get("reply"):
        return
    to = payload.get("deliver")
    if to is None:
        if not has_connectors(tx):
            return
        to = "last"
    post = Post(
        output["reply"],
        to,
        kind="reply",
        title=job.name,
        job_id=job.id,
        job=job.name,
        run_id=run.id,
        agent=payload["agent"],
        outcome=output["outcome"],
        dedupe=f"reply:{run.id}",
        recipient=payload.get("recipient"),
    )
    enqueue(tx, context, post)
