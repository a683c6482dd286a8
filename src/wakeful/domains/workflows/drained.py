"""Whether a workflow that drains has finished what it had; then it is paused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.domains.workflows.arming import OURS, WAKE_TIME
from wakeful.domains.workflows.tables import HandlerRow, WorkflowVerbs
from wakeful.domains.workflows.turns.tables import Turns

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

DRAINED = "drained"


def finish_drain(tx: Transaction, name: str, *, but: int | None = None) -> bool:
    """Pause the workflow if no run of it is in progress, other than `but`, and nothing waits but for its wake time."""
    table = tx.of(WorkflowVerbs)
    row = table.get(name)
    if row is None or not row.draining or _has_work(tx, name, but):
        return False
    table.change(name, tx.now, draining=0, paused=1, pause_note=row.pause_note or DRAINED)
    tx.events.emit("workflow", {"type": DRAINED, "workflow": name})
    return True


def has_unseen(tx: Transaction, handler: HandlerRow) -> bool:
    """Whether events are pending since the handler has last looked, also if its job is paused and nothing starts it."""
    return handler.dirty > handler.seen and bool(tx.of(Turns).oldest(handler.workflow, handler.topics()))


def _has_work(tx: Transaction, name: str, but: int | None) -> bool:
    handlers = tx.of(WorkflowVerbs).handlers(name)
    states = tx.jobs.states([handler.job_id for handler in handlers if handler.job_id is not None])
    for handler in handlers:
        state = states.get(handler.job_id or 0)
        if state is None:
            continue
        if handler.open_run is not None or state.run_id not in (None, but) or has_unseen(tx, handler):
            return True
        if handler.type == "consumer" and state.queued:
            waiting = [run for run in tx.runs.open(state.job_id) if run.status == "queued"]
            if any(run.reason in OURS and run.reason != WAKE_TIME for run in waiting):
                return True
    return False
