"""Settings of alerts in the store, and what a person says about incidents."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.errors import AlertNotFound, InvalidSetting
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.engine.alerts import MEANINGS, RULES
from wakeful.kernel.rules.alerting import AFTER, COOLDOWN_MS, GRACE_MS, URGENT, AlertRules, rules_text
from wakeful.kernel.views.records import Alert, alert_views
from wakeful.triggers.durations import interval_ms

if TYPE_CHECKING:
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
    """Keep the settings; every process on this store goes by them from now on."""
    text = rules_text(rules)
    await scheduler.transact(lambda tx, _: tx.journal.set_meta({RULES: text}))


def snooze(tx: Transaction, text: str, for_: Duration) -> Alert:
    """No message about an open incident for a time; AlertNotFound where none of that id is open."""
    until = _until(tx, for_)
    number = ids.alert_number(text)
    if number is None or not tx.journal.snooze_alert(number, until):
        raise AlertNotFound(f"There is no open alert {text!r:.80}: wakeful alert list shows those that are.")
    row = tx.journal.alert(number)
    assert row is not None  # noqa: S101 - just written
    return alert_views(tx, [row])[0]


def snooze_job(tx: Transaction, ref: str, for_: Duration) -> list[Alert]:
    """No message about a job for a time, whether its incidents are open or yet to come; those that are open."""
    until = _until(tx, for_)
    job = find_job(tx, ref)[0]
    tx.journal.snooze_job(job.id, until)
    rows = [alert for alert in tx.journal.alerts(job.id) if alert.closed_at is None]
    for alert in rows:
        tx.journal.snooze_alert(alert.id, until)
    return alert_views(tx, [alert._replace(snoozed_until=until) for alert in rows])


def _until(tx: Transaction, for_: Duration) -> int:
    length = interval_ms(for_)
    if not 0 < length <= LONGEST_SNOOZE_MS:
        raise InvalidSetting("An alert is snoozed for a time such as 2h, a year at most.")
    return tx.now + length
