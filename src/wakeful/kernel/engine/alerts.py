"""Alerts: incidents that a person should know of. The one place that opens and closes them, and makes their keys.

An incident has a key, so it is open once however often it is noticed. The code that sees that it is over closes it.
"""

from __future__ import annotations

from collections.abc import Collection

from wakeful.kernel.context import Context
from wakeful.store.interface import Transaction
from wakeful.store.records import Alert

#: Every kind of alert with its meaning; domains add theirs.
MEANINGS: dict[str, str] = {
    "disabled": "a job was disabled after too many errors, or because it cannot be started",
    "failed": "a job failed and has no further run",
    "failing": "a job has failed several times in a row",
    "stuck": "a run reached its time limit, or goes on although it was cancelled",
    "no_handler": "a job is due, and no running node handles its kind",
    "no_node": "a job is due, and no running node has the labels it requires",
    "clock": "the system clock was set",
    "dead_node": "a node sent no heartbeat for a lease, and its runs were taken over",
    "stalled": "the loop of a node is blocked",
    "old_transaction": "a transaction on the database has been open for so long that PostgreSQL cannot clean up",
}
#: So many keys are closed one by one; of more, only those that are open.
FEW = 16
#: What is over once its job is gone.
OF_A_JOB = ("disabled", "failed", "failing", "stuck", "no_handler", "no_node", "down")
#: What is over once its job is no longer due.
UNSERVED = ("no_handler", "no_node")


def alert_key(kind: str, subject: object) -> str:
    """The key of an incident of that kind about a job's number, a node's name, or the like."""
    return f"{kind}:{subject}"


def open_alert(
    tx: Transaction, context: Context, kind: str, subject: object, message: str, *, job_id: int | None = None
) -> bool:
    """Open the incident, or count it once more if it is open; True when it is new. Its kind must be declared."""
    if kind not in MEANINGS:
        message = f"There is no alert kind {kind!r}: list it, with its meaning, in `alerts` of its domain."
        raise ValueError(message)
    return tx.journal.raise_alert(
        Alert(context.new_id(), alert_key(kind, subject), kind, job_id, message, tx.now, tx.now, 1, None, None)
    )


def close_alert(tx: Transaction, kind: str, subject: object) -> bool:
    """The incident is over; True when it was open."""
    return tx.journal.close_alert(alert_key(kind, subject), tx.now)


def close_alerts(tx: Transaction, kinds: Collection[str], job_ids: Collection[int]) -> None:
    """Close what is open of these kinds about these jobs."""
    keys = {alert_key(kind, job_id) for job_id in job_ids for kind in kinds}
    if len(keys) > FEW:
        keys &= {alert.key for alert in tx.journal.open_alerts()}
    for key in sorted(keys):
        tx.journal.close_alert(key, tx.now)
