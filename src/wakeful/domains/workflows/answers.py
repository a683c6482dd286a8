"""The buttons under a message about a workflow's issue, for chats that show them: what a person can answer."""

from __future__ import annotations

from typing import Any

from wakeful import ids
from wakeful.domains.delivery import button
from wakeful.domains.workflows.words import likely_first

VERDICT_LABELS = {"happened": "It happened", "did_not_happen": "It did not", "skip": "Skip it"}
TRY_AGAIN = ("transient", "logic", "internal")


def buttons_for(workflow: str, kind: str, run: int | None, likely: str | None = None) -> list[dict[str, Any]]:
    """What can be answered to an issue of that kind; `correction` is a proposal that waits for a person."""
    if kind in TRY_AGAIN:
        return [button("resume_workflow", workflow, "Try again")]
    if run is None:
        return []
    text = ids.run_text(run)
    if kind == "reconciliation":
        return [
            button("settle", text, VERDICT_LABELS[verdict], workflow=workflow, verdict=verdict)
            for verdict in likely_first(list(VERDICT_LABELS), likely)
        ]
    if kind == "correction":
        return [
            button("correct_workflow", text, "Deploy it", workflow=workflow),
            button("leave_workflow", text, "Reject it", workflow=workflow),
        ]
    return []
