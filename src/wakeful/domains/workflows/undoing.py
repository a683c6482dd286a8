"""Taking back that a workflow was paused, drained or resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.domains.workflows.actions import STANDING, go_on, locked, record
from wakeful.domains.workflows.tables import WorkflowVerbs

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.actions import ActionRow
    from wakeful.store.interface import Transaction

CHANGES = ("paused", "resumed", "draining")  # actions that change whether a workflow starts anything
LOOKED_AT = 100
DRAINED = {"paused": 1, "draining": 0}  # how one that was drained is left at the end


def take_back(tx: Transaction, context: Context, row: ActionRow, by: str) -> str | None:
    """Restore the earlier state of a workflow; returns the reason if it was changed since."""
    table = tx.of(WorkflowVerbs)
    found = table.get(row.name)
    if found is None or found.removed_at is not None:
        return f"there is no workflow {row.name} any more"
    found = locked(tx, row.name)
    later = [one for one in table.actions(row.name, LOOKED_AT) if one.at > row.at and one.action in CHANGES]
    if later:
        what = {"draining": "drained"}.get(later[0].action, later[0].action)
        return f"{row.name} was {what} since, by {later[0].who}: left as it is"
    now = {name: getattr(found, name) for name in STANDING}
    left = {**row.before, **row.after}
    ended = left["draining"] and {**now, "pause_note": None} == {**DRAINED, "pause_note": None}
    if now != left and not ended:
        return f"{row.name} was changed since: left as it is"
    table.change(row.name, tx.now, **{name: row.before[name] for name in STANDING})
    record(tx, context, row.name, who=by, action="paused" if row.before["paused"] else "resumed", detail="undo")
    if not row.before["paused"]:
        go_on(tx, context, row.name)
    return None
