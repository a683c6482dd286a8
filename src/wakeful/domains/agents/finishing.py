"""The end of a run that asked an agent: its output, from a reply or from a report about work that went on elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.acknowledging import ack_of, outcome_of
from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.inbound.receiving import take_request
from wakeful.domains.agents.inbound.sections import overridden
from wakeful.domains.agents.kept_session import keep, kept_for
from wakeful.domains.agents.replies.tables import Replies
from wakeful.domains.agents.runners.replies import reply_in
from wakeful.domains.agents.runners.turn import Reply
from wakeful.domains.agents.runners.usage import usage_of
from wakeful.domains.agents.senders.feeding import is_fed
from wakeful.domains.agents.senders.trusting import is_written_by_others
from wakeful.domains.agents.session_lanes import chat_of, given_to
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.wakes import given_events
from wakeful.domains.agents.work import known_item

if TYPE_CHECKING:
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow


def output_of(payload: dict[str, Any], reply: Reply, notes: list[str]) -> dict[str, Any]:
    """A reply as its run keeps it."""
    outcome = _outcome(payload, reply.text)
    silent = outcome == "sent" and payload.get("deliver") == "none"
    output = {
        "reply": reply.text.strip(),
        "session": reply.session,
        "cost": reply.cost,
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "outcome": "silent" if silent else outcome,
    }
    if payload.get("reason") is not None:
        output["reason"] = payload["reason"]
    if payload.get("events"):
        output["events"] = len(payload["events"])
    if payload.get("item") is not None:
        output["item"] = payload["item"]["id"]
    return {**output, "notes": notes} if notes else output


def _outcome(payload: dict[str, Any], text: str) -> str:
    """What becomes of a reply. A person who has written is answered: only others can do without an answer."""
    is_answer = chat_of(payload) is not None or payload.get("is_answer")
    return outcome_of(text, None if is_answer else ack_of(payload))


def as_reported(tx: Transaction, job: JobDef, run: RunRow, result: Result) -> Result:
    """What was reported about work that a session server accepted, as the end of a run that asked an agent."""
    payload = _payload_of(tx, job, run)
    lives_there = (payload.get("runner") or {}).get("url") is not None
    if result.outcome != "success" or not (lives_there or run.status == "waiting"):
        return result
    others_wrote = is_written_by_others(payload)  # also before it is asked
    is_limited = payload.get("untrusted") is not None and bool(others_wrote or is_fed(tx, run.id))
    if is_limited:
        payload = overridden(payload, payload["untrusted"])
    route = tx.of(Replies).of(run.id)
    if route is not None:  # whatever was edited since
        payload = {**payload, "deliver": (route.limited_to if is_limited else None) or route.goes_to}
    kept = kept_for(tx, run.id, job.name, payload)
    body = json.loads(result.output) if result.output is not None else None
    reply = reply_in(body, kept.session.session if kept.session is not None else None)
    if lives_there:  # else the agent has another runner by now, which cannot continue in that session
        reply = keep(tx, payload, kept, reply)
    output, usage = output_of(payload, reply, []), usage_of(reply)
    output |= {"untrusted": True} if is_limited else {}
    return result._replace(output=json.dumps(output), usage=None if usage is None else json.dumps(usage))


def _payload_of(tx: Transaction, job: JobDef, run: RunRow) -> dict[str, Any]:
    """The payload with which a run that waits was called: its job's, and what it was given when it was claimed."""
    tables = tx.of(AgentTables)
    payload = effective_payload(tx, {**json.loads(job.payload), **given_to(tx, run)})
    if payload["does"] == "wake":
        given = given_events(tables.given_to(run.id), payload.get("work_keys", ()))
        payload = {**payload, **given, "events": [*given["events"], *given.get("work_events", ())]}
    else:
        payload = {**payload, **(take_request(tx, job, run) or {})}
    item = tables.item_of(run.id)
    return payload if item is None else {**payload, "item": known_item(item)}
