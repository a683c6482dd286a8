"""Alerts as messages: who is notified of an incident, with which text, and a heartbeat to an outside monitor.

What must stay true:
- a message is stored in the transaction that opens, repeats or closes its incident: a crash neither loses nor
  doubles one;
- an incident that is about a connector is never sent through it: alerts do not feed on themselves;
- settings are in the store, so that every process that opens an incident knows where it goes; secrets are not.

When an incident opens, repeats and closes is decided in the kernel (`kernel/engine/alerts.py`, `missed.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.kernel.domain import Domain

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.alerting import Notice
    from wakeful.store.interface import Transaction

__all__ = ["DEAD_MAN", "configure", "domain", "snooze"]

DEAD_MAN = "dead_man"


def _alerted(tx: Transaction, context: Context, notice: Notice) -> None:
    from wakeful.domains.alerts.notifying import notify  # loaded with the first message

    notify(tx, context, notice)


domain = Domain(
    "alerts",
    alerted=_alerted,
    job_tables=("alert_snoozes",),
    alerts={
        DEAD_MAN: "the dead man's URL could not be called",
        "budget": "a budget is used up",
    },
    buttons={"snooze": "wakeful.domains.alerts.buttons:snooze"},
    section="alerts",
    settings="wakeful.domains.alerts.configuration:AlertsSection",
    install="wakeful.domains.alerts.configuration:install",
    reload="wakeful.domains.alerts.configuration:reload",
    routes="wakeful.domains.alerts.routes:router",
)


def __getattr__(name: str) -> Any:
    if name in ("configure", "snooze", "SnoozeResult"):
        from wakeful.domains.alerts import settings

        return getattr(settings, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
