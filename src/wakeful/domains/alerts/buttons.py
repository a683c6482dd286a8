"""Buttons under messages about incidents, for chats that show them: what a person would do next, in one press."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.alerts.settings import snooze as snooze_alert
from wakeful.domains.delivery import button
from wakeful.kernel.actions.recording import Origin
from wakeful.kernel.rules.alerting import CLOSED

if TYPE_CHECKING:
    from wakeful.domains.delivery import PressedButton
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.alerting import Notice
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef

SNOOZE = "1h"


def buttons_about(
    tx: Transaction, context: Context, notice: Notice, job: JobDef | None, run: str | None
) -> list[dict[str, Any]]:
    """Answer a run that waits; else acknowledge, pause a job that is at work, snooze. None once it is over."""
    if notice.what == CLOSED:
        return []
    if notice.alert.kind == "approval":
        return [button("approve", run), button("reject", run)] if run is not None else []
    alert = ids.encode("alr", notice.alert.id)
    found = [button("acknowledge", alert), button("snooze", alert, f"Snooze {SNOOZE}", **{"for": SNOOZE})]
    if job is not None and _can_be_paused(tx, context, job):
        found.insert(1, button("pause", ids.job_text(job.id)))
    return found


def _can_be_paused(tx: Transaction, context: Context, job: JobDef) -> bool:
    state = tx.jobs.state_of(job.id)
    is_own = job.removed_at is None and job.kind not in context.declared.hooks.internal
    return is_own and state is not None and bool(state.enabled) and not state.paused


def snooze(tx: Transaction, context: Context, pressed: PressedButton, by: str) -> str:
    """Send no message about the alert for the time the button says; one that is over needs no snooze."""
    number = ids.alert_number(pressed.on)
    alert = tx.alerts.get(number) if number is not None else None
    if alert is not None and alert.closed_at is not None:
        return "This alert is over."
    length = pressed.more.get("for", SNOOZE)
    snooze_alert(tx, [pressed.on], length, Origin(by, "chat", context.new_id()))
    return f"Snoozed for {length}."
