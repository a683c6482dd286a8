"""Draining a workflow before a deploy: producers stop, existing events are consumed, and then it is paused."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.workflows.actions import MAX_NOTE, keep_change, locked, record
from wakeful.domains.workflows.drained import finish_drain
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.actions.recording import Origin
from wakeful.kernel.rules.outcome import clean

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction


class Drained(NamedTuple):
    """Whether there was nothing to do, so that it is paused already; and the action by which that can be undone."""

    paused: bool
    action: str | None


def drain(
    tx: Transaction, context: Context, name: str, *, who: str, origin: Origin | None = None, note: str | None = None
) -> Drained:
    """Start no more producers, and pause the workflow once its consumers have looked at every event."""
    row = locked(tx, name)
    if row.paused:
        message = f"{name} is paused: nothing of it runs. To let it finish what it has, resume it first."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "paused"})
    kept = clean(note)[:MAX_NOTE] if note else None
    if row.draining and kept in (None, row.pause_note):
        return Drained(finish_drain(tx, name), None)
    tx.of(WorkflowVerbs).change(name, tx.now, draining=1, pause_note=kept)
    number = record(tx, context, name, who=who, action="draining", detail=note)
    action = keep_change(tx, row, number, origin or Origin(who, "code", context.new_id()), "drain_workflow")
    return Drained(finish_drain(tx, name), action)
