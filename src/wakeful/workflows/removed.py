"""Handlers that a deploy removed: what their unfinished runs have reserved does not stay reserved.

Before its mutation a run is given up, and its events are pending again. After it they are consumed, because nothing may
mutate a second time. A mutation in flight waits for a person, as there is no code left that could reconcile it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.workflows.arming import LockedJobs, wake_subscribers
from wakeful.workflows.issues import Issue, raise_issue, resolve_issue
from wakeful.workflows.phases import GIVEN_UP, STATUS
from wakeful.workflows.tables import Action, WorkflowRun, Workflows
from wakeful.workflows.topics.tables import Topics

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

WHO = "deploy"
IN_PROGRESS = ("active", "waiting")


def finish_removed(tx: Transaction, context: Context, workflow: str, handler: str, *, ended: int | None = None) -> None:
    """Settle the unfinished run of a handler that the deployed version does not have; `ended`: a run that just did.

    One in progress goes on and comes here at its end. A workflow that was removed as a whole keeps everything.
    """
    table = tx.of(Workflows)
    table.lock_jobs(workflow)
    row, found = table.lock(workflow), table.handler(workflow, handler)
    if row is None or row.removed_at is not None or found is None or found.job_id is not None or found.open_run is None:
        return
    attempt, run = table.run(found.open_run), tx.runs.get(found.open_run)
    if run is not None and run.status in IN_PROGRESS and run.id != ended:
        return
    if attempt is not None and attempt.mutation == "in_flight":
        _ask(tx, context, attempt)
        return
    table.change_handler(workflow, handler, open_run=None, wake_at=None, seen=0)
    if row.issue_handler == handler and row.issue != "load":
        resolve_issue(tx, context, row)
    if attempt is not None:
        _give_up(tx, context, attempt)
        wake_subscribers(tx, context, LockedJobs(tx, workflow), found.topics(), row.event_seq)


def _ask(tx: Transaction, context: Context, attempt: WorkflowRun) -> None:
    message = f"{attempt.handler} was removed from the code while its change was in flight"
    saved = attempt._replace(status=STATUS["reconciliation"], error=message, reconcile_at=None, updated_at=tx.now)
    tx.of(Workflows).save_run(saved)
    raise_issue(tx, context, attempt.workflow, Issue("reconciliation", attempt.handler, attempt.id, message))


def _give_up(tx: Transaction, context: Context, attempt: WorkflowRun) -> None:
    topics, events = tx.of(Topics), attempt.reserved
    if attempt.mutation == "none":
        topics.release(attempt.id, tx.now)
        became = "pending again"
    else:
        topics.consume(attempt.id, tx.now)
        made = "the change was made" if attempt.mutation == "applied" else "a person skipped the change"
        became = f"consumed: {made}, and what follows it was not done"
    why = f"{attempt.handler} was removed from the code"
    tx.of(Workflows).save_run(attempt._replace(status=GIVEN_UP, error=attempt.error or why, updated_at=tx.now))
    if events:
        subject = "1 event is" if events == 1 else f"{events} events are"
        detail = f"{ids.run_text(attempt.id)}: {why}; {subject} {became}"
        tx.of(Workflows).record(Action(context.new_id(), attempt.workflow, tx.now, WHO, "gave_up", detail))
        tx.journal.emit("workflow", {"type": "gave_up", "workflow": attempt.workflow, "by": WHO})
