"""Settings of alerts in the store, and what a person says about incidents."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.errors import AlertNotFound, InvalidSetting
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.actions.recording import snooze as record_snooze
from wakeful.kernel.engine.alerts import MEANINGS, RULES
from wakeful.kernel.rules.alerting import AFTER, COOLDOWN_MS, GRACE_MS, URGENT, AlertRules, rules_text
from wakeful.kernel.views.records import Alert, alert_views
from wakeful.store.records import Alert as AlertRow
from wakeful.store.records import JobDef
from wakeful.triggers.durations import interval_ms

if TYPE_CHECKING:
    from wakeful.kernel.actions.recording import Origin
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

LONGEST_SNOOZE_MS = 366 * 86_400_000

Duration = str | float | timedelta


async def configure(
    scheduler: Scheduler,
    *,
    to: str | None,
    after: int = AFTER,
    cooldown: Duration = COOLDOWN_MS / 1000,
    grace: Duration = GRACE_MS / 1000,
    urgent: Iterable[str] = URGENT,
) -> None:
    """Say where alerts go, and when, for every process on this store; `to` is a connector, `last` or None."""
    chosen = tuple(urgent)
    unknown = sorted(set(chosen) - MEANINGS.keys())
    if unknown:
        raise InvalidSetting(f"There is no alert kind {unknown[0]!r:.60}: there are {', '.join(sorted(MEANINGS))}.")
    if after < 1:
        raise InvalidSetting("after must be a whole number of failures, 1 or more.")
    rules = AlertRules(to, after, interval_ms(cooldown), interval_ms(grace), chosen)
    await store_rules(scheduler, rules)


async def store_rules(scheduler: Scheduler, rules: AlertRules) -> None:
    """Store the settings; every process on this store uses them from now on."""
    text = rules_text(rules)
    await scheduler.transact(lambda tx, _: tx.facts.put({RULES: text}))


class SnoozeResult(NamedTuple):
    """The open alerts that are snoozed, and the action by which that can be undone."""

    alerts: list[Alert]
    action: str | None


def snooze(tx: Transaction, refs: Iterable[str], for_: Duration, origin: Origin) -> SnoozeResult:
    """No message about these for a time: open alerts by id, or jobs, whether their alerts are open or yet to come.

    AlertNotFound or JobNotFound where one of them is not there.
    """
    until = _until(tx, for_)
    alerts, jobs = dict[int, AlertRow](), dict[int, JobDef]()
    for ref in refs:
        number = ids.alert_number(ref)
        if number is not None:
            alerts[number] = _open(tx, number, ref)
            continue
        job = find_job(tx, ref)[0]
        jobs[job.id] = job
        alerts |= {alert.id: alert for alert in tx.alerts.latest(job_id=job.id) if alert.closed_at is None}
    action = record_snooze(tx, list(alerts.values()), list(jobs.values()), until, origin)
    return SnoozeResult(alert_views(tx, [row._replace(snoozed_until=until) for row in alerts.values()]), action)


def _open(tx: Transaction, number: int, ref: str) -> AlertRow:
    row = tx.alerts.get(number)
    if row is None or row.closed_at is not None:
        raise AlertNotFound(f"There is no open alert {ref!r:.80}: wakeful alert list shows those that are.")
    return row


def _until(tx: Transaction, for_: Duration) -> int:
    length = interval_ms(for_)
    if not 0 < length <= LONGEST_SNOOZE_MS:
        raise InvalidSetting("An alert is snoozed for a time such as 2h, a year at most.")
    return tx.now + length
