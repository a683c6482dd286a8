"""The checkpoints of a run with steps: each is one transaction, and none is taken for a run that another node has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.workflows.arming import LockedJobs
from wakeful.domains.workflows.checkpoints import (
    Fenced,
    PendingWrites,
    fence,
    is_fenced,
    noted,
    save_attempt,
    save_attempts,
    with_causes,
)
from wakeful.domains.workflows.drained import finish_drain
from wakeful.domains.workflows.phases import COMMITTED, STATUS
from wakeful.domains.workflows.publishing import publish_numbered
from wakeful.domains.workflows.steps.ending import end_failures
from wakeful.domains.workflows.steps.outgoing import publish_elsewhere, split
from wakeful.domains.workflows.steps.places import arm_places
from wakeful.domains.workflows.steps.tables import StepRow, Tasks
from wakeful.domains.workflows.steps.taking import event_id_of, promote
from wakeful.domains.workflows.tables import WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.domains.workflows.turns.order import line_up
from wakeful.domains.workflows.turns.rounds import end_round

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction


class StepWrite(NamedTuple):
    """A step as it is to be on record: about to be called, or ended."""

    attempt: WorkflowRun
    step: StepRow
    doubtful: bool  # whether it, or another step of the run, may have happened or not
    caught: Sequence[str] = ()  # steps that had failed before it, and after which the handler went on


def steps_written(tx: Transaction, _: Context, writes: Sequence[StepWrite]) -> list[WorkflowRun | Fenced]:
    """Put steps of several runs on record; the attempts as they are then. The author's code continues afterwards."""
    states = tx.jobs.states([one.attempt.job_id for one in writes])
    alive = [one for one in writes if not is_fenced(one.attempt, states.get(one.attempt.job_id))]
    if not alive:
        return [Fenced() for _ in writes]
    for one in alive:
        tx.of(Tasks).catch_steps(one.step.event_id, one.caught)
    changed = [
        (one.attempt._replace(phase="mutating", mutation="in_flight" if one.doubtful else "none"), one.attempt)
        for one in alive
    ]
    saved = {attempt.id: attempt for attempt in save_attempts(tx, changed)}
    tx.of(Tasks).save_step(*(one.step for one in alive))
    return [saved.get(one.attempt.id) or Fenced() for one in writes]


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


class Commit(NamedTuple):
    """A run whose function has returned, and what it published."""

    attempt: WorkflowRun
    outgoing: PendingWrites


def steps_committed(tx: Transaction, context: Context, commits: Sequence[Commit]) -> list[WorkflowRun | Fenced]:
    """Events are consumed, and what was published becomes visible; the next ones with their keys have their turn."""
    others = {one.attempt.id: split(one.attempt, one.outgoing.messages)[1] for one in commits}
    names = {one.attempt.workflow for one in commits}
    elsewhere = {other.workflow for found in others.values() for other in found}
    if len(names | elsewhere) > 1:  # all at once, in one order; one alone is locked below
        tx.of(WorkflowVerbs).lock_jobs(*sorted(names | elsewhere))
    saved: dict[int, WorkflowRun] = {}
    for name in sorted(names):
        saved.update(
            _commit(tx, context, LockedJobs(tx, name), [one for one in commits if one.attempt.workflow == name])
        )
    for one in commits:
        if one.attempt.id in saved:
            publish_elsewhere(tx, context, one.attempt, others[one.attempt.id])
    return [saved.get(one.attempt.id) or Fenced() for one in commits]


def _commit(tx: Transaction, context: Context, jobs: LockedJobs, commits: Sequence[Commit]) -> dict[int, WorkflowRun]:
    """The same of one workflow's runs, without what goes to other workflows; those that are not fenced, by run."""
    tasks, topics = tx.of(Tasks), tx.of(Topics)
    numbers = {one.attempt.id: number for one in commits if (number := event_id_of(one.attempt)) is not None}
    begun = {task.run_id: task for task in tasks.of_events(list(numbers.values())).values()}
    alive = [
        one for one in commits if one.attempt.id in begun and not is_fenced(one.attempt, jobs.state(one.attempt.job_id))
    ]
    own = {one.attempt.id: split(one.attempt, one.outgoing.messages)[0] for one in alive}
    count = sum(map(len, own.values()))
    row = tx.of(WorkflowVerbs).take_numbers(jobs.workflow, count) if alive else None
    if row is None:
        return {}
    ended = [begun[one.attempt.id] for one in alive]
    tasks.drop([task.event_id for task in ended])
    topics.consume(*(one.attempt.id for one in alive), now=tx.now)
    promote(tx, *ended)
    last = row.event_seq - count
    for one in alive:
        messages, last = own[one.attempt.id], last + len(own[one.attempt.id])
        if messages:
            caused = with_causes(topics, one.attempt, messages)
            publish_numbered(tx, context, jobs, caused, last=last, run_id=one.attempt.id)
    runs = [one.attempt.id for one in alive]
    for handler in sorted({task.handler for task in ended}):
        arm_places(tx, context, jobs, handler, but=runs)
        end_failures(tx, context, jobs, handler)
    notes = _end_rounds(tx, jobs, [one.attempt for one in alive])
    line_up(tx, jobs)
    for run in runs if row.draining else ():
        finish_drain(tx, jobs.workflow, but=run)
    for run in runs:
        tx.events.emit("workflow", {"type": "committed", "workflow": jobs.workflow, "run": run})
    done = [one.attempt._replace(phase="committed", status=COMMITTED, mutation="applied", error=None) for one in alive]
    changed = [(noted(after, notes[after.id]), one.attempt) for after, one in zip(done, alive, strict=True)]
    return {saved.id: saved for saved in save_attempts(tx, changed)}


def _end_rounds(tx: Transaction, jobs: LockedJobs, attempts: Sequence[WorkflowRun]) -> dict[int, str | None]:
    """Nothing is left of these runs at their places; what their authors should know, by run."""
    notes: dict[int, str | None] = {}
    made: dict[str, int] = {}
    anew: dict[str, int | None] = {}
    for attempt in attempts:
        ended = end_round(tx, jobs, attempt)
        notes[attempt.id], made[attempt.handler] = ended.note, ended.made
        anew.update({one.name: one.job_id for one in ended.anew})
    kept = {"open_run": None, "rounds": 0, "crashes": 0, "blamed": 0, "fixes": 0}
    known = {one.name: one.job_id for one in jobs.handlers()}
    rows = []
    for name, rounds in made.items():
        kept["rounds"] = rounds
        if (job_id := known.get(name)) is not None:
            rows.append((job_id, *kept.values()))
        else:  # the deployed version does not have it any more
            tx.of(WorkflowVerbs).change_handler(jobs.workflow, name, **kept)
    tx.of(WorkflowVerbs).set_by_job(tuple(kept), rows)
    tx.of(WorkflowVerbs).set_by_job(("rounds",), [(job_id, 0) for name, job_id in anew.items() if name not in made])
    return notes
