"""The checkpoints of a run: each is one transaction, and none is taken for a run that another node took over.

A node that lost its run finds the job without it: the take-over locked the job's state, as every checkpoint does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.workflows.arming import CONTINUED, EVENT, WAKE_TIME, LockedJobs, arm, set_alarm
from wakeful.workflows.drained import finish_drain
from wakeful.workflows.failures import LogicError
from wakeful.workflows.issues import Issue, raise_issue, resolve_issue
from wakeful.workflows.phases import COMMITTED, STATUS, Failure, is_forward, keeps_reservations, where_to_begin
from wakeful.workflows.publishing import Message, publish_numbered
from wakeful.workflows.tables import HandlerRow, WorkflowRun, Workflows
from wakeful.workflows.timing import (
    ATTENTION_AFTER,
    MAX_FIXES,
    MAX_ROUNDS,
    Due,
    Wake,
    backoff,
    due_after_commit,
    reconcile_delay,
)
from wakeful.workflows.topics.tables import InputRow, Topics

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobState


YIELDS = "it yields for 30 s after 100 rounds"


class Fenced(Exception):
    """The run is no longer this node's: nothing of it may be stored."""


class Outgoing(NamedTuple):
    """What a handler published and registered, to be written with its commit."""

    messages: Sequence[Message] = ()
    inputs: Sequence[InputRow] = ()


def fence(tx: Transaction, attempt: WorkflowRun) -> None:
    """Raise Fenced if the run is no longer the job's run; this holds until the transaction ends.

    Enough for what changes the attempt alone, and events: who publishes or skips those locks all jobs of the workflow.
    """
    _check_fence(attempt, tx.jobs.states([attempt.job_id]).get(attempt.job_id))


def fence_all(tx: Transaction, attempt: WorkflowRun) -> LockedJobs:
    """The same, with all jobs of the workflow locked: for what others of its handlers see."""
    jobs = LockedJobs(tx, attempt.workflow)
    _check_fence(attempt, jobs.state(attempt.job_id))
    return jobs


def _check_fence(attempt: WorkflowRun, state: JobState | None) -> None:
    if state is None or state.run_id != attempt.id:
        raise Fenced


def prepared(
    tx: Transaction, attempt: WorkflowRun, reserve: Mapping[str, Sequence[str]], data: str, wake: Wake
) -> WorkflowRun:
    """Reservations, data and wake time are stored together, or none of them."""
    fence(tx, attempt)
    wanted = [(topic, text) for topic, event_ids in reserve.items() for text in event_ids]
    numbers = _reservable(tx, attempt, wanted) if wanted else []
    tx.of(Topics).reserve(numbers, attempt.id)
    done = attempt._replace(phase="prepared", reserved=len(numbers), prepared=data, wake_at=wake.at)
    return _save(tx, noted(done, wake.note), attempt)


def _reservable(tx: Transaction, attempt: WorkflowRun, wanted: Sequence[tuple[str, str]]) -> list[int]:
    """The numbers of events, each given with its topic; LogicError unless all are pending there."""
    numbers = {text: number for _, text in wanted if (number := ids.number_of("evt", text)) is not None}
    places = tx.of(Topics).places(list(numbers.values()))
    for topic, text in wanted:
        if text not in numbers or places.get(numbers[text]) != (attempt.workflow, topic, "pending"):
            message = f"{attempt.handler} reserved {text!r:.80}, which is no pending event of the topic {topic}."
            raise LogicError(message)
    return list(numbers.values())


def in_flight(tx: Transaction, attempt: WorkflowRun) -> WorkflowRun:
    """The mutation is about to be called: from here on it may have happened."""
    fence(tx, attempt)
    return _save(tx, attempt._replace(phase="mutating", mutation="in_flight"), attempt)


def mutated(tx: Transaction, attempt: WorkflowRun, result: str) -> WorkflowRun:
    """The mutation happened, with this result."""
    fence(tx, attempt)
    return _save(tx, attempt._replace(phase="mutated", mutation="applied", result=result, error=None), attempt)


def committed(
    tx: Transaction, context: Context, attempt: WorkflowRun, state: str | None, outgoing: Outgoing
) -> WorkflowRun:
    """State, consumption and what was published become visible together; the next run is armed with them."""
    jobs = fence_all(tx, attempt)
    table, topics = tx.of(Workflows), tx.of(Topics)
    handler = _own_handler(tx, jobs, attempt)
    row = table.take_numbers(attempt.workflow, len(outgoing.messages))
    if handler is None or row is None:
        raise Fenced
    subscribed = handler.topics()
    newer, left = topics.oldest(attempt.workflow, subscribed, after=attempt.watermark)
    topics.add_inputs(outgoing.inputs)
    if outgoing.messages:
        messages = _with_causes(topics, attempt, outgoing.messages)
        made = publish_numbered(tx, context, jobs, messages, last=row.event_seq, run_id=attempt.id)
        to_itself = any(one.new and sent.topic in subscribed for one, sent in zip(made, messages, strict=True))
        newer = tx.now if newer is None and to_itself else newer
    if attempt.reserved:
        topics.consume(attempt.id, tx.now)
    rounds = 0
    if handler.type == "consumer":
        due = due_after_commit(
            newer=newer,
            left=left if attempt.reserved else None,
            wake_at=attempt.wake_at,
            rounds=handler.rounds,
            now=tx.now,
        )
        rounds = _arm_again(tx, context, jobs, attempt, due)
    _keep(tx, handler, attempt, rounds, handler.state if state is None else state)
    if row.issue != "load":
        resolve_issue(tx, context, row)
    if row.draining:
        finish_drain(tx, attempt.workflow, but=attempt.id)
    done = attempt._replace(phase="committed", status=COMMITTED, error=None)
    if rounds == 0 and handler.rounds + 1 >= MAX_ROUNDS:
        done = noted(done, YIELDS)
    tx.journal.emit("workflow", {"type": "committed", "workflow": attempt.workflow, "run": attempt.id})
    return _save(tx, done, attempt)


def _own_handler(tx: Transaction, jobs: LockedJobs, attempt: WorkflowRun) -> HandlerRow | None:
    """Also one that the deployed version does not have any more."""
    found = next((handler for handler in jobs.handlers() if handler.name == attempt.handler), None)
    return found or tx.of(Workflows).handler(attempt.workflow, attempt.handler)


def _with_causes(topics: Topics, attempt: WorkflowRun, messages: Sequence[Message]) -> Sequence[Message]:
    """What names no input was caused by what caused the events that the run reserved."""
    if not attempt.reserved or all(message.inputs for message in messages):
        return messages
    causes = tuple(topics.causes_of_run(attempt.id))
    return [message._replace(inputs=message.inputs or causes) for message in messages]


def _keep(tx: Transaction, handler: HandlerRow, attempt: WorkflowRun, rounds: int, state: str) -> None:
    """Store what a handler has after a commit."""
    kept: dict[str, Any] = {
        "open_run": None, "wake_at": attempt.wake_at, "rounds": rounds, "seen": attempt.watermark, "fixes": 0,
        "state": state,
    }  # fmt: skip
    if handler.job_id is None:  # the deployed version does not have it any more
        tx.of(Workflows).change_handler(handler.workflow, handler.name, **kept)
    else:
        tx.of(Workflows).set_by_job(tuple(kept), [(handler.job_id, *kept.values())])


def _arm_again(tx: Transaction, context: Context, jobs: LockedJobs, attempt: WorkflowRun, due: Due) -> int:
    soon = due.at is not None and due.at <= tx.now
    reason = EVENT if soon or due.yields else WAKE_TIME
    set_alarm(tx, context, jobs, attempt.job_id, at=due.at, reason=reason)
    return due.rounds


class Failed(NamedTuple):
    """The stored part of a failure: the attempt, and when it is tried again (None: when a person has acted)."""

    attempt: WorkflowRun
    until: int | None


class Cause(NamedTuple):
    """Why an attempt failed."""

    failure: Failure
    message: str
    trace: str = ""  # through the author's code
    has_hook: bool = False  # a correction of the code can be asked for


def failed(tx: Transaction, context: Context, attempt: WorkflowRun, cause: Cause) -> Failed:
    """The attempt ends here for a while, or for a person; what may be done again is released."""
    fence_all(tx, attempt)
    failure = cause.failure
    row = tx.of(Workflows).lock(attempt.workflow)
    handler = tx.of(Workflows).handler(attempt.workflow, attempt.handler)
    if row is None or handler is None:
        raise Fenced
    begin = where_to_begin(attempt.phase, attempt.mutation, failure)
    if not keeps_reservations(begin):
        tx.of(Topics).release(attempt.id, tx.now)
    failures = row.failures + 1 if failure == "transient" else row.failures
    until = tx.now + backoff(failures) if failure == "transient" else None
    said = f"{cause.message}\n{cause.trace}".strip()
    is_hooked = failure == "logic" and cause.has_hook and handler.fixes < MAX_FIXES
    # A run that asks for approval has an alert of its own; what may be over by itself needs none yet.
    alert = failures == ATTENTION_AFTER if failure == "transient" else failure != "approval" and not is_hooked
    raise_issue(
        tx,
        context,
        attempt.workflow,
        Issue(failure, attempt.handler, attempt.id, said, until, alert),
        failures=failures,
    )
    return Failed(_save(tx, attempt._replace(status=STATUS[failure], error=cause.message), attempt), until)


def uncertain(tx: Transaction, context: Context, attempt: WorkflowRun, message: str, *, asks: bool) -> Failed:
    """It is unknown whether the mutation happened: reconcile is called now or later (`asks`), or a person decides."""
    fence_all(tx, attempt)
    until: int | None = None
    if asks:
        delay = 0 if attempt.begins != "reconcile" else reconcile_delay(attempt.tries)
        until = None if delay is None else max(tx.now + delay, attempt.reconcile_at or 0)
    issue = Issue("reconciliation", attempt.handler, attempt.id, message, until, alert=until is None)
    raise_issue(tx, context, attempt.workflow, issue)
    if until is not None:
        arm(tx, context, attempt.job_id, until, CONTINUED)
    saved = attempt._replace(status=STATUS["reconciliation"], error=message, reconcile_at=until)
    return Failed(_save(tx, saved, attempt), until)


def not_applied(tx: Transaction, context: Context, attempt: WorkflowRun) -> WorkflowRun:
    """Reconcile says that the mutation did not happen: a new run prepares it again, at once."""
    fence_all(tx, attempt)
    tx.of(Topics).release(attempt.id, tx.now)
    message = "the mutation did not happen"
    raise_issue(
        tx, context, attempt.workflow, Issue("transient", attempt.handler, attempt.id, message, None, alert=False)
    )
    arm(tx, context, attempt.job_id, tx.now, CONTINUED)
    saved = attempt._replace(status=STATUS["reconciliation"], mutation="none", reserved=0, error=message)
    return _save(tx, saved, attempt)


def _save(tx: Transaction, after: WorkflowRun, before: WorkflowRun) -> WorkflowRun:
    if not is_forward(before.phase, after.phase):
        message = f"{ids.run_text(after.id)} cannot go from {before.phase} to {after.phase}."
        raise RuntimeError(message)
    after = after._replace(updated_at=tx.now)
    tx.of(Workflows).save_run(after)
    return after


def noted(attempt: WorkflowRun, note: str | None) -> WorkflowRun:
    """The attempt with something that its author should know."""
    if note is None:
        return attempt
    return attempt._replace(notes=json.dumps([*json.loads(attempt.notes or "[]"), note]))


def as_json(value: Any, what: str) -> str:
    """The value as JSON, or LogicError."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"{what} must be JSON (texts, numbers, lists, maps): {error}."
        raise LogicError(message) from error
