"""Finding workflows, their runs, inputs and events by what people call them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.domains.workflows.phases import ACTIVE
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import EventRow, InputRow, Topics
from wakeful.errors import NotFound, RunNotFound

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction


def find_workflow(tx: Transaction, name: str) -> WorkflowRow:
    return is_found(name, tx.of(WorkflowVerbs).get(name) if name.isprintable() else None)


def find_listed(tx: Transaction, name: str) -> WorkflowRow:
    """The same; also one that was removed with a change that nobody knows to have happened."""
    row = tx.of(WorkflowVerbs).get(name) if name.isprintable() else None
    return row if row is not None and row.issue == "reconciliation" else is_found(name, row)


def find_known(tx: Transaction, name: str) -> WorkflowRow:
    """The same; also any other that was removed."""
    row = tx.of(WorkflowVerbs).get(name) if name.isprintable() else None
    return row if row is not None else is_found(name, row)


def is_found(name: str, row: WorkflowRow | None) -> WorkflowRow:
    """The row, or NotFound where there is none or the workflow was removed."""
    if row is None:
        message = f"There is no workflow {name!r:.80}: wakeful workflow list shows what there is."
        raise NotFound(message)
    if row.removed_at is not None:
        message = f"The workflow {name} was removed: list it in wakeful.yaml and apply that to use it again."
        raise NotFound(message)
    return row


def find_attempt(tx: Transaction, name: str, ref: str) -> WorkflowRun:
    """A run of that workflow."""
    number = ids.number_of("run", ref)
    attempt = tx.of(WorkflowVerbs).run(number) if number is not None else None
    if attempt is None or attempt.workflow != name:
        message = f"{name} has no run {ref!r:.80}: wakeful workflow show {name} names the one that waits."
        raise RunNotFound(message)
    return attempt


def find_input(tx: Transaction, name: str, ref: str) -> InputRow:
    """An input of that workflow."""
    number = ids.number_of("inp", ref)
    row = tx.of(Topics).input(number) if number is not None else None
    if row is None or row.workflow != name:
        message = f"{name} has no input {ref!r:.80}: wakeful workflow inputs {name} lists them."
        raise NotFound(message)
    return row


def find_event(tx: Transaction, name: str, ref: str) -> EventRow:
    """An event of that workflow."""
    number = ids.number_of("evt", ref)
    row = tx.of(Topics).get(number) if number is not None else None
    if row is None or row.workflow != name:
        message = f"{name} has no event {ref!r:.80}: it was never published, or is pruned."
        if number is None and (known := tx.of(Topics).newest_of_message(name, ref)) is not None:
            given = ids.encode("evt", known.id)
            message = f"{ref!r:.80} is the id of a message. Give that of its event, from the column EVENT: {given}."
        raise NotFound(message)
    return row


def known_topics(handlers: Iterable[HandlerRow]) -> list[str]:
    """The topics of their own workflow that handlers name."""
    found: set[str] = set()
    for handler in handlers:
        found |= {*handler.topics(), *json.loads(handler.publishes or "[]")}
    return sorted(topic for topic in found if "." not in topic)


def in_progress(tx: Transaction, name: str) -> list[WorkflowRun]:
    """The runs of a workflow in progress now, also of handlers that were taken out meanwhile."""
    table = tx.of(WorkflowVerbs)
    return [attempt for attempt in table.runs_of(table.open_runs(name)).values() if attempt.status == ACTIVE]
