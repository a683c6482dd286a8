"""What a new version means for handlers with steps: keys are made anew, and what was begun continues or is parked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.domains.workflows.arming import LockedJobs
from wakeful.domains.workflows.issues import resolve_issue
from wakeful.domains.workflows.phases import CRASHED
from wakeful.domains.workflows.steps.ending import note_parked
from wakeful.domains.workflows.steps.places import STEPS, arm_places, base_of, is_place
from wakeful.domains.workflows.steps.tables import PARKED, QUEUED, RETRYING, RUNNING, UNCERTAIN, TaskRow, Tasks
from wakeful.domains.workflows.steps.taking import event_id_of, promote
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.errors import InvalidJob

if TYPE_CHECKING:
    from wakeful.domains.workflows.steps.authoring import StepHandler
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

REMOVED = "its handler was removed from the code"


def store_steps(
    tx: Transaction, context: Context, workflow: str, handler: StepHandler, *, name: str, known: HandlerRow | None
) -> None:
    """The handler is stored in its new version: what it has not begun gets its keys from that."""
    if is_place(name):
        return
    _ask_new_code(tx, context, workflow, name)
    tasks = tx.of(Tasks)
    tasks.drop_unbegun(workflow, name)
    promote(tx, *(task for task in tasks.begun(workflow, name) if task.status == QUEUED))  # behind one that is gone
    tx.of(WorkflowVerbs).change_handler(workflow, name, keyed=0, seen=0, wake_at=None)
    if known is None or known.topics() != list(handler.subscribes):
        tx.of(Topics).await_again(workflow, handler.subscribes)


def _ask_new_code(tx: Transaction, context: Context, workflow: str, name: str) -> None:
    """A person is asked what became of steps: the new code's reconcile finds out, or the person is asked again."""
    tasks = tx.of(Tasks)
    asked = [task for task in tasks.begun(workflow, name) if task.status == UNCERTAIN]
    for task in asked:
        tasks.ask_anew(task.event_id)
        tasks.save(task._replace(status=RETRYING, retry_at=tx.now, updated_at=tx.now))
    row = tx.of(WorkflowVerbs).get(workflow) if asked else None
    if row is not None and row.issue == "reconciliation" and row.issue_handler == name:
        resolve_issue(tx, context, row)


def refuse_other_type(tx: Transaction, workflow: str, name: str, kind: str) -> None:
    """InvalidJob where a handler of another type has left something unfinished under that name."""
    known = tx.of(WorkflowVerbs).handler(workflow, name)
    if known is None or known.type == kind or STEPS not in (known.type, kind):
        return
    if known.open_run is not None or tx.of(Tasks).begun(workflow, name):
        message = f"{workflow}.{name} was of another type, and has unfinished runs: give the new handler another name."
        raise InvalidJob(message)


def drop_handler(tx: Transaction, context: Context, workflow: str, name: str, why: str | None = REMOVED) -> None:
    """A handler is gone: what it had begun is parked (None: waits until it is back), the rest is pending."""
    tasks = tx.of(Tasks)
    tasks.drop_unbegun(workflow, name)
    begun = tasks.begun(workflow, name) if why is not None else []
    for task in begun:
        if task.status != PARKED:
            tasks.save(task._replace(status=PARKED, retry_at=None, error=why, updated_at=tx.now))
    if begun:
        note_parked(tx, context, workflow)


def finish_place(
    tx: Transaction, context: Context, row: WorkflowRow, handler: HandlerRow, attempt: WorkflowRun
) -> None:
    """The unfinished run of a place that is not deployed: its event continues elsewhere, or waits."""
    table, tasks = tx.of(WorkflowVerbs), tx.of(Tasks)
    table.change_handler(row.name, handler.name, open_run=None)
    base = table.handler(row.name, base_of(handler.name))
    is_gone = base is None or base.job_id is None
    why = REMOVED if is_gone and row.removed_at is None else "its place was removed"
    table.save_run(attempt._replace(status=CRASHED, error=attempt.error or why, updated_at=tx.now))
    task = _task_of(tasks, attempt)
    if task is None:
        return
    tasks.doubt_steps(task.event_id, {}, attempt.error or why)
    if is_gone and row.removed_at is None:
        tasks.save(task._replace(status=PARKED, error=why, updated_at=tx.now))
        note_parked(tx, context, row.name)
        return
    tasks.save(task._replace(status=RETRYING, retry_at=tx.now, updated_at=tx.now))
    if not is_gone:
        arm_places(tx, context, LockedJobs(tx, row.name), base_of(handler.name))


def _task_of(tasks: Tasks, attempt: WorkflowRun) -> TaskRow | None:
    number = event_id_of(attempt)
    task = tasks.get(number) if number is not None else None
    return task if task is not None and task.run_id == attempt.id and task.status == RUNNING else None
