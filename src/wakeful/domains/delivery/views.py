"""Deliveries and connectors as people see them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.delivery.tables import AttemptRow, ConnectorRow, DeliveryFilter, DeliveryRow, Outbox
from wakeful.errors import DeliveryNotFound
from wakeful.kernel.model.measures import Measure
from wakeful.kernel.views.explain import Explanation
from wakeful.triggers.moments import iso, read_moment, spoken

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

MOST = 10_000  # messages of a connector that are counted
MOST_CONNECTORS = 100


def delivery_text(number: int) -> str:
    return ids.encode("dlv", number)


def delivery_number(text: str) -> int:
    """The number behind a delivery's id, or DeliveryNotFound."""
    number = ids.number_of("dlv", text)
    if number is None:
        raise DeliveryNotFound(f"{text!r:.80} is not the id of a delivery, such as {delivery_text(0)}.")
    return number


def shown(row: DeliveryRow, attempts: Sequence[AttemptRow] = ()) -> dict[str, Any]:
    """A delivery as plain data."""
    return {
        "id": delivery_text(row.id),
        "status": row.status,
        "connector": row.connector,
        "kind": row.kind,
        "text": row.text,
        "title": row.title,
        "job": row.job,
        "run": ids.run_text(row.run_id) if row.run_id is not None else None,
        "agent": row.agent,
        "outcome": row.outcome,
        "to": row.recipient,
        "urgent": bool(row.urgent),
        "attempts": row.attempts,
        "next_attempt_at": _wire(row.next_at),
        "last_error": row.last_error,
        "held_for": row.held_for,
        "digest": delivery_text(row.digest_id) if row.digest_id is not None else None,
        "created_at": iso(row.created_at),
        "sent_at": _wire(row.sent_at),
        "log": [_attempt(item) for item in attempts],
    }


def _attempt(item: AttemptRow) -> dict[str, Any]:
    ok = None if item.ok is None else bool(item.ok)
    return {"at": iso(item.at), "ok": ok, "error": item.error, "ms": item.ms}


def _wire(ms: int | None) -> str | None:
    return iso(ms) if ms is not None else None


def list_deliveries(tx: Transaction, wanted: DeliveryFilter) -> list[dict[str, Any]]:
    """Deliveries, the newest first, each with its attempts."""
    rows = tx.of(Outbox).matching(wanted)
    attempts = tx.of(Outbox).attempts_of([row.id for row in rows])
    return [shown(row, attempts.get(row.id, ())) for row in rows]


def get_delivery(tx: Transaction, number: int) -> dict[str, Any]:
    row = tx.of(Outbox).get(number)
    if row is None:
        raise DeliveryNotFound(f"There is no delivery {delivery_text(number)}.")
    return shown(row, tx.of(Outbox).attempts(number))


def run_deliveries(tx: Transaction, run_ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """What was sent about runs, in brief."""
    found: dict[int, list[dict[str, Any]]] = {}
    for run, number, connector, status, error in tx.of(Outbox).of_runs(run_ids):
        brief = {"id": delivery_text(number), "connector": connector, "status": status, "last_error": error}
        found.setdefault(int(run), []).append(brief)
    return found


def list_connectors(tx: Transaction) -> list[dict[str, Any]]:
    """Connectors in the order in which they were registered, with how much waits for each."""
    outbox = tx.of(Outbox)
    counts, interactions = outbox.counts(), outbox.interactions()
    found = []
    for row in outbox.connectors():
        waiting = sum(counts.get((row.name, status), 0) for status in ("pending", "sending", "unknown"))
        last = next((item for item in interactions if item.connector == row.name), None)
        figures = {status: counts.get((row.name, status), 0) for status in ("held", "failed")}
        about = {"name": row.name, "type": row.type, "source": row.source, "pending": waiting, **figures}
        found.append({**about, **_rules(row), "last_interaction_at": _wire(last.at if last is not None else None)})
    return found


def _rules(row: ConnectorRow) -> dict[str, Any]:
    rules: dict[str, Any] = json.loads(row.rules)
    return rules


def _said(at: str | None, zone: tzinfo) -> str | None:
    return spoken(read_moment(at, "at"), zone) if at is not None else None


_STANDS = {
    "sent": "It was sent at {sent_at}, at attempt {attempts}.",
    "sending": "It is being sent now.",
    "pending": "It waits to be sent; the next attempt is at {next_attempt_at}.",
    "held": "It is held.",
    "failed": "It failed at attempt {attempts}, and is sent again only when asked: wakeful delivery requeue {id}",
    "unknown": "Its server ended while it was sent: it may have arrived.",
    "expired": "It is not sent any more.",
}


def explain_by_id(tx: Transaction, ref: str, zone: tzinfo) -> Explanation:
    """The same for an id."""
    return explain_delivery(tx, delivery_number(ref), zone)


def explain_delivery(tx: Transaction, number: int, zone: tzinfo = UTC) -> Explanation:
    """What a message is, where it stands and why, with times of that zone."""
    found = get_delivery(tx, number)
    times = {key: _said(found[key], zone) for key in ("sent_at", "next_attempt_at")}
    about = f" of {found['run']}" if found["run"] else ""
    about += f" of {found['job']}" if found["job"] else ""
    through = f"through {found['connector']}" if found["connector"] else "without a connector yet"
    sentences = [
        f"{found['id']} is a message of kind {found['kind']}{about}, {through}.",
        _STANDS[found["status"]].format(**{**found, **times}),
    ]
    if found["status"] != "sent" and found["last_error"]:
        sentences.append(f"Why: {found['last_error'].rstrip('.')}.")
    return Explanation(found["id"], sentences, found)


def measures(tx: Transaction) -> list[Measure]:
    """What waits in the outbox, by connector, for `/metrics`."""
    outbox = tx.of(Outbox)
    queued = {(row.name,): outbox.queued(row.name, MOST) for row in outbox.connectors()[:MOST_CONNECTORS]}
    ages = {key: (tx.now - since) / 1000 if since is not None else 0 for key, (_, since) in queued.items()}
    return [
        Measure("wakeful_outbox_pending", "Messages that wait to be sent.", ("connector",),
                {key: count for key, (count, _) in queued.items()}),
        Measure("wakeful_outbox_oldest_seconds", "How long the first of them has waited.", ("connector",),
                {key: max(0, age) for key, age in ages.items()}),
    ]  # fmt: skip
