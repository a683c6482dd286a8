"""Where replies go, in transactions: a run keeps the place it was to send to when it started, whatever is edited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.acknowledging import ack_of, delivered_text
from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.inbound.listening import listeners
from wakeful.domains.agents.inbound.receiving import CHAT, request_of
from wakeful.domains.agents.replies.tables import Replies, ReplyRoute
from wakeful.domains.agents.senders.feeding import is_fed
from wakeful.domains.delivery import Post, connector_for, enqueue, has_connectors, result_message, subject_of
from wakeful.kernel.engine.alerts import alert_rules
from wakeful.kernel.rules.outcome import FAILURES

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow


def keep_route(tx: Transaction, payload: Mapping[str, Any], run: RunRow) -> None:
    """A run is claimed: its reply goes where its job, as it is now, wants it to go."""
    if payload["does"] in ("ask", "wake"):
        tx.of(Replies).keep(_route(tx, payload, run))


def send_reply(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """A run has ended: store its reply for delivery, if it has one that is to be sent."""
    route = tx.of(Replies).take(run.id)
    if result.outcome in FAILURES and route is not None:
        _notify_failure(tx, context, job, (run, result), route)
    output = json.loads(result.output) if result.outcome == "success" and result.output is not None else None
    if not isinstance(output, dict) or output.get("outcome") != "sent" or not output.get("reply"):
        return
    payload: dict[str, Any] = json.loads(job.payload)
    if route is None:  # it began before routes were kept
        route = _route(tx, effective_payload(tx, payload), run)
    to = (route.limited_to if output.get("untrusted") else None) or route.goes_to
    if to is None and not has_connectors(tx):
        return
    post = Post(
        delivered_text(output["reply"], ack_of(payload)),
        to or "last",
        kind="reply",
        title=_speaker(tx, job, route),
        job_id=job.id,
        job=job.name,
        run_id=run.id,
        agent=payload["agent"],
        outcome=output["outcome"],
        dedupe=f"reply:{run.id}",
        recipient=route.recipient,
    )
    enqueue(tx, context, post)


def _speaker(tx: Transaction, job: JobDef, route: ReplyRoute) -> str | None:
    """Who speaks. A person in a chat where one agent listens knows that."""
    if route.recipient is None:
        subject: str = subject_of(job)
        return subject
    listening = listeners(tx, route.goes_to or "")
    return str(json.loads(job.payload)["agent"]) if len(listening) > 1 else None


def _notify_failure(
    tx: Transaction, context: Context, job: JobDef, ended: tuple[RunRow, Result], route: ReplyRoute
) -> None:
    """A person who wrote is told each time; a place where replies go the first time in a row, and when it is disabled.

    A failure that is tried again is none yet. Where there are `hooks`, they decide.
    """
    run, result = ended
    title: str | None
    to = (route.limited_to if is_fed(tx, run.id) else None) or route.goes_to
    if to == "none" or (to is None and not has_connectors(tx)) or _is_tried_again(tx, job, run):
        return
    agent, state = json.loads(job.payload)["agent"], tx.jobs.state_of(job.id)
    if route.recipient is not None:
        title, text = _speaker(tx, job, route), f"{agent} could not answer: {result.error}"
    elif "deliver" in json.loads(job.options) or state is None or not _is_news(tx, state, to or "last"):
        return
    else:
        title, text = result_message(tx, job, run, result, "")
    post = Post(text, to or "last", "output", title, job.id, job.name, run.id, agent, result.outcome)
    enqueue(tx, context, post._replace(dedupe=f"failure:{run.id}", recipient=route.recipient))


def _is_news(tx: Transaction, state: JobState, to: str) -> bool:
    """Whether this failure is the first in a row or disables the job, and no alert tells the same place of it."""
    if state.errors != 1 and state.enabled:
        return False
    rules = alert_rules(tx)
    if rules.to in (None, "none") or (state.enabled and state.errors < rules.after):
        return True
    same: bool = connector_for(tx, rules.to or "last") == connector_for(tx, to)
    return not same


def _is_tried_again(tx: Transaction, job: JobDef, run: RunRow) -> bool:
    return any(one.retry_of == run.id for one in tx.runs.open(job.id))


def _route(tx: Transaction, payload: Mapping[str, Any], run: RunRow) -> ReplyRoute:
    """A chat message is answered where it came from, unless its schedule says otherwise."""
    to = payload.get("deliver")
    if CHAT not in payload:
        return ReplyRoute(run.id, to, limited_to=(payload.get("untrusted") or {}).get("deliver"))
    request = request_of(tx, run) if to is None else None
    if request is None:
        return ReplyRoute(run.id, to)
    about = json.loads(request.about)
    return ReplyRoute(run.id, about["connector"], about["sender"])
