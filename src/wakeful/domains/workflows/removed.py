"""Handlers and workflows that were removed: what becomes of their unfinished runs.

Before its mutation a run is given up, and its events are pending again. A mutation in flight waits for a person, as
there is no code left that could reconcile it. After its mutation, a handler that a deploy removed has its events
consumed, because nothing may mutate a second time; the run of a workflow that was removed waits until it is back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.domains.workflows.arming import LockedJobs, wake_subscribers
from wakeful.domains.workflows.issues import Issue, raise_issue, resolve_issue
from wakeful.domains.workflows.phases import CRASHED, GIVEN_UP, STATUS
from wakeful.domains.workflows.steps.deploying import finish_place
from wakeful.domains.workflows.steps.places import STEPS
from wakeful.domains.workflows.tables import WorkflowAction, WorkflowRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

WHO = "deploy"
IN_PROGRESS = ("active", "waiting")


def finish_removed(tx: Transaction, context: Context, workflow: str, handler: str, *, ended: int | None = None) -> None:
    """Settle the unfinished run of a handler that is not deployed; `ended`: a run that just did.

    One in progress continues and comes here at its end.
    """
    table = tx.of(WorkflowVerbs)
    table.lock_jobs(workflow)
    row, found = table.lock(workflow), table.handler(workflow, handler)
    if row is None or found is None or found.job_id is not None or found.open_run is None:
        return
    attempt, run = table.run(found.open_run), tx.runs.get(found.open_run)
    if run is not None and run.status in IN_PROGRESS and run.id != ended:
        return
    if attempt is not None and attempt.type == STEPS:
        finish_place(tx, context, row, found, attempt)
        return
    if attempt is not None and attempt.mutation == "in_flight":
        _ask(tx, context, attempt, _why(row, attempt))
        return
    if row.issue_handler == handler and row.issue != "load":
        resolve_issue(tx, context, row)
    if row.removed_at is not None and attempt is not None and attempt.mutation != "none":
        table.save_run(attempt._replace(status=CRASHED, error=_why(row, attempt), updated_at=tx.now))
        return
    table.change_handler(workflow, handler, open_run=None, wake_at=None, seen=0)
    if attempt is not None:
        give_up(tx, context, attempt, _why(row, attempt))
        wake_subscribers(tx, context, LockedJobs(tx, workflow), found.topics(), row.event_seq)


def uncertain_changes(tx: Transaction, workflow: str) -> list[WorkflowRun]:
    """The unfinished runs of a workflow that may have changed something outside: nobody knows, or not yet."""
    table = tx.of(WorkflowVerbs)
    found = [table.run(run_id) for run_id in table.open_runs(workflow)]
    return [attempt for attempt in found if attempt is not None and attempt.mutation == "in_flight"]


def _why(row: WorkflowRow, attempt: WorkflowRun) -> str:
    return "the workflow was removed" if row.removed_at is not None else f"{attempt.handler} was removed from the code"


def _ask(tx: Transaction, context: Context, attempt: WorkflowRun, why: str) -> None:
    message = f"{why} while a change of {attempt.handler} was in flight"
    saved = attempt._replace(status=STATUS["reconciliation"], error=message, reconcile_at=None, updated_at=tx.now)
    tx.of(WorkflowVerbs).save_run(saved)
    raise_issue(tx, context, attempt.workflow, Issue("reconciliation", attempt.handler, attempt.id, message))


def give_up(
    tx: Transaction, context: Context, attempt: WorkflowRun, why: str, *, who: str = WHO, status: str = GIVEN_UP
) -> str:
    """End an attempt whose mutation is not in flight; what became of its events."""
    topics, events = tx.of(Topics), attempt.reserved
    if attempt.mutation == "none":
        topics.release(attempt.id, tx.now)
        became = "pending again"
    else:
        topics.consume(attempt.id, now=tx.now)
        made = "the change was made" if attempt.mutation == "applied" else "a person skipped the change"
        became = f"consumed: {made}, and what follows it was not done"
    tx.of(WorkflowVerbs).save_run(attempt._replace(status=status, error=attempt.error or why, updated_at=tx.now))
    said = f"{'1 event is' if events == 1 else f'{events} events are'} {became}"
    if events:
        detail = f"{ids.run_text(attempt.id)}: {why}; {said}"
        tx.of(WorkflowVerbs).record(WorkflowAction(context.new_id(), attempt.workflow, tx.now, who, "gave_up", detail))
        tx.events.emit("workflow", {"type": "gave_up", "workflow": attempt.workflow, "by": who})
    return said
