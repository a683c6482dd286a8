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
from wakeful.domains.workflows.arming import LockedJobs
from wakeful.domains.workflows.authoring import Event
from wakeful.domains.workflows.checkpoints import Fenced, is_fenced, save_attempts
from wakeful.domains.workflows.phases import COMMITTED
from wakeful.domains.workflows.steps.places import arm_places, base_of
from wakeful.domains.workflows.steps.tables import DONE, QUEUED, READY, RETRYING, RUNNING, StepRow, TaskRow, Tasks
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.threads import is_left
from wakeful.domains.workflows.topics.tables import EventRow, Topics
from wakeful.store.records import RunDetails
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

BATCH = 500  # events that get their keys at once
MOST_LOOKS = 100  # at tasks whose events are gone or are still worked on
WORKING_MS = 5_000


class KeyedEvent(NamedTuple):
    """An event with its key."""

    event: EventRow
    key: str


class ClaimedWork(NamedTuple):
    """What a run works on."""

    attempt: WorkflowRun
    event: Event
    task: TaskRow
    steps: Sequence[StepRow]
    approvals: str | None = None  # what was approved for earlier attempts at it


class Untaken(NamedTuple):
    """There was nothing to take. With events: none before they have keys."""

    unkeyed: Sequence[EventRow] = ()
    after: int | None = None  # the number behind which they are all that there are; None: one that has another payload


class Wanting(NamedTuple):
    """A run that wants an event; `keyed`: the keys of events that had none, and `after` which number these come."""

    attempt: WorkflowRun
    keyed: Sequence[KeyedEvent] = ()
    after: int | None = None


Found = ClaimedWork | Untaken | Fenced


def take(tx: Transaction, context: Context, wanting: Sequence[Wanting]) -> list[Found]:
    """Let each of these runs have an event whose turn it is."""
    found: dict[int, Found] = {}
    handlers = {(one.attempt.workflow, base_of(one.attempt.handler)) for one in wanting}
    workflows = sorted({workflow for workflow, _ in handlers})
    if len(workflows) > 1:  # all at once, in one order; one alone is locked below
        tx.of(WorkflowVerbs).lock_jobs(*workflows)
    for workflow, name in sorted(handlers):
        ours = [one for one in wanting if (one.attempt.workflow, base_of(one.attempt.handler)) == (workflow, name)]
        found.update(_take(tx, context, LockedJobs(tx, workflow), name, ours))
    return [found[one.attempt.id] for one in wanting]


def _take(
    tx: Transaction, context: Context, jobs: LockedJobs, name: str, wanting: Sequence[Wanting]
) -> dict[int, Found]:
    """The same for runs of one handler, by run."""
    base = next((one for one in jobs.handlers() if one.name == name), None)
    alive = [] if base is None else [one for one in wanting if not _is_fenced(jobs, one.attempt)]
    found: dict[int, Found] = {one.attempt.id: Fenced() for one in wanting}
    if base is None or not alive:
        return found
    base = _add_all(tx, jobs, base, alive)
    attempts = [one.attempt for one in alive]
    taken = _next(tx, context, base, len(attempts))
    found.update(_begin(tx, list(zip(attempts, taken, strict=False))))
    without = attempts[len(taken) :]
    unkeyed = tx.of(Tasks).unkeyed(base.workflow, base.topics()[0], base.keyed, BATCH) if without else []
    found.update({one.id: Untaken(unkeyed, base.keyed) for one in without})
    idle = without if not unkeyed else []
    for attempt in idle:
        tx.of(WorkflowVerbs).change_handler(attempt.workflow, attempt.handler, open_run=None)
    save_attempts(tx, [(one._replace(phase="committed", status=COMMITTED), one) for one in idle])
    if idle or any(isinstance(one, ClaimedWork) for one in found.values()):
        arm_places(tx, context, jobs, name, but=[one.id for one in idle])
    return found


def _is_fenced(jobs: LockedJobs, attempt: WorkflowRun) -> bool:
    return is_fenced(attempt, jobs.state(attempt.job_id))


def _add_all(tx: Transaction, jobs: LockedJobs, base: HandlerRow, wanting: Sequence[Wanting]) -> HandlerRow:
    """Make tasks of events whose keys are known now, and note how far they go, and whether that is all there are."""
    keyed = base.keyed
    for one in wanting:
        # Those that came together bring the same events: what the first has brought is not looked at again.
        if one.keyed and (one.after is None or one.keyed[-1].event.seq > keyed):
            keyed = _add(tx, base._replace(keyed=keyed), one)
    seen = base.seen
    if base.dirty > seen and not tx.of(Tasks).unkeyed(base.workflow, base.topics()[0], keyed, 1):
        seen = base.dirty
    if (keyed, seen) != (base.keyed, base.seen) and base.job_id is not None:
        tx.of(WorkflowVerbs).set_by_job(("keyed", "seen"), [(base.job_id, keyed, seen)])
        jobs.note_seen(base.job_id, seen)
    return base._replace(keyed=keyed, seen=seen)


def _add(tx: Transaction, base: HandlerRow, given: Wanting) -> int:
    """Make tasks of events whose keys are known now; the number up to which all events have theirs."""
    tasks, keyed = tx.of(Tasks), given.keyed
    known = tasks.of_events([one.event.id for one in keyed])
    follows = given.after is not None and given.after <= base.keyed  # else a deploy has begun anew meanwhile
    others = [
        task
        for one in keyed
        if (task := known.get(one.event.id)) is not None and task.run_id is None and task.revision != one.event.revision
    ]
    if others:
        tasks.drop([task.event_id for task in others])
        promote(tx, *others)
    again = {task.event_id for task in others}
    fresh = [
        one
        for one in keyed
        if one.event.id in again or (follows and one.event.id not in known and one.event.seq > base.keyed)
    ]
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
    return max([base.keyed, *(one.event.seq for one in keyed if follows)])


def _next(tx: Transaction, context: Context, base: HandlerRow, count: int) -> list[tuple[TaskRow, EventRow] | EventRow]:
    """The tasks whose turn it is, at most so many; in the place of one an event that needs another key first."""
    tasks, topics = tx.of(Tasks), tx.of(Topics)
    found: list[tuple[TaskRow, EventRow] | EventRow] = []
    for _ in range(MOST_LOOKS):
        looked = tasks.due(base.workflow, base.name, tx.now, count - len(found)) if count > len(found) else []
        looked += tasks.ready(base.workflow, base.name, more) if (more := count - len(found) - len(looked)) else []
        if not looked:
            break
        events = topics.among([task.event_id for task in looked])
        running = []
        for task in looked:
            event = events.get(task.event_id)
            if event is None or not _is_takable(event, task):
                tasks.drop([task.event_id])
                promote(tx, task)
            elif task.run_id is None and event.revision != task.revision:
                found.append(event)
            elif still_works(tx, context, task):
                tasks.save(task._replace(status=RETRYING, retry_at=tx.now + WORKING_MS, updated_at=tx.now))
            else:
                found.append((task, event))
                running.append(task._replace(status=RUNNING, updated_at=tx.now))
        tasks.save(*running)
    return found


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


def _begin(
    tx: Transaction, taken: Sequence[tuple[WorkflowRun, tuple[TaskRow, EventRow] | EventRow]]
) -> dict[int, ClaimedWork | Untaken]:
    """The events are the runs'; those that need another key first are given back."""
    found: dict[int, ClaimedWork | Untaken] = {
        run.id: Untaken([one]) for run, one in taken if isinstance(one, EventRow)
    }
    begun = [(run, *one) for run, one in taken if not isinstance(one, EventRow)]
    if not begun:
        return found
    tasks, numbers = tx.of(Tasks), [event.id for _, _, event in begun]
    steps, causes = tasks.steps_of(numbers), tx.of(Topics).inputs_of(numbers)
    approved = _approved(tx, [(run.id, task.run_id) for run, task, _ in begun if task.run_id is not None])
    changed, rows = [], []
    for run, task, event in begun:
        doubtful = any(step.status not in (DONE, "failed") for step in steps.get(event.id, ()))
        kept = {"reserve": {event.topic: [ids.encode("evt", event.id)]}}
        prepared = json.dumps({**kept, "data": {"key": task.key, "message_id": event.message_id}})
        after = run._replace(
            phase="prepared", reserved=1, prepared=prepared, title=f"{event.topic} {event.message_id}"[:2_000],
            retry_of=task.run_id, mutation="in_flight" if doubtful else "none", hops=event.hops,
        )  # fmt: skip
        changed.append((after, run))
        rows.append(task._replace(status=RUNNING, run_id=run.id, retry_at=None, working_node=None, updated_at=tx.now))
    tx.of(Topics).reserve_each({event.id: run.id for run, _, event in begun})
    tasks.save(*rows)
    for saved, task, (_, _, event) in zip(save_attempts(tx, changed), rows, begun, strict=True):
        seen = _as_seen(event, causes.get(event.id))
        found[saved.id] = ClaimedWork(saved, seen, task, steps.get(event.id, []), approved.get(saved.id))
    return found


def _approved(tx: Transaction, runs: Sequence[tuple[int, int]]) -> dict[int, str]:
    """What was approved for the attempts before these, by run; it holds for these as well."""
    details = tx.runs.details_of([before for _, before in runs]) if runs else {}
    found = {run: only_approved(details[before].approval) for run, before in runs if before in details}
    approved = {run: record for run, record in found.items() if record is not None}
    if approved:
        tx.runs.detail([RunDetails(run, approval=record) for run, record in approved.items()])
    return approved


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


def taken_before(tx: Transaction, attempt: WorkflowRun) -> ClaimedWork | None:
    """What a run continues with whose place was at it before; None where that is settled otherwise meanwhile."""
    number = event_id_of(attempt)
    task = tx.of(Tasks).get(number) if number is not None else None
    event = tx.of(Topics).get(number) if number is not None else None
    if task is None or event is None or task.run_id != attempt.id or task.status != RUNNING:
        return None
    return ClaimedWork(attempt, event_of(tx, event), task, tx.of(Tasks).steps(event.id))


def event_of(tx: Transaction, event: EventRow) -> Event:
    """An event as handlers see it."""
    return _as_seen(event, tx.of(Topics).inputs_of([event.id]).get(event.id))


def _as_seen(event: EventRow, causes: Sequence[int] | None) -> Event:
    cause = ids.encode("inp", causes[0]) if causes else None
    text = ids.encode("evt", event.id)
    return Event(text, event.message_id, event.topic, json.loads(event.payload), from_ms(event.at), cause)


def event_id_of(attempt: WorkflowRun) -> int | None:
    """The event that a run works on; None before it has one."""
    kept = json.loads(attempt.prepared) if attempt.prepared is not None else {"reserve": {}}
    text = next((one for events in kept["reserve"].values() for one in events), None)
    return ids.number_of("evt", text) if text is not None else None


def promote(tx: Transaction, *tasks: TaskRow) -> None:
    """These tasks no longer have their turn: the next ones with their keys do."""
    for workflow, handler in sorted({(task.workflow, task.handler) for task in tasks}):
        keys = {task.key for task in tasks if (task.workflow, task.handler) == (workflow, handler)}
        following = tx.of(Tasks).freed(workflow, handler, keys)
        tx.of(Tasks).save(*(task._replace(status=READY, updated_at=tx.now) for task in following))
