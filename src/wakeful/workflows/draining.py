"""Draining a workflow before a deploy: nothing new comes in, what is there is worked on, and then it is paused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.rules.outcome import clean
from wakeful.workflows.actions import MAX_NOTE, locked, record
from wakeful.workflows.drained import finish_drain
from wakeful.workflows.tables import Workflows

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction


def drain(tx: Transaction, context: Context, name: str, *, who: str, note: str | None = None) -> bool:
    """Start no producer any more, and pause the workflow once its consumers have looked at every event.

    True when there was nothing to do, and it is paused already.
    """
    row = locked(tx, name)
    if row.paused:
        message = f"{name} is paused: nothing of it runs."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "paused"})
    kept = clean(note)[:MAX_NOTE] if note else None
    tx.of(Workflows).change(name, tx.now, draining=1, pause_note=kept)
    record(tx, context, name, who=who, action="draining", detail=note)
    return finish_drain(tx, name)
