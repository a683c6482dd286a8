"""The checkpoints of a run: each is one transaction, and none is taken for a run that another node took over.

A node that lost its run finds the job without it: the take-over locked the job's state, as every checkpoint does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.workflows.arming import CONTINUED, EVENT, WAKE_TIME, LockedJobs, arm, set_alarm
from wakeful.domains.workflows.drained import finish_drain
from wakeful.domains.workflows.failures import LogicError
from wakeful.domains.workflows.issues import Issue, raise_issue, resolve_issue
from wakeful.domains.workflows.phases import (
    COMMITTED,
    STATUS,
    Failure,
    is_forward,
    keeps_reservations,
    likely_verdict,
    where_to_begin,
)
from wakeful.domains.workflows.publishing import NewEvent, publish_numbered
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.timing import (
    ATTENTION_AFTER,
    MAX_FIXES,
    WakeTime,
    backoff,
    due_after_commit,
    reconcile_delay,
    within_a_day,
)
from wakeful.domains.workflows.topics.tables import InputRow, Topics
from wakeful.domains.workflows.turns.order import line_up
from wakeful.domains.workflows.turns.rounds import Round, end_round
from wakeful.domains.workflows.turns.tables import Turns
from wakeful.domains.workflows.words import LIKELY
from wakeful.domains.workflows.working import note_working
from wakeful.store.records import RunDetails

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobState


class Fenced(Exception):
    """The run is no longer this node's: nothing of it may be stored."""


class Outdated(Exception):
    """An event that prepare read is not as it was: it was replaced, or skipped by a person."""


class HandlerPlan(NamedTuple):
    """What prepare has decided besides its reservations."""

    wake: WakeTime
    approval: str | None  # the record of what was asked, with what the answer is about


class PendingWrites(NamedTuple):
    """What a handler published and registered, to be written with its commit."""

    messages: Sequence[NewEvent] = ()
    inputs: Sequence[InputRow] = ()


def fence(tx: Transaction, attempt: WorkflowRun) -> None:
    """Raise Fenced if the run is no longer the job's run; this holds until the transaction ends.

    Enough for what changes the attempt alone, and events: who publishes or skips those locks all jobs of the workflow.
    """
    _check_fence(attempt, tx.jobs.states([attempt.job_id]).get(attempt.job_id))


def fence_all(tx: Transaction, attempt: WorkflowRun, *, also: Sequence[str] = ()) -> LockedJobs:
    """The same, with all jobs of the workflow locked, and those of others: for what others of its handlers see."""
    if also:
        tx.of(WorkflowVerbs).lock_jobs(attempt.workflow, *also)
    jobs = LockedJobs(tx, attempt.workflow)
    _check_fence(attempt, jobs.state(attempt.job_id))
    return jobs


def _check_fence(attempt: WorkflowRun, state: JobState | None) -> None:
    if is_fenced(attempt, state):
        raise Fenced


def prepared(
    tx: Transaction,
    attempt: WorkflowRun,
    reserve: Mapping[str, Sequence[str]],
    read: Mapping[int, int],
    plan: HandlerPlan,
) -> WorkflowRun:
    """Reservations, data, wake time and what was approved are stored together, or none of them.

    What is reserved is what was `read`: Outdated where an event has another revision, or is not pending any more.
    """
    fence(tx, attempt)
    if plan.approval is not None:
        tx.runs.detail([RunDetails(attempt.id, approval=plan.approval)])
    wanted = [(topic, text) for topic, event_ids in reserve.items() for text in event_ids]
    numbers, hops = _reservable(tx, attempt, wanted, read) if wanted else ([], 0)
    tx.of(Topics).reserve(numbers, attempt.id)
    done = attempt._replace(phase="prepared", reserved=len(numbers), wake_at=plan.wake.at, hops=hops)
    return save_attempt(tx, noted(done, plan.wake.note), attempt)


def _reservable(
    tx: Transaction, attempt: WorkflowRun, wanted: Sequence[tuple[str, str]], read: Mapping[int, int]
) -> tuple[list[int], int]:
    """The numbers of events, each given with its topic, and their most hops; LogicError unless all are pending."""
    numbers = {text: number for _, text in wanted if (number := ids.number_of("evt", text)) is not None}
    places = tx.of(Topics).places(list(numbers.values()))
    for topic, text in wanted:
        number = numbers.get(text, -1)
        *place, revision, _ = places.get(number, ("", "", "", 0, 0))
        is_pending = place == [attempt.workflow, topic, "pending"]
        if number in read and place[:2] == [attempt.workflow, topic] and (not is_pending or read[number] != revision):
            message = f"{text} was {'changed' if is_pending else place[2]} while prepare ran"
            raise Outdated(message)
        if not is_pending:
            message = f"{attempt.handler} reserved {text!r:.80}, which is no pending event of the topic {topic}."
            raise LogicError(message)
    return list(numbers.values()), max((places[number][-1] for number in numbers.values()), default=0)


def in_flight(tx: Transaction, attempt: WorkflowRun) -> WorkflowRun:
    """The mutation is about to be called: from here on it may have happened."""
    fence(tx, attempt)
    fresh = attempt._replace(failure=None, refused=0, mutate_error=None)
    return save_attempt(tx, fresh._replace(phase="mutating", mutation="in_flight"), attempt)


def mutated(tx: Transaction, attempt: WorkflowRun, result: str) -> WorkflowRun:
    """The mutation happened, with this result."""
    fence(tx, attempt)
    return save_attempt(tx, attempt._replace(phase="mutated", mutation="applied", result=result, error=None), attempt)


def committed(
    tx: Transaction, context: Context, attempt: WorkflowRun, state: str | None, outgoing: PendingWrites
) -> WorkflowRun:
    """State, consumption and what was published become visible together; the next run is armed with them."""
    jobs = fence_all(tx, attempt)
    attempt = attempt._replace(wake_at=within_a_day(attempt.wake_at, tx.now))
    table, topics = tx.of(WorkflowVerbs), tx.of(Topics)
    handler = _own_handler(tx, jobs, attempt)
    row = table.take_numbers(attempt.workflow, len(outgoing.messages))
    if handler is None or row is None:
        raise Fenced
    subscribed = handler.topics()
    pending = bool(tx.of(Turns).oldest(attempt.workflow, subscribed))
    has_new_code = attempt.version != row.version  # it was deployed during this run, and may take what this run left
    looks_again = attempt.reserved > 0 or handler.dirty > attempt.watermark or has_new_code
    topics.add_inputs(outgoing.inputs)
    if outgoing.messages:
        sent = [message._replace(hops=attempt.hops) for message in outgoing.messages]
        messages = with_causes(topics, attempt, sent)
        made = publish_numbered(tx, context, jobs, messages, last=row.event_seq, run_id=attempt.id)
        changed = {sent.topic for one, sent in zip(made, messages, strict=True) if one.new or one.replaced}
        if not changed.isdisjoint(subscribed):
            pending = looks_again = True
    if attempt.reserved:
        topics.consume(attempt.id, now=tx.now)
    if handler.type == "consumer":
        at = due_after_commit(pending=pending, looks_again=looks_again, wake_at=attempt.wake_at, now=tx.now)
        reason = EVENT if at is not None and at <= tx.now else WAKE_TIME
        set_alarm(tx, context, jobs, attempt.job_id, at=at, reason=reason)
    ended = end_round(tx, jobs, attempt)
    line_up(tx, jobs)
    seen = 0 if pending and looks_again and _is_halted(jobs, attempt) else attempt.watermark
    _keep(tx, handler, attempt, ended, handler.state if state is None else state, seen=seen)
    if row.issue != "load":
        resolve_issue(tx, context, row)
    if row.draining:
        finish_drain(tx, attempt.workflow, but=attempt.id)
    done = noted(attempt._replace(phase="committed", status=COMMITTED, error=None), ended.note)
    tx.events.emit("workflow", {"type": "committed", "workflow": attempt.workflow, "run": attempt.id})
    return save_attempt(tx, done, attempt)


def _own_handler(tx: Transaction, jobs: LockedJobs, attempt: WorkflowRun) -> HandlerRow | None:
    """Also one that the deployed version does not have any more."""
    found = next((handler for handler in jobs.handlers() if handler.name == attempt.handler), None)
    return found or tx.of(WorkflowVerbs).handler(attempt.workflow, attempt.handler)


def with_causes(topics: Topics, attempt: WorkflowRun, messages: Sequence[NewEvent]) -> Sequence[NewEvent]:
    """What names no input was caused by what caused the events that the run reserved."""
    if not attempt.reserved or all(message.inputs for message in messages):
        return messages
    causes = tuple(topics.causes_of_run(attempt.id))
    return [message._replace(inputs=message.inputs or causes) for message in messages]


def _is_halted(jobs: LockedJobs, attempt: WorkflowRun) -> bool:
    """Whether no start of its job can be queued: what it leaves is looked at again when the job is resumed."""
    state = jobs.state(attempt.job_id)
    return state is not None and bool(state.paused or not state.enabled)


def _keep(tx: Transaction, handler: HandlerRow, attempt: WorkflowRun, ended: Round, state: str, *, seen: int) -> None:
    """Store what a handler has after a commit, and that the rounds of others are counted anew."""
    kept: dict[str, Any] = {
        "open_run": None, "wake_at": attempt.wake_at, "rounds": ended.made, "seen": seen, "fixes": 0,
        "state": state, "crashes": 0, "blamed": 0,
    }  # fmt: skip
    names = tuple(kept)
    rows = [(one.job_id, *(0 if name == "rounds" else getattr(one, name) for name in names)) for one in ended.anew]
    if handler.job_id is None:  # the deployed version does not have it any more
        tx.of(WorkflowVerbs).change_handler(handler.workflow, handler.name, **kept)
    else:
        rows.append((handler.job_id, *kept.values()))
    tx.of(WorkflowVerbs).set_by_job(names, rows)


class StoredFailure(NamedTuple):
    """The stored part of a failure: the attempt, and when it is tried again (None: when a person has acted)."""

    attempt: WorkflowRun
    until: int | None


class Cause(NamedTuple):
    """Why an attempt failed."""

    failure: Failure
    message: str
    trace: str = ""  # through the author's code
    has_hook: bool = False  # a correction of the code can be asked for


def failed(tx: Transaction, context: Context, attempt: WorkflowRun, cause: Cause) -> StoredFailure:
    """The attempt ends here for a while, or for a person; what may be done again is released."""
    fence_all(tx, attempt)
    failure = cause.failure
    row = tx.of(WorkflowVerbs).lock(attempt.workflow)
    handler = tx.of(WorkflowVerbs).handler(attempt.workflow, attempt.handler)
    if row is None or handler is None:
        raise Fenced
    note_working(tx, context, attempt.workflow, attempt.id)
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
    return StoredFailure(
        save_attempt(tx, attempt._replace(status=STATUS[failure], error=cause.message), attempt), until
    )


def uncertain(tx: Transaction, context: Context, attempt: WorkflowRun, message: str, *, asks: bool) -> StoredFailure:
    """It is unknown whether the mutation happened: reconcile is called now or later (`asks`), or a person decides."""
    fence_all(tx, attempt)
    note_working(tx, context, attempt.workflow, attempt.id)
    until: int | None = None
    if asks:
        delay = 0 if attempt.begins != "reconcile" else reconcile_delay(attempt.tries)
        until = None if delay is None else tx.now + delay
    likely = likely_verdict(attempt)
    said = f"{message}; {LIKELY[likely]}" if likely is not None else message
    trace = (attempt.mutate_error or "").partition("\n")[2]
    said = f"{said}\n{trace}".strip()
    issue = Issue("reconciliation", attempt.handler, attempt.id, said, until, alert=until is None, likely=likely)
    raise_issue(tx, context, attempt.workflow, issue)
    if until is not None:
        arm(tx, context, attempt.job_id, until, CONTINUED)
    saved = attempt._replace(status=STATUS["reconciliation"], error=message, reconcile_at=until)
    return StoredFailure(save_attempt(tx, saved, attempt), until)


def count_try(tx: Transaction, attempt: WorkflowRun) -> int:
    """Reconcile is about to be called: counted before, because a call that ends its process is a try as well."""
    fence(tx, attempt)
    tx.of(WorkflowVerbs).save_run(attempt._replace(tries=attempt.tries + 1, updated_at=tx.now))
    return attempt.tries + 1


def not_applied(tx: Transaction, context: Context, attempt: WorkflowRun) -> WorkflowRun:
    """A mutation that was cut off did not happen: it is prepared again, at once the first time and later the next."""
    fence_all(tx, attempt)
    row = tx.of(WorkflowVerbs).lock(attempt.workflow)
    if row is None:
        raise Fenced
    tx.of(Topics).release(attempt.id, tx.now)
    message = "the mutation did not happen"
    until = tx.now + backoff(row.failures) if row.failures else None
    failures = row.failures + 1
    issue = Issue("transient", attempt.handler, attempt.id, message, until, alert=failures == ATTENTION_AFTER)
    raise_issue(tx, context, attempt.workflow, issue, failures=failures)
    arm(tx, context, attempt.job_id, until or tx.now, CONTINUED)
    saved = attempt._replace(status=STATUS["reconciliation"], mutation="none", reserved=0, error=message)
    return save_attempt(tx, saved, attempt)


def save_attempt(tx: Transaction, after: WorkflowRun, before: WorkflowRun) -> WorkflowRun:
    """Write an attempt as it is from here on."""
    return save_attempts(tx, [(after, before)])[0]


def save_attempts(tx: Transaction, changed: Sequence[tuple[WorkflowRun, WorkflowRun]]) -> list[WorkflowRun]:
    """The same of several; each is given as it is from here on, and as it was."""
    for after, before in changed:
        if not is_forward(before.phase, after.phase):
            message = f"{ids.run_text(after.id)} cannot go from {before.phase} to {after.phase}."
            raise RuntimeError(message)
    saved = [after._replace(updated_at=tx.now) for after, _ in changed]
    tx.of(WorkflowVerbs).save_run(*saved)
    return saved


def is_fenced(attempt: WorkflowRun, state: JobState | None) -> bool:
    """Whether the run is no longer the job's run."""
    return state is None or state.run_id != attempt.id


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
