"""What was held for quiet hours, at their end: digests, in as many parts as they take, or the messages one by one.

A message in a digest is held until the part that has it is over, and then is what became of that part: its text arrived
if, and only if, it is `sent`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wakeful.domains.delivery.outbox import emit
from wakeful.domains.delivery.rules import Rules, quiet_until
from wakeful.domains.delivery.tables import ConnectorRow, DeliveryRow, Outbox
from wakeful.domains.delivery.texts import DigestEntry, digest
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

MOST_AT_ONCE = 1_000  # messages that one transaction releases
DIGEST = "digest"


def release(tx: Transaction, context: Context, connector: ConnectorRow, rules: Rules) -> None:
    """What was held for quiet hours that are over becomes a digest, or waits in the queue again.

    A digest that was not sent before they began again is no part of another: it waits in the queue, too.
    """
    outbox = tx.of(Outbox)
    if quiet_until(rules, tx.now) is not None:
        return
    held = outbox.held(connector.name, MOST_AT_ONCE)
    apart = rules.quiet is not None and not rules.quiet.digest
    for row in held:
        if apart or row.kind == DIGEST:
            outbox.save(row._replace(status="pending", open=1, held_for=None, next_at=tx.now))
    together = [] if apart else [row for row in held if row.kind != DIGEST]
    zone = rules.quiet.hours.timezone if rules.quiet is not None else None
    for recipient in dict.fromkeys(row.recipient for row in together):
        _digest(tx, context, [row for row in together if row.recipient == recipient], zone)


def _digest(tx: Transaction, context: Context, held: list[DeliveryRow], zone: str | None) -> None:
    """Combine the messages for one recipient."""
    from wakeful.domains.delivery.chat.buttons import gathered  # loaded with the first digest

    begin = 0
    for part in digest([DigestEntry(_clock(row.created_at, zone), row.title, row.text) for row in held]):
        rows = held[begin : begin + part.entries]
        begin += part.entries
        buttons = gathered(rows)
        number = context.new_id()
        row = DeliveryRow(
            id=number, connector=held[0].connector, recipient=held[0].recipient, status="pending", open=1,
            kind=DIGEST, text=part.text, title=part.title, job_id=None, job=None, run_id=None, agent=None,
            outcome=None, extra=json.dumps({"buttons": buttons}) if buttons else None, urgent=0, attempts=0,
            next_at=tx.now, last_error=None, created_at=tx.now,
        )  # fmt: skip
        tx.of(Outbox).add(row)
        tx.of(Outbox).put_in_digest([item.id for item in rows], number)
        emit(tx, "queued", row)


def _clock(ms: int, zone: str | None) -> str:
    from zoneinfo import ZoneInfo

    moment = from_ms(ms)
    return moment.astimezone(ZoneInfo(zone)).strftime("%H:%M") if zone is not None else moment.strftime("%H:%M UTC")
