"""Steps, parked events and open questions as people and programs see them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeful.domains.workflows.phases import STATUS
from wakeful.domains.workflows.steps.people import unsettled
from wakeful.domains.workflows.steps.places import STEPS, base_of
from wakeful.domains.workflows.steps.tables import PARKED, StepRow, Tasks
from wakeful.domains.workflows.steps.taking import event_id_of
from wakeful.domains.workflows.steps.words import parked_words
from wakeful.domains.workflows.tables import WorkflowRow, WorkflowVerbs
from wakeful.domains.workflows.words import UNSETTLED
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

QUESTION, SET_ASIDE = "approval", "parked"  # kinds of issues


def steps_of_runs(tx: Transaction, run_ids: Sequence[int]) -> Mapping[int, list[dict[str, Any]]]:
    """The steps of the events that runs work on, or worked on."""
    attempts = [one for one in tx.of(WorkflowVerbs).runs_of(run_ids).values() if one.type == STEPS]
    events = {one.id: number for one in attempts if (number := event_id_of(one)) is not None}
    steps = tx.of(Tasks).steps_of(sorted(set(events.values()))) if events else {}
    return {run_id: [_shown(step) for step in steps.get(number, [])] for run_id, number in events.items()}


def _shown(row: StepRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "status": row.status,
        "attempts": row.attempts,
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at) if row.ended_at is not None else None,
        "value": json.loads(row.value) if row.value is not None else None,
        "error": row.error,
    }


def _any_goes_on(tx: Transaction, workflow: str) -> bool:
    """Whether a replay lets any of the parked events go on."""
    parked = tx.of(Tasks).with_status(workflow, PARKED)
    return len(unsettled(tx, parked)) < len(parked)


def with_question(tx: Transaction, row: WorkflowRow) -> WorkflowRow:
    """The workflow; where a run with steps asks a person, or events are parked, it has that for an issue."""
    if row.issue is not None or row.paused or row.removed_at is not None:
        return row
    table = tx.of(WorkflowVerbs)
    asking = [
        one
        for one in table.runs_of(table.open_runs(row.name)).values()
        if one.type == STEPS and one.status == STATUS["approval"]
    ]
    if asking:
        first = min(asking, key=lambda one: one.id)
        return row._replace(
            issue=QUESTION, issue_handler=base_of(first.handler), issue_run=first.id, issue_message=first.error
        )
    newest = tx.of(Tasks).newest(row.name, PARKED)
    if newest is None:
        return row
    said = parked_words(row.name, tx.of(Tasks).count(row.name, PARKED), newest.error)
    kind = UNSETTLED if unsettled(tx, [newest]) and not _any_goes_on(tx, row.name) else SET_ASIDE
    return row._replace(issue=kind, issue_handler=newest.handler, issue_run=newest.run_id, issue_message=said)
