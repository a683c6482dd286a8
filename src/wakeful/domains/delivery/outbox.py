"""The outbox: a message is stored in the transaction of whatever caused it, and sent by its connector's own job.

`enqueue(tx, context, Post(...))` may be called in any transaction of the engine, of an action or of
`scheduler.transact`: the message is stored with everything else that transaction writes, or not at all, and its
connector's job is armed with it, so that it goes out milliseconds after the commit. An alert is
`Post(text, to, kind="alert", title=…, urgent=True, dedupe="alert:KEY:opened")`: `urgent` passes quiet hours, and a
`dedupe` key that is known already stores nothing and returns the id of the first. `extra` (a JSON object) reaches
connectors that can show more than a text: `extra={"buttons": [button("approve", run_id)]}` puts buttons under a message
in a chat, see `wakeful.domains.delivery.chat.buttons`.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from wakeful import ids
from wakeful.domains.delivery.chat import CHAT_TYPES
from wakeful.domains.delivery.chat.tables import Chats
from wakeful.domains.delivery.post import Post
from wakeful.domains.delivery.routing import LAST, NOWHERE, DeliveryRoute, route
from wakeful.domains.delivery.rules import Rules, gap_after, quiet_until, rules_of
from wakeful.domains.delivery.tables import ConnectorRow, DeliveryRow, Outbox
from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.kernel.rules.outcome import clean
from wakeful.store.interface import Transaction
from wakeful.store.records import JobState

KINDS = ("reply", "output", "alert", "digest", "test")
STATUSES = ("pending", "sending", "sent", "failed", "unknown", "held", "expired")
NO_CONNECTOR = "no_connector"


def enqueue(tx: Transaction, context: Context, post: Post) -> int | None:
    """Store a message and arm the job that sends it; its number, or None where `to` is none.

    In a chat it is stored once for each person who is paired there; the number is that of the first.
    """
    if post.to == NOWHERE:
        return None
    outbox = tx.of(Outbox)
    if post.dedupe is not None and (known := outbox.by_dedupe(post.dedupe)) is not None:
        return known
    connectors = {row.name: row for row in outbox.connectors()}
    chosen = route(post.to, post.agent, list(connectors), outbox.interactions() if post.to == "last" else ())
    found = connectors.get(chosen.connector) if chosen.connector is not None else None
    recipient = post.recipient if post.recipient is not None else chosen.recipient
    if found is None:
        number = _add(tx, context, post, chosen._replace(recipient=recipient), None)
        if context.only is None:  # what a single run leaves waits for a server, which says what it misses
            subject = chosen.connector or LAST
            open_alert(tx, context, NO_CONNECTOR, subject, f"Messages wait: {chosen.reason}.", job_id=post.job_id)
        return number
    until = None if post.urgent else quiet_until(rules_of(found.rules), tx.now)
    hold = DeliveryHold("quiet", until) if until is not None else None
    recipients: list[str | None] = [recipient]
    if recipient is None and found.type in CHAT_TYPES:
        recipients = [person.sender for person in tx.of(Chats).people(found.name)]
        if not recipients:
            return _wait_for_pairing(tx, context, post, found)
    first: int | None = None
    for to in recipients:
        number = _add(tx, context, _copy(post, first, to), DeliveryRoute(found.name, to), hold)
        first = number if first is None else first
    if until is None:
        _try_again(tx, found.name)
    arm(tx, found, tx.now if until is None else until)
    return first


def alert_unregistered(tx: Transaction, context: Context) -> None:
    """A server starts: open an alert for each place that messages wait for and that nobody registered."""
    outbox = tx.of(Outbox)
    known = [row.name for row in outbox.connectors()]
    for to in outbox.awaited():
        if to not in known:
            reason = route(LAST if to is None else to, None, known, ()).reason
            open_alert(tx, context, NO_CONNECTOR, to or LAST, f"Messages wait: {reason}.")


CANCELLED = "a person cancelled it"


class DeliveryHold(NamedTuple):
    """Why a message is not sent yet, and until when if that is known."""

    why: str
    until: int | None


def _copy(post: Post, first: int | None, to: str | None) -> Post:
    """The message for one of several people: the first has its key, the others keys of their own, and its buttons."""
    if first is None:
        return post
    dedupe = f"{post.dedupe}:{to}" if post.dedupe is not None else None
    extra = {**post.extra, "copy_of": ids.encode("dlv", first)} if post.extra is not None else None
    return post._replace(dedupe=dedupe, extra=extra)


def unpaired(connector: str) -> str:
    """Why messages to a chat wait."""
    return f"no person is paired with {connector}: run wakeful connector pair {connector}"


def _wait_for_pairing(tx: Transaction, context: Context, post: Post, connector: ConnectorRow) -> int:
    reason = unpaired(connector.name)
    number = _add(tx, context, post, DeliveryRoute(connector.name, None, reason), DeliveryHold("pairing", None))
    open_alert(tx, context, NO_CONNECTOR, connector.name, f"Messages wait: {reason}.", job_id=post.job_id)
    return number


def hold_for_pairing(tx: Transaction, context: Context, connector: str) -> None:
    """What is for no person in particular waits until one is paired."""
    reason = unpaired(connector)
    if tx.of(Outbox).hold_for_pairing(connector, reason):
        open_alert(tx, context, NO_CONNECTOR, connector, f"Messages wait: {reason}.")


def _add(tx: Transaction, context: Context, post: Post, chosen: DeliveryRoute, hold: DeliveryHold | None) -> int:
    """Store one message to one recipient; its number."""
    row = DeliveryRow(
        id=context.new_id(),
        connector=chosen.connector,
        recipient=chosen.recipient,
        status="pending" if hold is None else "held",
        open=int(hold is None),
        kind=post.kind,
        text=clean(post.text),
        title=clean(post.title) if post.title is not None else None,
        job_id=post.job_id,
        job=post.job,
        run_id=post.run_id,
        agent=post.agent,
        outcome=post.outcome,
        extra=json.dumps(dict(post.extra)) if post.extra is not None else None,
        urgent=int(post.urgent),
        attempts=0,
        next_at=tx.now if hold is None else hold.until,
        last_error=chosen.reason,
        created_at=tx.now,
        held_for=None if hold is None else hold.why,
        dedupe=post.dedupe,
    )
    tx.of(Outbox).add(row)
    emit(tx, "queued" if hold is None else "held", row)
    return row.id


def connector_for(tx: Transaction, to: str) -> str | None:
    """Which connector a message to `to` would be sent through now; None where it would wait."""
    outbox = tx.of(Outbox)
    known = [row.name for row in outbox.connectors()]
    chosen = route(to, None, known, outbox.interactions() if to == "last" else ())
    return chosen.connector


def emit(tx: Transaction, what: str, row: DeliveryRow) -> None:
    """An event on the stream `delivery`; what is in the message stays out of it."""
    about = {"delivery": row.id, "connector": row.connector, "kind": row.kind, "job": row.job, "run": row.run_id}
    tx.events.emit("delivery", {"type": what, **{name: value for name, value in about.items() if value is not None}})


# -- when a connector's job is due -------------------------------------------------------------------------------------


def arm(tx: Transaction, connector: ConnectorRow, at: int) -> None:
    """Let the connector's job start no later than `at`. One that runs looks at its queue when it ends."""
    found = tx.jobs.by_id(connector.job_id)
    if found is None:
        return
    state = found[1]
    if state.run_id is None and state.enabled and not state.paused and state.parked is None:
        armed = armed_at(state, max(at, tx.now))
        if state.next_at is None or state.due_at is None or (armed.next_at or 0) < state.next_at:
            tx.jobs.save([armed])


def armed_at(state: JobState, at: int) -> JobState:
    """The state with its next start there, as a slot that was never run."""
    slot = max(at, (state.last_slot or 0) + 1, (state.last_run_at or 0) + 1)
    due_at = min(state.due_at, at) if state.queued and state.due_at is not None else at
    return state._replace(slot=slot, next_at=at, due_at=due_at, ready_at=None, backoff_until=None)


def arm_for(tx: Transaction, connector: ConnectorRow) -> None:
    """Arm the connector's job for what waits in its queue."""
    at = next_look(tx, connector)
    if at is not None:
        arm(tx, connector, at)


def next_look(tx: Transaction, connector: ConnectorRow) -> int | None:
    """When there is something to do for a connector: its head is due and the rate allows it, or quiet hours end."""
    outbox, rules = tx.of(Outbox), rules_of(connector.rules)
    found = []
    head = outbox.head(connector.name)
    if head is not None:
        at = max(attempt_at(tx, head), free_at(outbox, connector.name, rules, tx.now))
        expires = head.since + rules.max_age if rules.max_age is not None else at
        found.append(min(at, max(expires, tx.now)))
    if outbox.holds_any(connector.name):
        found.append(quiet_until(rules, tx.now) or tx.now)  # by the clock as it is now, which may have been set since
    return min(found, default=None)


def attempt_at(tx: Transaction, row: DeliveryRow) -> int:
    """When a message is tried next: at once where the clock was set back since that was decided."""
    at = row.next_at or tx.now
    if at <= tx.now:
        return at
    tried = tx.of(Outbox).attempts(row.id) if row.attempts else []
    decided = tried[-1].at if tried else at
    return tx.now if decided > tx.now else at


def hasten(tx: Transaction, connector: str, at: int) -> None:
    """Let the head be tried then, before its turn, but not while its target asked to be left alone.

    Such an attempt does not count: if it fails, the next one is when it would have been.
    """
    head = tx.of(Outbox).head(connector)
    if head is None or head.next_at is None or head.next_at <= at:
        return
    if (head.not_before or 0) > at and attempt_at(tx, head) > tx.now:  # else that is of another clock
        at = head.not_before or at
    if at < head.next_at:
        regular_at = head.regular_at or (head.next_at if head.attempts else None)
        tx.of(Outbox).save(head._replace(next_at=at, regular_at=regular_at))


def _try_again(tx: Transaction, connector: str) -> None:
    """A message joins a queue whose head was refused: its target may be back by now, and all of them would wait."""
    outbox = tx.of(Outbox)
    head = outbox.head(connector)
    if head is None or head.status != "pending" or not head.attempts or (head.next_at or 0) <= tx.now:
        return
    tried = outbox.tried_between(head.id)
    if tried is not None:
        hasten(tx, connector, max(tx.now, tried[1] + gap_after(*tried)))


def free_at(outbox: Outbox, connector: str, rules: Rules, now: int) -> int:
    """When the rate allows the next attempt."""
    if rules.rate is None:
        return now
    since = now - rules.rate.span
    back = outbox.attempt_before(connector, (since, now), rules.rate.times)
    return now if back is None else back + rules.rate.span


# -- by hand -----------------------------------------------------------------------------------------------------------


def requeue(tx: Transaction, number: int) -> tuple[DeliveryRow | None, str | None]:
    """Send it again from the first attempt, with its old id; None where there is no such delivery.

    With the reason why it stays as it is, where there is one.
    """
    outbox = tx.of(Outbox)
    row = outbox.get(number)
    why = _unmoved(tx, row) if row is not None else None
    if row is None or why is not None:
        return row, why
    outbox.requeue(number, tx.now)
    row = outbox.get(number)
    assert row is not None  # noqa: S101 - just written
    emit(tx, "requeued", row)
    arm_named(tx, {row.connector})
    return row, None


def _unmoved(tx: Transaction, row: DeliveryRow) -> str | None:
    """Why a message cannot be queued again; `Outbox.requeue_all` leaves out the same."""
    if row.digest_id is not None:
        return "part of a digest"
    if row.held_for == "quiet":
        return "held until quiet hours end"
    if row.held_for == "pairing":
        return f"held until a person is paired with {row.connector}"
    if row.recipient is not None and row.connector in _chats(tx):
        paired = tx.of(Chats).person(row.connector, row.recipient)
        return f"for {row.recipient}, who is no longer paired with {row.connector}" if paired is None else _over(row)
    return _over(row)


def _over(row: DeliveryRow) -> str | None:
    return {"sent": "sent", "sending": "being sent"}.get(row.status)


def _chats(tx: Transaction) -> set[str]:
    """The connectors that send to people who are paired."""
    return {row.name for row in tx.of(Outbox).connectors(removed=True) if row.type in CHAT_TYPES}


def cancel(tx: Transaction, number: int) -> DeliveryRow | None:
    """Do not send what waits or failed; None where there is no such delivery. Any other stays as it is."""
    outbox = tx.of(Outbox)
    row = outbox.get(number)
    if row is None or row.digest_id is not None or row.kind == "test":
        return row
    if row.status not in ("pending", "held", "failed") and not (row.status == "unknown" and row.open):
        return row
    row = row._replace(status="expired", open=0, held_for=None, next_at=None, last_error=CANCELLED)
    outbox.save(row)
    outbox.end_digest(number, "expired", CANCELLED, None)
    emit(tx, "cancelled", row)
    arm_named(tx, {row.connector})
    return row


def requeue_all(tx: Transaction, context: Context, status: str) -> int:
    """The same for all of one status; how many."""
    connectors = tx.of(Outbox).requeue_all(status, tx.now, _chats(tx))
    arm_named(tx, set(connectors))
    for name in set(connectors):
        if name is not None:
            close_alert(tx, context, "delivery_failed", name)
    if connectors:
        tx.events.emit("delivery", {"type": "requeued_many", "count": len(connectors)})
    return len(connectors)


def arm_named(tx: Transaction, names: set[str | None]) -> None:
    for row in tx.of(Outbox).connectors():
        if row.name in names:
            arm(tx, row, tx.now)


def hold_pending(tx: Transaction) -> int:
    """Everything that waits to be sent is held for a person, as after restoring a backup; how many."""
    return tx.of(Outbox).hold_all("restore")


def release_pending(tx: Transaction) -> int:
    """What was held by `hold_pending` is sent after all; how many."""
    count = tx.of(Outbox).release_held("restore", tx.now)
    arm_named(tx, {row.name for row in tx.of(Outbox).connectors()})
    return count
