"""Requests and the runs they start, in transactions: stored once, given to their run, run again by a person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.agents.inbound.tables import InboundRequests, RequestRow
from wakeful.domains.agents.naming import LANE
from wakeful.errors import QueueFull, RequestNotFound, SchedulerError, ScheduleTriggerError
from wakeful.kernel.rules.outcome import clean
from wakeful.store.records import RunDetails, RunRow, SkipRow
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

MOST_WAITING = 1_000
WEBHOOK, CHAT = "webhook", "chat"
BY_TIME = ("schedule", "catch_up")


class Inbound(NamedTuple):
    """Something that came in."""

    type: str
    delivery_id: str | None
    about: Mapping[str, Any]
    body: str
    replay_of: int | None = None
    digest: str | None = None  # of what is signed, where the delivery id is not


class ReceivedRequest(NamedTuple):
    """A request that is stored, and the run it asked for."""

    request_id: int
    run_id: int
    is_duplicate: bool = False


class TurnedAway(NamedTuple):
    """A request that is not stored; that it came is counted. `error` is raised once that is committed."""

    error: SchedulerError


def take(
    tx: Transaction, context: Context, pair: tuple[JobDef, JobState], given: Inbound
) -> ReceivedRequest | TurnedAway:
    """Store a request and queue its run, or say that it is known already. `pair` was read in this transaction."""
    job, state = pair
    requests = tx.of(InboundRequests)
    known = requests.called(job.id, given.delivery_id, given.digest)
    if known is not None:
        return ReceivedRequest(known.id, known.run_id, is_duplicate=True)
    if (refusal := _refusal(tx, job, state)) is not None:
        return refusal
    run = RunRow.queued(context.new_id(), job, given.type, tx.now)
    row = RequestRow(
        id=context.new_id(), job_id=job.id, type=given.type, delivery_id=given.delivery_id, replay_of=given.replay_of,
        run_id=run.id, at=tx.now, about=clean(json.dumps(given.about)), body=clean(given.body), digest=given.digest,
    )  # fmt: skip
    tx.runs.add([run])
    tx.runs.detail([RunDetails(run.id, payload=json.dumps(reference(row)))])
    requests.add(row)
    _queue(tx, state)
    return ReceivedRequest(row.id, run.id)


def _refusal(tx: Transaction, job: JobDef, state: JobState) -> TurnedAway | None:
    if not state.enabled:
        message = f"{job.name} is disabled: resume it first."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "disabled"})
    if state.queued >= MOST_WAITING:
        message = f"{MOST_WAITING:,} requests wait for {job.name}: send this one again later."
        tx.skips.count([SkipRow(job.id, "queue_full", 1, tx.now, f"{MOST_WAITING:,} requests")])
        return TurnedAway(QueueFull(message))
    return None


def _queue(tx: Transaction, state: JobState) -> None:
    """One more run waits. A parked job keeps its place in the line; a busy or paused one is looked at later."""
    if state.paused:
        tx.skips.count([SkipRow(state.job_id, "paused", 1, tx.now, "a request waits until it is resumed")])
    elif state.run_id is None and (state.parked is None or state.parked.startswith(LANE)):
        # Another sender's session may be free: it is looked at again, and keeps its place in the line.
        state = state._replace(due_at=tx.now, parked=None)
    tx.jobs.save([state._replace(queued=state.queued + 1)])


def reference(row: RequestRow) -> dict[str, Any]:
    """What a run is stored with: which request it works on."""
    again = {} if row.replay_of is None else {"replay_of": request_text(row.replay_of)}
    return {"request": request_text(row.id), "type": row.type, "delivery_id": row.delivery_id, **again}


def request_of(tx: Transaction, run: RunRow) -> RequestRow | None:
    """The request a run works on; further attempts of a run work on the same."""
    named = _named_by(tx, run)
    return None if named is None else tx.of(InboundRequests).get(named)


def _named_by(tx: Transaction, run: RunRow) -> int | None:
    details = tx.runs.details(run.id)
    payload = json.loads(details.payload) if details is not None and details.payload is not None else None
    named = payload.get("request") if isinstance(payload, dict) else None
    return ids.number_of("req", named) if isinstance(named, str) else None


def take_request(tx: Transaction, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    """What a run that is being claimed takes with it: the schedule as it is now, and the request."""
    named = None if run.reason in BY_TIME else _named_by(tx, run)
    if named is None:
        return None
    payload: dict[str, Any] = json.loads(job.payload)
    row = tx.of(InboundRequests).get(named)
    if row is None:  # retention was quicker: its handler reports that
        return {**payload, "request": {"body": None}}
    return {**payload, "request": {**shown(row, job.name), "about": json.loads(row.about), "body": row.body}}


def replay(tx: Transaction, context: Context, ref: str) -> ReceivedRequest | TurnedAway:
    """Let a request run again, as a new one with the same content."""
    row = require(tx, ref)
    pair = tx.jobs.by_id(row.job_id)
    if pair is None or pair[0].removed_at is not None:
        raise ScheduleTriggerError(f"{ref} cannot run again: its schedule was removed.", {"reason": "removed"})
    if row.body is None:
        raise ScheduleTriggerError(f"{ref} cannot run again: its content was pruned.", {"reason": "pruned"})
    if not _starts(pair[0]):
        raise ScheduleTriggerError(f"{ref} cannot run again: no schedule took it.", {"reason": "no_schedule"})
    return take(tx, context, pair, Inbound(row.type, None, json.loads(row.about), row.body, row.id))


def _starts(job: JobDef) -> bool:
    return not {WEBHOOK, CHAT}.isdisjoint(json.loads(job.payload))


def settled(found: ReceivedRequest | TurnedAway) -> ReceivedRequest:
    """What was stored; raises what a request was turned away with, now that it is counted."""
    if isinstance(found, TurnedAway):
        raise found.error
    return found


# -- as people see them ------------------------------------------------------------------------------------------------


def request_text(number: int) -> str:
    return ids.encode("req", number)


def require(tx: Transaction, ref: str) -> RequestRow:
    number = ids.number_of("req", ref)
    found = tx.of(InboundRequests).get(number) if number is not None else None
    if found is None:
        raise RequestNotFound(f"There is no request {ref!r:.80}.")
    return found


def shown(row: RequestRow, job: str | None) -> dict[str, Any]:
    """A request without its content."""
    return {
        "id": request_text(row.id),
        "job": job,
        "type": row.type,
        "delivery_id": row.delivery_id,
        "replay_of": None if row.replay_of is None else request_text(row.replay_of),
        "run": ids.run_text(row.run_id) if row.run_id else None,
        "at": iso(row.at),
    }


def list_requests(tx: Transaction, job: str | None, before: int | None, limit: int) -> list[dict[str, Any]]:
    """Requests of one schedule or of all, the newest first, without their content."""
    of_job = None
    if job is not None:
        found = tx.jobs.names([job]).get(job)
        if found is None:
            raise RequestNotFound(f"There is no schedule {job!r:.80}: write it as agent.schedule.")
        of_job = found
    rows = tx.of(InboundRequests).newest(of_job, before, limit)
    names = tx.jobs.definitions(sorted({row.job_id for row in rows})) if rows else {}
    return [shown(row, names[row.job_id].name if row.job_id in names else None) for row in rows]


def get_request(tx: Transaction, ref: str) -> dict[str, Any]:
    """One request with its content."""
    row = require(tx, ref)
    job = tx.jobs.definitions([row.job_id]).get(row.job_id)
    return {**shown(row, job.name if job is not None else None), "about": json.loads(row.about), "body": row.body}


def explained(tx: Transaction, run: RunRow) -> list[str]:
    """What a run works on, for `explain`."""
    row = request_of(tx, run)
    if row is None:
        return []
    what = "webhook" if row.type == WEBHOOK else "chat message"
    if row.replay_of is None:
        return [f"It works on {request_text(row.id)}, a {what}{_named(row)} that came in at {iso(row.at)}."]
    first = tx.of(InboundRequests).get(row.replay_of)
    came = "" if first is None else f", a {what}{_named(first)} that came in at {iso(first.at)}"
    return [f"It works on {request_text(row.id)}, a replay of {request_text(row.replay_of)}{came}."]


def _named(row: RequestRow) -> str:
    return "" if row.delivery_id is None else f" (delivery id {row.delivery_id})"
