"""Alerts: incidents that a person should know about. The one place that opens and closes them, and makes their keys.

An incident has a key, so it is open once however often it is noticed. The code that sees that it is over closes it.
An incident that needs a message is handed to the domain that sends it, in the transaction that opens or closes it:
there is no incident without its message, and no message without its incident.
"""

from __future__ import annotations

from collections.abc import Collection

from wakeful.counting import counted
from wakeful.kernel.context import Context
from wakeful.kernel.rules.alerting import OPENED, REPEATED, AlertRules, Notice, rules_from, to_send, to_send_at_end
from wakeful.store.interface import Transaction
from wakeful.store.records import AlertRow
from wakeful.store.troubles import Troubles
from wakeful.triggers.durations import format_interval

#: Every kind of alert with its meaning; domains add theirs.
MEANINGS: dict[str, str] = {
    "disabled": "a job was disabled after too many errors, or because it cannot be started",
    "failed": "a job failed and has no further run",
    "failing": "a job has failed several times in a row",
    "stuck": "a run reached its time limit, or still runs although it was cancelled",
    "flapping": "something fails and recovers again and again",
    "missed": "a job was due and did not start within its grace",
    "approval": "a run waits for a person to approve it",
    "no_handler": "a job is due, and no running node handles its kind",
    "no_node": "a job is due, and no running node has the labels it requires",
    "clock": "the system clock was set",
    "dead_node": "a node sent no heartbeat for a lease, and its runs were taken over",
    "stalled": "the loop of a node is blocked",
    "not_listening": "a node does not notice at once what other processes change in the database",
    "hung": "calls that were given up have not returned, and keep their threads",
    "old_transaction": "a transaction on the database has been open for so long that PostgreSQL cannot clean up",
}
#: Where the settings of alerts are stored.
RULES = "alerts"
#: An incident that opens so often within the cooldown comes and goes.
FLAPPING, FLAPS = "flapping", 3
#: Incidents that are never one and the same.
ALONE = ("approval", FLAPPING)
#: Up to this many keys are closed one by one; of more, only those that are open.
FEW = 16
#: Incidents that are over once their job is gone.
OF_A_JOB = ("disabled", "failed", "failing", "stuck", "missed", "no_handler", "no_node", "down")
#: Incidents that are over once their job is no longer due.
UNSERVED = ("no_handler", "no_node")


def alert_key(kind: str, subject: object) -> str:
    """The key of an incident of that kind about a job's number, a node's name, or the like."""
    return f"{kind}:{subject}"


def alert_rules(tx: Transaction) -> AlertRules:
    """The settings of alerts."""
    return rules_from(tx.facts.get(RULES))


def open_alert(
    tx: Transaction,
    context: Context,
    kind: str,
    subject: object,
    message: str,
    *,
    job_id: int | None = None,
    data: str | None = None,
) -> bool:
    """Open the incident, or count it again if it is open; True when it is new. Its kind must be declared."""
    if kind not in MEANINGS:
        message = f"There is no alert kind {kind!r}: list it, with its meaning, in `alerts` of its domain."
        raise ValueError(message)
    snoozed = tx.alerts.job_snoozed_until(job_id) if job_id is not None else None
    if snoozed is not None and snoozed <= tx.now:
        snoozed = None
    new_id = context.new_id()
    key = alert_key(kind, subject)
    found = AlertRow(
        id=new_id, key=key, kind=kind, job_id=job_id, message=message, opened_at=tx.now, last_at=tx.now, times=1,
        closed_at=None, acked_at=None, snoozed_until=snoozed, data=data,
    )  # fmt: skip
    alert, is_new = tx.alerts.open(found)
    if context.declared.hooks.alerted:
        rules = alert_rules(tx)
        if is_new and rules.to is not None and kind not in ALONE and _flaps(tx, context, alert, rules):
            return is_new
        if not is_new and _is_reported_as_flapping(tx, alert):
            return is_new
        what = to_send(rules, alert, is_new=is_new, now=tx.now)
        if what is not None:
            _send(tx, context, Notice(alert, what, rules))
    return is_new


def _flaps(tx: Transaction, context: Context, alert: AlertRow, rules: AlertRules) -> bool:
    """Whether an incident that has just opened does so again and again: one message says that, in place of them all."""
    troubles, key = tx.of(Troubles), alert_key(FLAPPING, alert.key)
    known = troubles.open_alert(key)
    times = troubles.openings(alert.key, tx.now - rules.cooldown)
    if known is None and times < FLAPS:
        return False
    span = format_interval(rules.cooldown)
    message = f"This comes and goes, {counted(times, 'time')} within {span}: {alert.message}"
    seen = AlertRow(
        id=context.new_id(), key=key, kind=FLAPPING, job_id=alert.job_id, message=message, opened_at=tx.now,
        last_at=tx.now, times=1, closed_at=None, acked_at=None,
    )  # fmt: skip
    flapping, is_new = tx.alerts.open(seen._replace(snoozed_until=alert.snoozed_until))
    if is_new and to_send(rules, flapping, is_new=True, now=tx.now) is not None:
        _send(tx, context, Notice(flapping, OPENED, rules))
    return True


def _is_reported_as_flapping(tx: Transaction, alert: AlertRow) -> bool:
    """Whether the message that it comes and goes stands for it: it was not announced itself."""
    return alert.notified_at is None and tx.of(Troubles).open_alert(alert_key(FLAPPING, alert.key)) is not None


def end_flapping(tx: Transaction, context: Context) -> None:
    """Close what has neither come nor gone for a while; what has stayed open since then is announced."""
    for flapping in tx.alerts.open_of(FLAPPING):
        rules = alert_rules(tx)
        if tx.now - flapping.last_at < rules.cooldown:
            continue
        number = tx.of(Troubles).open_alert(flapping.key.partition(":")[2])
        alert = tx.alerts.get(number) if number is not None else None
        if alert is None:
            _close(tx, context, flapping.key, f"it has not come back for {format_interval(rules.cooldown)}")
            continue
        tx.alerts.close(flapping.key, tx.now)
        what = to_send(rules, alert, is_new=True, now=tx.now)
        if what is not None and context.declared.hooks.alerted:
            _send(tx, context, Notice(alert, what, rules))


def close_alert(tx: Transaction, context: Context, kind: str, subject: object, why: str | None = None) -> bool:
    """Close the incident; True when it was open. `why` appears in the message."""
    return _close(tx, context, alert_key(kind, subject), why)


def reopen_alert(tx: Transaction, context: Context, alert_id: int) -> None:
    """The incident is not over after all; who was told that it is hears that it continues."""
    if not tx.alerts.reopen(alert_id):
        return
    alert, rules = tx.alerts.get(alert_id), alert_rules(tx)
    if alert is not None and context.declared.hooks.alerted and to_send_at_end(rules, alert, tx.now) is not None:
        _send(tx, context, Notice(alert, REPEATED, rules))


def replace_alert(tx: Transaction, kind: str, subject: object) -> bool:
    """The incident has become another one, which is announced instead; True when it was open."""
    return tx.alerts.close(alert_key(kind, subject), tx.now) is not None


def close_alerts(
    tx: Transaction, context: Context, kinds: Collection[str], job_ids: Collection[int], why: str | None = None
) -> None:
    """Close what is open of these kinds about these jobs."""
    keys = {alert_key(kind, job_id) for job_id in job_ids for kind in kinds}
    if len(keys) > FEW:
        keys &= {alert.key for alert in tx.alerts.all_open()}
    for key in sorted(keys):
        _close(tx, context, key, why)


def close_forgotten(tx: Transaction, context: Context, job_ids: Collection[int]) -> None:
    """Close everything that is open about these jobs, which are gone."""
    over = set(job_ids)
    for alert in tx.alerts.all_open() if over else ():
        if alert.job_id in over:
            _close(tx, context, alert.key, "the job is gone")


def send_snoozed(tx: Transaction, context: Context, limit: int) -> int:
    """Announce alerts that are still open after their snooze; how many there were."""
    over = tx.alerts.snoozes_over(tx.now, limit) if context.declared.hooks.alerted else []
    rules = alert_rules(tx) if over else None
    for alert in over:
        assert rules is not None  # noqa: S101 - there is one to send
        what = to_send(rules._replace(cooldown=0), alert, is_new=False, now=tx.now)
        if what is None or _is_reported_as_flapping(tx, alert):
            tx.alerts.note_awake(alert.id)
        else:
            _send(tx, context, Notice(alert, what, rules))
    return len(over)


def _close(tx: Transaction, context: Context, key: str, why: str | None) -> bool:
    alert = tx.alerts.close(key, tx.now)
    if alert is not None and context.declared.hooks.alerted:
        rules = alert_rules(tx)
        what = to_send_at_end(rules, alert, tx.now)
        if what is not None:
            _send(tx, context, Notice(alert, what, rules, why))
    return alert is not None


def _send(tx: Transaction, context: Context, notice: Notice) -> None:
    # Noted first: what the message itself may open, such as that it has nowhere to go, finds this one announced.
    tx.alerts.note_sent(notice.alert.id, tx.now)
    for hook in context.declared.hooks.alerted:
        hook(tx, context, notice)
