"""Alerts: incidents that a person should know of. The one place that opens and closes them, and makes their keys.

An incident has a key, so it is open once however often it is noticed, and is closed by who sees that it is over.
"""

from __future__ import annotations

from wakeful.kernel.context import Context
from wakeful.store.interface import Transaction
from wakeful.store.records import Alert

#: What is over once its job is gone.
OF_A_JOB = ("disabled", "failed", "failing", "stuck", "no_handler", "no_node", "down")


def alert_key(kind: str, subject: object) -> str:
    """The key of an incident of that kind about a job's number, a node's name, or the like."""
    return f"{kind}:{subject}"


def open_alert(
    tx: Transaction, context: Context, kind: str, subject: object, message: str, *, job_id: int | None = None
) -> bool:
    """Open the incident, or count it once more if it is open; True when it is new."""
    return tx.journal.raise_alert(
        Alert(context.new_id(), alert_key(kind, subject), kind, job_id, message, tx.now, tx.now, 1, None, None)
    )


def close_alert(tx: Transaction, kind: str, subject: object) -> bool:
    """The incident is over; True when it was open."""
    return tx.journal.close_alert(alert_key(kind, subject), tx.now)
