"""How an attempt at an event ends without a commit: tried again, set aside, or left to a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.domains.workflows.arming import CONTINUED, LockedJobs, arm, first_waiting
from wakeful.domains.workflows.checkpoints import Fenced, fence_all, save_attempt
from wakeful.domains.workflows.issues import Issue, raise_issue
from wakeful.domains.workflows.phases import CRASHED, STATUS
from wakeful.domains.workflows.steps.places import STEPS, arm_places, base_of
from wakeful.domains.workflows.steps.rules import RetryDecision, fate
from wakeful.domains.workflows.steps.tables import PARKED, RETRYING, RUNNING, UNCERTAIN, TaskRow, Tasks
from wakeful.domains.workflows.steps.taking import event_id_of, promote
from wakeful.domains.workflows.steps.words import parked_words, uncertain_step
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.threads import is_left
from wakeful.domains.workflows.timing import MAX_CRASHES, MIN_WAKE_MS
from wakeful.kernel.engine.alerts import close_alert, close_alerts, open_alert
from wakeful.kernel.rules.outcome import FAILURES

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import RunRow

ALERT = "parked"
ABOUT_FAILURES = ("failed", "failing", "stuck")  # alerts about the job of a place
MAX_MESSAGE = 2_000
CUT_OFF = "it was cut off"


class Failure(NamedTuple):
    """How an attempt failed, and what follows."""

    message: str
    fate: RetryDecision
    counts: bool = True  # whether it is one of the tries that the author allows
    uncertain: bool = False  # a person must say whether a step happened
    cuts: Mapping[str, str] = {}  # of steps that may have happened or not: why
    trace: str = ""
    has_hook: bool = False


def _end_attempt(tx: Transaction, attempt: WorkflowRun) -> tuple[LockedJobs, TaskRow]:
    """The task of an attempt that is still this run's, with its place free; Fenced where it is another's by now."""
    jobs = fence_all(tx, attempt)
    number = event_id_of(attempt)
    task = tx.of(Tasks).get(number) if number is not None else None
    if task is None or task.run_id != attempt.id:
        raise Fenced
    tx.of(WorkflowVerbs).change_handler(attempt.workflow, attempt.handler, open_run=None)
    return jobs, task


def task_failed(tx: Transaction, context: Context, attempt: WorkflowRun, failure: Failure) -> WorkflowRun:
    """Store how the attempt failed, and what follows for its event; its place is free."""
    jobs, task = _end_attempt(tx, attempt)
    saved = settle_task(tx, context, attempt, task, failure)
    arm_places(tx, context, jobs, base_of(attempt.handler), but=[attempt.id])
    return saved


def settle_task(
    tx: Transaction, context: Context, attempt: WorkflowRun, task: TaskRow, failure: Failure
) -> WorkflowRun:
    """What the failure makes of a task, of the attempt, and of its workflow."""
    tasks = tx.of(Tasks)
    steps = tasks.doubt_steps(task.event_id, failure.cuts, CUT_OFF)
    doubtful = [step for step in steps if step.status == UNCERTAIN]
    follows, at = failure.fate
    if failure.uncertain and doubtful:  # the first one is asked about: the answer is about that one, too
        why = failure.cuts.get(doubtful[0].name, failure.message)
        text = uncertain_step(doubtful[0].name, why, task.workflow, ids.run_text(attempt.id))
        failure = failure._replace(message=text)
    message = failure.message[:MAX_MESSAGE]
    task = task._replace(
        tries=task.tries + failure.counts, error=message, working_node=context.id if is_left(attempt.id) else None,
        updated_at=tx.now,
    )  # fmt: skip
    if follows == "retry":
        tasks.save(task._replace(status=RETRYING, retry_at=at))
        status = STATUS["reconciliation" if doubtful else "transient"]
    elif follows == "park":
        tasks.save(task._replace(status=PARKED, retry_at=None))
        promote(tx, task)
        note_parked(tx, context, task.workflow)
        status = STATUS["reconciliation" if failure.uncertain else "logic"]
    else:
        status = _stop(tx, context, attempt, task, failure)
    mutation = "in_flight" if doubtful else "none"
    return save_attempt(tx, attempt._replace(status=status, error=message, mutation=mutation), attempt)


def _stop(tx: Transaction, context: Context, attempt: WorkflowRun, task: TaskRow, failure: Failure) -> str:
    """The workflow stops; its event continues when it is resumed, or when a person has said what happened."""
    tasks = tx.of(Tasks)
    kind = "reconciliation" if failure.uncertain else "logic"
    if failure.uncertain:
        tasks.save(task._replace(status=UNCERTAIN, retry_at=None))
    else:
        tasks.save(task._replace(status=RETRYING, retry_at=tx.now))
    said = f"{failure.message}\n{failure.trace}".strip()
    alert = failure.uncertain or not failure.has_hook
    raise_issue(tx, context, attempt.workflow, Issue(kind, base_of(attempt.handler), attempt.id, said, alert=alert))
    return STATUS["reconciliation" if failure.uncertain else "logic"]


def note_parked(tx: Transaction, context: Context, workflow: str) -> None:
    """One alert per workflow says how many of its events are parked; none where none is."""
    newest = tx.of(Tasks).newest(workflow, PARKED)
    if newest is None:
        close_alert(tx, context, ALERT, workflow)
        return
    count = tx.of(Tasks).count(workflow, PARKED)
    message = parked_words(workflow, count, newest.error)
    open_alert(tx, context, ALERT, workflow, message)


def end_failures(tx: Transaction, context: Context, jobs: LockedJobs, name: str) -> None:
    """The handler has succeeded, or nothing that failed is left of it: no place of it is called failing any more.

    A place is no job of its own to people: which one an event comes to is chance, and the next one comes to another.
    """
    places = [one for one in jobs.handlers() if one.type == STEPS and base_of(one.name) == name]
    states = [jobs.state(one.job_id) for one in places if one.job_id is not None and one.open_run is None]
    over = [
        state._replace(errors=0, last_error=None, failing_since=None)
        for state in states
        if state is not None and state.run_id is None and (state.errors or state.last_error is not None)
    ]
    tx.jobs.save(over)
    for state in over:
        jobs.keep(state)
    if over:
        close_alerts(tx, context, ABOUT_FAILURES, [state.job_id for state in over])


def cut_off_steps(
    tx: Transaction, context: Context, attempt: WorkflowRun, handler: HandlerRow, *, result: Result, run: RunRow
) -> None:
    """An attempt ended before it had said how. After a crash its place continues with it; else any place does."""
    number = event_id_of(attempt)
    task = tx.of(Tasks).get(number) if number is not None else None
    why = result.error or CUT_OFF
    if task is None or task.run_id != attempt.id or task.status != RUNNING:
        tx.of(WorkflowVerbs).change_handler(attempt.workflow, attempt.handler, open_run=None)
        tx.of(WorkflowVerbs).save_run(attempt._replace(status=CRASHED, error=why, updated_at=tx.now))
        _go_on(tx, context, attempt)
        return
    tasks = tx.of(Tasks)
    running = [step for step in tasks.steps(task.event_id) if step.status == RUNNING]
    tasks.doubt_steps(task.event_id, {}, why)
    doubtful = attempt.mutation == "in_flight"
    until = max((step.until for step in running), default=None) if doubtful else None
    is_gone = tx.exclusive or run.node == context.id or tx.nodes.get(context.id) is None
    cut = attempt._replace(
        status=CRASHED, error=why, updated_at=tx.now, reconcile_at=None if is_gone else until,
    )  # fmt: skip
    if result.outcome == "crashed":
        _crashed(tx, context, cut, handler, task, blamed=result.blamed)
        return
    tx.of(WorkflowVerbs).save_run(cut)
    tx.of(WorkflowVerbs).change_handler(attempt.workflow, attempt.handler, open_run=None)
    if result.outcome in FAILURES:  # a mistake of ours, or the time limit of the run
        chosen = fate("transient", task.tries + 1, None, handler.on_failure or "stop", tx.now)
        uncertain = doubtful and chosen.follows != "retry"
        settle_task(tx, context, cut, task, Failure(why, chosen, uncertain=uncertain))
    else:
        by_hand = result.outcome == "cancelled" and not result.interrupted
        at = max(tx.now + (MIN_WAKE_MS if by_hand else 0), cut.reconcile_at or 0)
        working = context.id if is_left(attempt.id) else None
        tasks.save(task._replace(status=RETRYING, retry_at=at, error=why, working_node=working, updated_at=tx.now))
    _go_on(tx, context, attempt)


def _crashed(
    tx: Transaction, context: Context, cut: WorkflowRun, handler: HandlerRow, task: TaskRow, *, blamed: bool
) -> None:
    """Its process ended: the place continues with it, unless it has ended its process too often."""
    table, count = tx.of(WorkflowVerbs), handler.blamed + blamed
    state = tx.jobs.states([cut.job_id])[cut.job_id]
    table.change_handler(handler.workflow, handler.name, crashes=state.crashes, blamed=count)
    if count < MAX_CRASHES and handler.job_id is not None:
        table.save_run(cut)
        waiting = first_waiting(tx, state)
        again = waiting.due_at if waiting is not None else tx.now
        arm(tx, context, handler.job_id, max(again, cut.reconcile_at or 0), CONTINUED)
        return
    table.change_handler(handler.workflow, handler.name, open_run=None, crashes=0, blamed=0)
    message = f"it ended its process {counted(count, 'time')} in a row ({cut.error})"
    chosen = fate("mistake", 1, None, handler.on_failure or "stop", tx.now)
    uncertain = cut.mutation == "in_flight"
    settle_task(tx, context, cut, task, Failure(message, chosen, uncertain=uncertain))
    _go_on(tx, context, cut)


def _go_on(tx: Transaction, context: Context, attempt: WorkflowRun) -> None:
    """What is left for other places starts there."""
    arm_places(tx, context, LockedJobs(tx, attempt.workflow), base_of(attempt.handler))


def put_off(tx: Transaction, context: Context, attempt: WorkflowRun, until: int, why: str) -> WorkflowRun:
    """The last attempt may still be at work on another node: the event waits until its time is over."""
    jobs, task = _end_attempt(tx, attempt)
    tx.of(Tasks).save(task._replace(status=RETRYING, retry_at=until, updated_at=tx.now))
    arm_places(tx, context, jobs, base_of(attempt.handler), but=[attempt.id])
    return save_attempt(tx, attempt._replace(status=STATUS["reconciliation"], error=why), attempt)


def rejected(tx: Transaction, context: Context, attempt: WorkflowRun, handler: HandlerRow, *, why: str) -> None:
    """A person said no: the event is parked, or the workflow is paused with it."""
    table, number = tx.of(WorkflowVerbs), event_id_of(attempt)
    table.change_handler(attempt.workflow, attempt.handler, open_run=None)
    task = tx.of(Tasks).get(number) if number is not None else None
    if task is None or task.run_id != attempt.id:
        return
    tasks = tx.of(Tasks)
    if handler.on_failure == "park":
        tasks.save(task._replace(status=PARKED, tries=task.tries + 1, error=why, updated_at=tx.now))
        promote(tx, task)
        note_parked(tx, context, attempt.workflow)
    else:
        tasks.save(task._replace(status=RETRYING, retry_at=tx.now, error=why, updated_at=tx.now))
        table.change(attempt.workflow, tx.now, paused=1, pause_note=why)
    table.save_run(attempt._replace(status="rejected", error=why, updated_at=tx.now))
    _go_on(tx, context, attempt)
