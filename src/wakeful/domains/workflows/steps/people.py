"""What people do about events that a handler with steps could not finish: replay, skip, say whether a step happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.workflows.arming import LockedJobs
from wakeful.domains.workflows.issues import Issue, raise_issue, resolve_issue
from wakeful.domains.workflows.steps.ending import CUT_OFF, end_failures, note_parked
from wakeful.domains.workflows.steps.places import STEPS, arm_places
from wakeful.domains.workflows.steps.tables import (
    DONE,
    FAILED,
    PARKED,
    QUEUED,
    READY,
    RUNNING,
    UNCERTAIN,
    TaskRow,
    Tasks,
)
from wakeful.domains.workflows.steps.taking import event_id_of, promote, still_works
from wakeful.domains.workflows.steps.words import uncertain_step
from wakeful.domains.workflows.tables import WorkflowRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import EventRow, Topics
from wakeful.domains.workflows.words import UNKNOWN
from wakeful.errors import ScheduleTriggerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction


def unsettled(tx: Transaction, tasks: Sequence[TaskRow]) -> set[int]:
    """The parked events among these that a person must settle: nothing in the code can find out what became of a step.

    Where its last run was another version, or was itself cut off in the step, `reconcile` has yet to be asked.
    """
    asked = [task for task in tasks if task.status == PARKED and (task.error or "").startswith(UNKNOWN)]
    steps = tx.of(Tasks).steps_of([task.event_id for task in asked])
    runs = tx.of(WorkflowVerbs).runs_of([task.run_id for task in asked if task.run_id is not None])
    deployed = {name: row.version for name in {task.workflow for task in asked} if (row := _row(tx, name)) is not None}
    found: set[int] = set()
    for task in asked:
        run = runs.get(task.run_id or 0)
        doubtful = [step for step in steps.get(task.event_id, ()) if step.status == UNCERTAIN]
        if run is None or not doubtful or run.version != deployed.get(task.workflow):
            continue
        step = doubtful[0]
        if not step.tries and (step.run_id != task.run_id or step.error != CUT_OFF):
            found.add(task.event_id)
    return found


def _row(tx: Transaction, workflow: str) -> WorkflowRow | None:
    return tx.of(WorkflowVerbs).get(workflow)


def replay_parked(tx: Transaction, context: Context, task: TaskRow, *, start_over: bool) -> None:
    """Let a parked event continue with what is stored of it, or from the start; the workflow's jobs are locked."""
    _refuse_gone(tx, task)
    _refuse_working(tx, context, task)
    if not start_over:
        _refuse_unsettled(tx, task)
    row = _row(tx, task.workflow)
    if start_over:
        tx.of(Tasks).forget_steps([task.event_id])
    tx.of(Tasks).ask_anew(task.event_id)
    accepted = None if start_over or row is None else row.version
    _go_on(tx, context, task._replace(tries=0, accepted=accepted))


def replay_all(tx: Transaction, context: Context, row: WorkflowRow, *, start_over: bool) -> list[TaskRow]:
    """The same for all parked events of a workflow, however many there are; those that continue, oldest first.

    One whose handler is gone, whose last run has a thread that is still at work, or that waits to be settled, stays
    parked; an error where that is true of each.
    """
    tasks = tx.of(Tasks)
    parked = tasks.with_status(row.name, PARKED)
    gone = {name for name in {task.handler for task in parked} if _is_gone(tx, row.name, name)}
    doubted = set[int]() if start_over else unsettled(tx, parked)
    ready = [task for task in parked if task.handler not in gone and task.event_id not in doubted]
    found = [task for task in ready if not still_works(tx, context, task)]
    if parked and not found:
        _refuse_gone(tx, parked[0])
        _refuse_working(tx, context, parked[0])
        _refuse_unsettled(tx, parked[0])
    numbers = [task.event_id for task in found]
    if start_over:
        tasks.forget_steps(numbers)
    tasks.ask_anew(*numbers)
    waiting: list[TaskRow] = []
    for handler in sorted({task.handler for task in found}):
        ours = [task for task in found if task.handler == handler]
        held = tasks.held_keys(row.name, handler, {task.key for task in ours})
        for task in ours:
            status = QUEUED if task.key in held else READY
            held.add(task.key)
            waiting.append(
                task._replace(
                    status=status, tries=0, accepted=None if start_over else row.version, retry_at=None,
                    updated_at=tx.now,
                )
            )  # fmt: skip
    tasks.save(*waiting)
    note_parked(tx, context, row.name)
    jobs = LockedJobs(tx, row.name)
    for handler in sorted({task.handler for task in found}):
        arm_places(tx, context, jobs, handler)
    return found


def _go_on(tx: Transaction, context: Context, task: TaskRow) -> None:
    """Its turn comes once no other event with its key is worked on."""
    tasks = tx.of(Tasks)
    status = QUEUED if tasks.is_held(task) else READY
    tasks.save(task._replace(status=status, retry_at=None, updated_at=tx.now))
    note_parked(tx, context, task.workflow)
    arm_places(tx, context, LockedJobs(tx, task.workflow), task.handler)


def skip_task(tx: Transaction, context: Context, task: TaskRow, event: EventRow, why: str) -> int:
    """Let nothing more happen to an event that was begun and is not worked on just now; how many were skipped."""
    _refuse_working(tx, context, task)
    topics, tasks = tx.of(Topics), tx.of(Tasks)
    if event.run_id is not None:
        topics.release(event.run_id, tx.now)
    skipped = topics.skip([event.id], tx.now, why)
    tasks.drop([event.id])
    promote(tx, task)
    note_parked(tx, context, task.workflow)
    if task.status == UNCERTAIN:
        _next_question(tx, context, task.workflow)
    jobs = LockedJobs(tx, task.workflow)
    arm_places(tx, context, jobs, task.handler)
    if not tasks.begun(task.workflow, task.handler):
        end_failures(tx, context, jobs, task.handler)
    return skipped


def _is_gone(tx: Transaction, workflow: str, name: str) -> bool:
    """Whether the deployed version does not have the handler."""
    handler = tx.of(WorkflowVerbs).handler(workflow, name)
    return handler is None or handler.job_id is None or handler.type != STEPS


def _refuse_gone(tx: Transaction, task: TaskRow) -> None:
    if not _is_gone(tx, task.workflow, task.handler):
        return
    event = ids.encode("evt", task.event_id)
    message = (
        f"{event} was begun by {task.workflow}.{task.handler}, which the deployed version does not have: deploy one "
        f"that has it, or skip the event: wakeful workflow skip {task.workflow} {event} --reason TEXT"
    )
    raise ScheduleTriggerError(message, {"workflow": task.workflow, "event": event, "reason": "no_handler"})


def _refuse_unsettled(tx: Transaction, task: TaskRow) -> None:
    if not unsettled(tx, [task]):
        return
    event = ids.encode("evt", task.event_id)
    message = f"{event} cannot be replayed yet. {(task.error or '').partition(chr(10))[0]}"
    raise ScheduleTriggerError(message, {"workflow": task.workflow, "event": event, "reason": "unsettled"})


def _refuse_working(tx: Transaction, context: Context, task: TaskRow) -> None:
    event = ids.encode("evt", task.event_id)
    about = {"workflow": task.workflow, "event": event}
    if task.status == RUNNING:
        message = f"{event} is being worked on: wait until that run has ended, or answer what it asks."
        raise ScheduleTriggerError(message, {**about, "reason": "reserved"})
    if still_works(tx, context, task):
        message = f"A thread of the last run of {event} is still at work: wait until it has ended, or end its server."
        raise ScheduleTriggerError(message, {**about, "reason": "still_working"})


def settle_step(
    tx: Transaction, context: Context, attempt: WorkflowRun, verdict: str, *, who: str, result: str | None
) -> None:
    """Record whether the step that a run was cut off in happened; then its event continues."""
    tasks, number, run = tx.of(Tasks), event_id_of(attempt), ids.run_text(attempt.id)
    task = tasks.get(number) if number is not None else None
    about: dict[str, Any] = {"workflow": attempt.workflow, "run": run}
    doubtful = [step for step in tasks.steps(task.event_id) if step.status == UNCERTAIN] if task is not None else []
    if task is None or not doubtful:
        message = f"{run} has no step to settle: it was settled before, or never uncertain."
        raise ScheduleTriggerError(message, {**about, "reason": "settled"})
    if task.status == RUNNING:
        message = f"{run} is just finding out by itself: try again when it has ended."
        raise ScheduleTriggerError(message, {**about, "reason": "already_running"})
    if verdict == "did_not_happen":
        _refuse_working(tx, context, task)
    step, said = doubtful[0], f"settled by {who} as {verdict}"
    if verdict == "did_not_happen":
        tasks.save_step(step._replace(status=FAILED, sure=1, caught=0, error=said, ended_at=tx.now))
    else:
        tasks.save_step(step._replace(status=DONE, value=result, error=None, ended_at=tx.now))
    if len(doubtful) > 1:
        text = uncertain_step(doubtful[1].name, doubtful[1].error or "it was cut off", attempt.workflow, run)
        tasks.save(task._replace(error=text, updated_at=tx.now))
        note_parked(tx, context, task.workflow)
    elif not _is_gone(tx, task.workflow, task.handler):  # else it stays parked, until its handler is back
        _go_on(tx, context, task._replace(error=said))
    if task.status == UNCERTAIN:
        _next_question(tx, context, attempt.workflow)


def _next_question(tx: Transaction, context: Context, workflow: str) -> None:
    """The question whether a step happened is answered, or gone: the next one is asked, or the workflow continues."""
    row = tx.of(WorkflowVerbs).get(workflow)
    asked = tx.of(Tasks).newest(workflow, UNCERTAIN)
    if row is None or row.issue != "reconciliation":
        return
    if asked is not None:
        raise_issue(tx, context, workflow, Issue("reconciliation", asked.handler, asked.run_id, asked.error or ""))
    else:
        resolve_issue(tx, context, row)
