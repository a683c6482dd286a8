"""What is wrong with a workflow: one issue at a time, on record, with an alert where a person must act."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.delivery import button
from wakeful.domains.workflows.arming import look_again
from wakeful.domains.workflows.tables import WorkflowRow, WorkflowVerbs
from wakeful.domains.workflows.words import issue_words, likely_first
from wakeful.kernel.engine.alerts import alert_key, close_alert, open_alert

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

ALERT = "workflow"
ASKS = ("approval", "reconciliation", "logic", "internal")  # nothing else starts before a person has acted
MAX_MESSAGE = 6_000  # a sentence, and the trace behind it


class Issue(NamedTuple):
    """Why a workflow does not continue."""

    kind: str  # transient, approval, reconciliation, logic, internal or load
    handler: str | None
    run: int | None
    message: str
    until: int | None = None  # when it is tried again by itself
    alert: bool = True
    likely: str | None = None  # the verdict that the error suggests, where one is asked for


def raise_issue(tx: Transaction, context: Context, workflow: str, issue: Issue, **more: object) -> None:
    """Put the issue on record; with an alert where a person must do something.

    A workflow whose file cannot be loaded stays so, whatever becomes of the run that was in progress. What one handler
    asks a person stays asked when a start of another one, from before that, is cancelled or cut off.
    """
    row = tx.of(WorkflowVerbs).get(workflow)
    if row is not None and row.issue == "load" and issue.kind != "load":
        return
    if row is not None and row.issue in ASKS and row.issue_handler != issue.handler and issue.kind == "transient":
        return
    tx.of(WorkflowVerbs).change(
        workflow,
        tx.now,
        issue=issue.kind,
        issue_handler=issue.handler,
        issue_run=issue.run,
        issue_message=issue.message[:MAX_MESSAGE],
        backoff_until=issue.until,
        **more,
    )
    if issue.alert:
        alert_about(tx, context, workflow, issue.message, kind=issue.kind, run=issue.run, likely=issue.likely)
    tx.events.emit("workflow", {"type": "issue", "workflow": workflow, "kind": issue.kind, "handler": issue.handler})


def alert_about(
    tx: Transaction,
    context: Context,
    workflow: str,
    message: str,
    *,
    kind: str,
    run: int | None,
    likely: str | None = None,
) -> None:
    """A person must look at the workflow; in a chat the message has buttons for what they can answer."""
    first = message.partition("\n")[0]
    data = json.dumps({"run": run, "buttons": buttons_for(workflow, kind, run, likely)})
    open_alert(tx, context, ALERT, workflow, f"{workflow} needs attention: {first[:1000]}", data=data)


def resolve_issue(tx: Transaction, context: Context, row: WorkflowRow) -> None:
    """The issue is resolved: the handlers that waited may start."""
    if row.issue is None and not row.failures:
        return
    table = tx.of(WorkflowVerbs)
    table.change(
        row.name, tx.now, issue=None, issue_handler=None, issue_run=None, issue_message=None, backoff_until=None,
        failures=0,
    )  # fmt: skip
    close_alert(tx, context, ALERT, row.name)
    look_again(tx, row.name)
    tx.events.emit("workflow", {"type": "resolved", "workflow": row.name})


def halted_job(tx: Transaction, row: WorkflowRow) -> tuple[str, str] | None:
    """The job that would try the issue again and is switched off, and how; None where there is none."""
    found = tx.of(WorkflowVerbs).halted(row.name) if row.issue is not None else []
    return (f"{row.name}.{row.issue_handler}", found[0][1]) if found else None


def alert_halted(tx: Transaction, context: Context) -> None:
    """Alert about each workflow that waits for a job which is switched off; once, as long as that is so."""
    found = tx.of(WorkflowVerbs).halted()
    known = {alert.key for alert in tx.alerts.all_open()} if found else set[str]()
    for row, how in found:
        if alert_key(ALERT, row.name) not in known and row.issue is not None:
            job = (f"{row.name}.{row.issue_handler}", how)
            words = issue_words(row.issue, row.issue_handler, row.issue_message, halted=job)
            alert_about(tx, context, row.name, words, kind=row.issue, run=row.issue_run)


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
