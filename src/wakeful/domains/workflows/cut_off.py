"""Attempts that ended before they had said how: what is released, when they continue, and who ended the process.

A handler that ends its process again and again is found as any job is: from the second crash on it waits by the
engine's ladder, and when it alone can have done it so many times, its workflow is stopped. Counted from commit to
commit: what a run finds out about a mutation in between, or puts off, does not make the handler harmless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wakeful.counting import counted
from wakeful.domains.workflows.arming import CONTINUED, arm, first_waiting
from wakeful.domains.workflows.issues import Issue, raise_issue
from wakeful.domains.workflows.phases import CRASHED, keeps_reservations, where_to_begin, why_uncertain
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.timing import (
    ATTENTION_AFTER,
    MAX_CRASHES,
    MIN_WAKE_MS,
    RECONCILE_TRIES,
    backoff,
    reconcile_delay,
)
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.domains.workflows.working import note_working
from wakeful.kernel.rules.outcome import FAILURES

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import RunRow


class _Next(NamedTuple):
    """What becomes of an attempt that was cut off."""

    issue: Issue
    again: int  # when it continues
    failures: int  # of its workflow, in a row


def cut_off(
    tx: Transaction,
    context: Context,
    attempt: WorkflowRun,
    parts: tuple[HandlerRow, WorkflowRow],
    *,
    result: Result,
    run: RunRow,
) -> None:
    """Record that the attempt has not said how it ended, and let another one continue."""
    handler, workflow = parts
    note_working(tx, context, attempt.workflow, attempt.id)
    begin = where_to_begin(attempt.phase, attempt.mutation, "crashed")
    if not keeps_reservations(begin):
        tx.of(Topics).release(attempt.id, tx.now)
    why = why_uncertain(attempt, result.error or "it was cut off")
    cut = attempt._replace(status=CRASHED, error=why, updated_at=tx.now)
    if begin == "reconcile":
        cut = cut._replace(reconcile_at=_reconcile_at(tx, context, attempt, handler, run=run, result=result))
    if result.outcome == "crashed":
        cut, following = _crashed(tx, handler, workflow, cut, blamed=result.blamed)
    else:
        following = _failed(tx, handler, workflow, cut, result)
    tx.of(WorkflowVerbs).save_run(cut)
    raise_issue(tx, context, attempt.workflow, following.issue, failures=following.failures)
    if handler.job_id is not None:
        arm(tx, context, handler.job_id, following.again, CONTINUED)


def _crashed(
    tx: Transaction, handler: HandlerRow, workflow: WorkflowRow, cut: WorkflowRun, *, blamed: bool
) -> tuple[WorkflowRun, _Next]:
    """Its process ended. The engine has queued the next start: at once, or by its ladder."""
    state = tx.jobs.states([cut.job_id])[cut.job_id]
    waiting = first_waiting(tx, state)
    again = waiting.due_at if waiting is not None else tx.now
    count = handler.blamed + blamed
    tx.of(WorkflowVerbs).change_handler(handler.workflow, handler.name, crashes=state.crashes, blamed=count)
    uncertain = where_to_begin(cut.phase, cut.mutation, "crashed") == "reconcile"
    if count < MAX_CRASHES:
        until = max(again, cut.reconcile_at or 0) if uncertain else again
        kind = "reconciliation" if uncertain else "transient"
        wait = until if uncertain or until > tx.now else None
        issue = Issue(kind, handler.name, cut.id, cut.error or "", wait, alert=False)
        return cut, _Next(issue, max(again, until), workflow.failures)
    message = why_uncertain(cut, f"it ended its process {counted(count, 'time')} in a row")
    cut = cut._replace(error=message)
    if uncertain:  # the next run calls nothing: it asks a person what became of the mutation
        cut = cut._replace(tries=RECONCILE_TRIES)
        issue = Issue("reconciliation", handler.name, cut.id, message, cut.reconcile_at, alert=False)
        return cut, _Next(issue, max(tx.now, cut.reconcile_at or 0), workflow.failures)
    return cut, _Next(Issue("logic", handler.name, cut.id, message, None), again, workflow.failures)


def _failed(tx: Transaction, handler: HandlerRow, workflow: WorkflowRow, cut: WorkflowRun, result: Result) -> _Next:
    """It was cancelled or interrupted; what a mistake of ours ended, or its time limit, is not hurried."""
    begin = where_to_begin(cut.phase, cut.mutation, "crashed")
    uncertain, is_failure, failures = begin == "reconcile", result.outcome in FAILURES, workflow.failures
    until = cut.reconcile_at if uncertain else None
    if is_failure:
        failures += 1
        until = max(until or 0, tx.now + backoff(failures))
    kind, alert = "reconciliation" if uncertain else "transient", is_failure and failures == ATTENTION_AFTER
    issue = Issue(kind, handler.name, cut.id, cut.error or "", until, alert)
    again = until if is_failure and until is not None else tx.now
    by_hand = result.outcome == "cancelled" and not result.interrupted and begin == "prepare"
    return _Next(issue, tx.now + MIN_WAKE_MS if by_hand else again, failures)


def count_on(tx: Transaction, handler: HandlerRow) -> None:
    """A run that ended without a commit changes nothing about the crashes in a row."""
    if not handler.crashes or handler.job_id is None:
        return
    state = tx.jobs.states([handler.job_id])[handler.job_id]
    if state.crashes < handler.crashes:
        tx.jobs.save([state._replace(crashes=handler.crashes)])


def forget_crashes(tx: Transaction, handler: HandlerRow) -> None:
    """A person lets it continue: what it did before is not counted any more."""
    if not handler.crashes or handler.job_id is None:
        return
    tx.of(WorkflowVerbs).change_handler(handler.workflow, handler.name, crashes=0, blamed=0)
    state = tx.jobs.states([handler.job_id])[handler.job_id]
    tx.jobs.save([state._replace(crashes=0, errors=0)])


def _reconcile_at(
    tx: Transaction, context: Context, attempt: WorkflowRun, handler: HandlerRow, *, run: RunRow, result: Result
) -> int | None:
    """When reconcile may be called: not before the mutation is known to have ended, and ever later where it fails."""
    if attempt.begins == "reconcile":
        has_failed = result.outcome in FAILURES or result.outcome == "crashed"
        delay = reconcile_delay(attempt.tries) if attempt.tries and has_failed else None
        return attempt.reconcile_at if delay is None else tx.now + delay
    began = min(attempt.updated_at, tx.now)  # later only where the clock was set back
    return tx.now if _is_gone(tx, context, run) else began + handler.timeout


def _is_gone(tx: Transaction, context: Context, run: RunRow) -> bool:
    """Whether the process that ran it is known to be over, or has ended the call itself.

    Where nodes share the store, a node that is only silent may still be working. One that starts again under its name
    recovers its runs before it is on record as alive.
    """
    return tx.exclusive or run.node == context.id or tx.nodes.get(context.id) is None
