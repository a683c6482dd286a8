"""The checkpoints of a run with steps: each is one transaction, and none is taken for a run that another node has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.domains.workflows.checkpoints import Fenced, Outgoing, fence, fence_all, noted, save_attempt, with_causes
from wakeful.domains.workflows.drained import finish_drain
from wakeful.domains.workflows.phases import COMMITTED, STATUS
from wakeful.domains.workflows.publishing import publish_numbered
from wakeful.domains.workflows.steps.outgoing import publish_elsewhere, split
from wakeful.domains.workflows.steps.places import arm_places, base_of
from wakeful.domains.workflows.steps.tables import StepRow, Tasks
from wakeful.domains.workflows.steps.taking import event_id_of, promote
from wakeful.domains.workflows.tables import WorkflowRun, Workflows
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.domains.workflows.turns.order import line_up
from wakeful.domains.workflows.turns.rounds import end_round

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction


def step_begun(tx: Transaction, attempt: WorkflowRun, step: StepRow, caught: Sequence[str]) -> WorkflowRun:
    """The step is about to be called: from here on it may have happened. `caught`: steps that had failed before it."""
    fence(tx, attempt)
    tasks = tx.of(Tasks)
    tasks.catch_steps(step.event_id, caught)
    tasks.save_step(step)
    return save_attempt(tx, attempt._replace(phase="mutating", mutation="in_flight"), attempt)


def step_ended(tx: Transaction, attempt: WorkflowRun, step: StepRow, *, doubtful: bool) -> WorkflowRun:
    """The step has returned, or failed; `doubtful`: it is not known whether others happened, or not yet."""
    fence(tx, attempt)
    tx.of(Tasks).save_step(step)
    mutation = "in_flight" if doubtful else "none"
    return save_attempt(tx, attempt._replace(phase="mutating", mutation=mutation), attempt)


def asked_about(tx: Transaction, attempt: WorkflowRun, step: StepRow) -> StepRow:
    """Reconcile is about to be called: counted before, because a call that ends its process is a try as well."""
    fence(tx, attempt)
    counted = step._replace(tries=step.tries + 1)
    tx.of(Tasks).save_step(counted)
    return counted


def questioned(tx: Transaction, attempt: WorkflowRun, caught: Sequence[str], message: str) -> WorkflowRun:
    """The run asks a person: it keeps its event, and its place, until the answer."""
    fence(tx, attempt)
    number = event_id_of(attempt)
    if number is not None:
        tx.of(Tasks).catch_steps(number, caught)
    return save_attempt(tx, attempt._replace(status=STATUS["approval"], error=message), attempt)


def steps_committed(tx: Transaction, context: Context, attempt: WorkflowRun, outgoing: Outgoing) -> WorkflowRun:
    """The event is consumed, and what was published becomes visible; the next one with its key has its turn."""
    own, others = split(attempt, outgoing.messages)
    jobs = fence_all(tx, attempt, also=[other.workflow for other in others])
    table, topics, tasks = tx.of(Workflows), tx.of(Topics), tx.of(Tasks)
    row, number = table.take_numbers(attempt.workflow, len(own)), event_id_of(attempt)
    task = tasks.get(number) if number is not None else None
    if row is None or task is None or task.run_id != attempt.id:
        raise Fenced
    tasks.drop([task.event_id])
    topics.consume(attempt.id, tx.now)
    promote(tx, task)
    if own:
        publish_numbered(tx, context, jobs, with_causes(topics, attempt, own), last=row.event_seq, run_id=attempt.id)
    publish_elsewhere(tx, context, attempt, others)
    arm_places(tx, context, jobs, base_of(attempt.handler), but=attempt.id)
    ended = end_round(tx, jobs, attempt)
    line_up(tx, jobs)
    table.change_handler(
        attempt.workflow, attempt.handler, open_run=None, rounds=ended.made, crashes=0, blamed=0, fixes=0
    )
    for one in ended.anew:
        table.change_handler(one.workflow, one.name, rounds=0)
    if row.draining:
        finish_drain(tx, attempt.workflow, but=attempt.id)
    tx.events.emit("workflow", {"type": "committed", "workflow": attempt.workflow, "run": attempt.id})
    done = attempt._replace(phase="committed", status=COMMITTED, mutation="applied", error=None)
    return save_attempt(tx, noted(done, ended.note), attempt)
