"""Which event a run of a handler with steps takes, decided in one transaction that has the workflow to itself.

Of events with the same key one is worked on at a time, in the order in which they were published. Keys come from the
author's function, which is never called in a transaction: so a run that finds events without keys is given them, and
comes back with the keys.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.domains.workflows.approving import only_approved
from wakeful.domains.workflows.authoring import Event
from wakeful.domains.workflows.checkpoints import Fenced, fence_all, save_attempt
from wakeful.domains.workflows.phases import COMMITTED
from wakeful.domains.workflows.steps.places import arm_places, base_of
from wakeful.domains.workflows.steps.tables import DONE, QUEUED, READY, RETRYING, RUNNING, StepRow, TaskRow, Tasks
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRun, Workflows
from wakeful.domains.workflows.threads import is_left
from wakeful.domains.workflows.topics.tables import EventRow, Topics
from wakeful.store.records import RunDetails
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.domains.workflows.arming import LockedJobs
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

BATCH = 500  # events that get their keys at once
MOST_LOOKS = 100  # at tasks whose events are gone or are still worked on
WORKING_MS = 5_000


class Keyed(NamedTuple):
    """An event with its key."""

    event: EventRow
    key: str


class Taken(NamedTuple):
    """What a run works on."""

    attempt: WorkflowRun
    event: Event
    task: TaskRow
    steps: Sequence[StepRow]
    approvals: str | None = None  # what was approved for earlier attempts at it


class Untaken(NamedTuple):
    """There was nothing to take. With events: none before they have keys."""

    unkeyed: Sequence[EventRow] = ()


def take(tx: Transaction, context: Context, attempt: WorkflowRun, keyed: Sequence[Keyed] = ()) -> Taken | Untaken:
    """Let the run have the event whose turn it is; `keyed`: the keys of events that had none."""
    jobs = fence_all(tx, attempt)
    base = next((one for one in jobs.handlers() if one.name == base_of(attempt.handler)), None)
    if base is None:
        raise Fenced
    base = _add(tx, jobs, base, keyed)
    found = _next(tx, context, base)
    if isinstance(found, EventRow):
        return Untaken([found])
    if found is not None:
        taken = _begin(tx, attempt, *found)
        arm_places(tx, context, jobs, base.name)
        return taken
    unkeyed = tx.of(Tasks).unkeyed(base.workflow, base.topics()[0], base.keyed, BATCH)
    if unkeyed:
        return Untaken(unkeyed)
    _end_idle(tx, context, jobs, attempt, base.name)
    return Untaken()


def _add(tx: Transaction, jobs: LockedJobs, base: HandlerRow, keyed: Sequence[Keyed]) -> HandlerRow:
    """Make tasks of events whose keys are known now, and note how far they go."""
    tasks = tx.of(Tasks)
    known = tasks.of_events([one.event.id for one in keyed])
    for task in known.values():
        if task.run_id is None:
            tasks.drop([task.event_id])
            promote(tx, task)
    fresh = [one for one in keyed if one.event.id in known or one.event.seq > base.keyed]
    fresh = [one for one in fresh if known.get(one.event.id) is None or known[one.event.id].run_id is None]
    held = tasks.held_keys(base.workflow, base.name, {one.key for one in fresh})
    rows = []
    for event, key in fresh:
        status = QUEUED if key in held else READY
        held.add(key)
        rows.append(
            TaskRow(
                event_id=event.id, workflow=base.workflow, handler=base.name, topic=event.topic, key=key, seq=event.seq,
                revision=event.revision, status=status, updated_at=tx.now,
            )
        )  # fmt: skip
    if rows:
        tasks.add(rows)
    last = max([base.keyed, *(one.event.seq for one in fresh)])
    seen = base.seen
    if base.dirty > base.seen and not tasks.unkeyed(base.workflow, base.topics()[0], last, 1):
        seen = base.dirty
    if (last, seen) != (base.keyed, base.seen) and base.job_id is not None:
        tx.of(Workflows).set_by_job(("keyed", "seen"), [(base.job_id, last, seen)])
        jobs.note_seen(base.job_id, seen)
    return base._replace(keyed=last, seen=seen)


def _next(tx: Transaction, context: Context, base: HandlerRow) -> tuple[TaskRow, EventRow] | EventRow | None:
    """The task whose turn it is; an event that needs another key first; or None."""
    tasks, topics = tx.of(Tasks), tx.of(Topics)
    for _ in range(MOST_LOOKS):
        task = tasks.first_due(base.workflow, base.name, tx.now) or tasks.first(base.workflow, base.name, READY)
        if task is None:
            return None
        event = topics.get(task.event_id)
        if event is None or not _is_takable(event, task):
            tasks.drop([task.event_id])
            promote(tx, task)
        elif task.run_id is None and event.revision != task.revision:
            return event
        elif still_works(tx, context, task):
            tasks.save(task._replace(status=RETRYING, retry_at=tx.now + WORKING_MS, updated_at=tx.now))
        else:
            return task, event
    return None


def _is_takable(event: EventRow, task: TaskRow) -> bool:
    return event.status == ("pending" if task.run_id is None else "reserved")


def still_works(tx: Transaction, context: Context, task: TaskRow) -> bool:
    """Whether a thread of the task's last attempt is still at work, as far as can be known."""
    if task.working_node is None:
        return False
    if task.working_node == context.id or tx.exclusive:
        return is_left(task.run_id)
    node = tx.nodes.get(task.working_node)
    return node is not None and node.stopped_at is None


def _begin(tx: Transaction, attempt: WorkflowRun, task: TaskRow, event: EventRow) -> Taken:
    """The event is the run's."""
    tasks = tx.of(Tasks)
    steps = tasks.steps(event.id)
    doubtful = any(step.status not in (DONE, "failed") for step in steps)
    text = ids.encode("evt", event.id)
    prepared = json.dumps({"reserve": {event.topic: [text]}, "data": {"key": task.key, "message_id": event.message_id}})
    taken = attempt._replace(
        phase="prepared", reserved=1, prepared=prepared, title=f"{event.topic} {event.message_id}"[:2_000],
        retry_of=task.run_id, mutation="in_flight" if doubtful else "none", hops=event.hops,
    )  # fmt: skip
    details = tx.runs.details_of([task.run_id]) if task.run_id is not None else {}
    approvals = only_approved(details[task.run_id].approval) if task.run_id in details else None
    if approvals is not None:
        tx.runs.detail([RunDetails(attempt.id, approval=approvals)])
    tx.of(Topics).reserve([event.id], attempt.id)
    task = task._replace(status=RUNNING, run_id=attempt.id, retry_at=None, working_node=None, updated_at=tx.now)
    tasks.save(task)
    saved = save_attempt(tx, taken, attempt)
    return Taken(saved, event_of(tx, event), task, steps, approvals)


def go_on_with(tx: Transaction, fresh: WorkflowRun, before: WorkflowRun) -> WorkflowRun:
    """The attempt at a place whose last one did not end: it has what that one had."""
    number = event_id_of(before)
    task = tx.of(Tasks).get(number) if number is not None else None
    if task is None or task.run_id != before.id or task.status != RUNNING:
        return fresh
    tx.of(Topics).reserve([task.event_id], fresh.id)
    tx.of(Tasks).save(task._replace(run_id=fresh.id, updated_at=tx.now))
    return before._replace(
        id=fresh.id, job_id=fresh.job_id, retry_of=before.id, version=fresh.version, status=fresh.status,
        begins="steps", error=None, notes=None, created_at=tx.now, updated_at=tx.now,
    )  # fmt: skip


def taken_before(tx: Transaction, attempt: WorkflowRun) -> Taken | None:
    """What a run goes on with whose place was at it before; None where that is settled otherwise meanwhile."""
    number = event_id_of(attempt)
    task = tx.of(Tasks).get(number) if number is not None else None
    event = tx.of(Topics).get(number) if number is not None else None
    if task is None or event is None or task.run_id != attempt.id or task.status != RUNNING:
        return None
    return Taken(attempt, event_of(tx, event), task, tx.of(Tasks).steps(event.id))


def event_of(tx: Transaction, event: EventRow) -> Event:
    """An event as handlers see it."""
    causes = tx.of(Topics).inputs_of([event.id]).get(event.id)
    cause = ids.encode("inp", causes[0]) if causes else None
    text = ids.encode("evt", event.id)
    return Event(text, event.message_id, event.topic, json.loads(event.payload), from_ms(event.at), cause)


def event_id_of(attempt: WorkflowRun) -> int | None:
    """The event that a run works on; None before it has one."""
    kept = json.loads(attempt.prepared) if attempt.prepared is not None else {"reserve": {}}
    text = next((one for events in kept["reserve"].values() for one in events), None)
    return ids.number_of("evt", text) if text is not None else None


def promote(tx: Transaction, task: TaskRow) -> None:
    """A task no longer has its turn: the next one with its key does."""
    tasks = tx.of(Tasks)
    if tasks.is_held(task):
        return
    following = tasks.next_of_key(task.workflow, task.handler, task.key)
    if following is not None:
        tasks.save(following._replace(status=READY, updated_at=tx.now))


def _end_idle(tx: Transaction, context: Context, jobs: LockedJobs, attempt: WorkflowRun, name: str) -> None:
    """There is nothing to do for this run."""
    tx.of(Workflows).change_handler(attempt.workflow, attempt.handler, open_run=None)
    save_attempt(tx, attempt._replace(phase="committed", status=COMMITTED), attempt)
    arm_places(tx, context, jobs, name, but=attempt.id)
