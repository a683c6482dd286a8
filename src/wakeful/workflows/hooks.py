"""What workflows add to the engine's transactions: which start is allowed, where it begins, and what a crash means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.kernel.engine.ending import drop_runs
from wakeful.kernel.kinds import Refused
from wakeful.kernel.rules.outcome import APPROVAL, FAILURES
from wakeful.workflows.admission import SKIP_REASONS, Standing, Wait, may_start
from wakeful.workflows.arming import CONTINUED, OURS, arm, look_again
from wakeful.workflows.fixes.tables import Fixes
from wakeful.workflows.issues import ALERT, Issue, raise_issue
from wakeful.workflows.phases import (
    ACTIVE,
    COMMITTED,
    CRASHED,
    FAILURE_OF,
    REJECTED,
    STATUS,
    first_phase,
    keeps_reservations,
    where_to_begin,
)
from wakeful.workflows.registry import registry_of
from wakeful.workflows.removed import finish_removed
from wakeful.workflows.tables import HandlerRow, WorkflowRow, WorkflowRun, Workflows
from wakeful.workflows.timing import ATTENTION_AFTER, MIN_WAKE_MS, backoff
from wakeful.workflows.topics.tables import Topics

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

OTHER_CODE_MS = (100, 5_000)  # how soon a node with other code lets others look, first and at last
NO_CODE_MS = 60_000  # for so long nodes may come and go without an alert
MESSAGE_IDS_MS = 400 * 86_400_000


def admit(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
    """A start waits while its workflow is paused, stopped or blocked, and where its code is not known."""
    found = tx.of(Workflows).of_job(job.id)
    if found is None:
        return Refused("no_workflow", SKIP_REASONS["no_workflow"])
    _, workflow = found
    tx.of(Workflows).admitted[job.id] = found
    wait = standing_of(tx, found)
    if wait is not None:
        return Refused(wait.reason, wait.detail, wait.until)
    known = registry_of(context.declared).get(workflow.name)
    if known is None or known[1] != workflow.version:
        return _leave_to_others(tx, context, job, state, workflow.version)
    if state.ready_at is not None and tx.now - state.ready_at >= NO_CODE_MS:
        close_alert(tx, context, "no_handler", job.id)
    return None


def standing_of(tx: Transaction, found: tuple[HandlerRow, WorkflowRow]) -> Wait | None:
    """Why a handler may not start now, as its workflow stands; None when it may."""
    handler, workflow = found
    standing = Standing(
        bool(workflow.paused), workflow.issue, workflow.issue_handler, workflow.backoff_until, bool(workflow.draining)
    )
    brings_new = handler.type == "producer" and handler.open_run is None
    return may_start(standing, handler.name, tx.now, brings_new=brings_new)


def by_hand(tx: Transaction, job: JobDef) -> Refused | None:
    """A person starts nothing of a workflow that is paused, drains or has an issue."""
    found = tx.of(Workflows).of_job(job.id)
    wait = standing_of(tx, found) if found is not None else None
    if found is None or wait is None:
        return None
    verb = "resume" if wait.reason in ("paused", "draining") else "show"
    return Refused(wait.reason, f"{wait.detail} (wakeful workflow {verb} {found[1].name})")


def _leave_to_others(tx: Transaction, context: Context, job: JobDef, state: JobState, version: str) -> Refused:
    """This node has other code. One that has it should come next: so the job is due again soon, and ever later."""
    since = registry_of(context.declared).refused_since(job.id, tx.now, state.last_run_at)
    waited = tx.now - since
    if waited >= NO_CODE_MS:
        message = f"{job.name} is due, and no running node has this version of its workflow: {version or 'none'}"
        open_alert(tx, context, "no_handler", job.id, message, job_id=job.id)
    return Refused(
        "other_code", SKIP_REASONS["other_code"], tx.now + min(max(waited, OTHER_CODE_MS[0]), OTHER_CODE_MS[1])
    )


def claimed(tx: Transaction, context: Context, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    """Record the attempt: a fresh one, or one that continues the last, with what that has already done."""
    found = tx.of(Workflows).admitted.pop(job.id, None) or tx.of(Workflows).of_job(job.id)
    if found is None:
        return None
    handler, workflow = found
    table = tx.of(Workflows)
    # A start that was claimed and given back before its handler was called has an attempt already.
    attempt = table.run(run.id) if handler.open_run == run.id else None
    if attempt is None:
        attempt = _new_attempt(tx, (handler, workflow), job, run)
        table.add_run(attempt)
        table.set_by_job(("open_run",), [(job.id, run.id)])
    if workflow.issue == "approval":
        _approved(tx, context, workflow)
    return {"attempt": attempt._asdict(), "state": handler.state}


def _new_attempt(tx: Transaction, parts: tuple[HandlerRow, WorkflowRow], job: JobDef, run: RunRow) -> WorkflowRun:
    handler, workflow = parts
    fresh = WorkflowRun(
        run.id, job.id, workflow.name, handler.name, handler.type, handler.open_run, workflow.version, "preparing",
        ACTIVE, "none", "prepare", workflow.event_seq, created_at=tx.now, updated_at=tx.now,
    )  # fmt: skip
    before = tx.of(Workflows).run(handler.open_run) if handler.open_run is not None else None
    if before is None:
        return fresh
    begin = where_to_begin(before.phase, before.mutation, FAILURE_OF.get(before.status, "crashed"))
    if begin == "mutate" and handler.type == "producer":
        begin = "prepare"  # it was a consumer: the new code has no mutation to make
    if not keeps_reservations(begin):
        tx.of(Topics).release(before.id, tx.now)
        return fresh
    tx.of(Topics).hand_over(before.id, run.id)
    error = before.error if begin == "reconcile" else None  # why it is uncertain, until that is known
    return before._replace(
        id=run.id, retry_of=before.id, version=workflow.version, phase=first_phase(begin), status=ACTIVE, begins=begin,
        error=error, notes=None, created_at=tx.now, updated_at=tx.now,
    )  # fmt: skip


def ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """A run that ended before its attempt did was cut off: it is continued. A rejected one pauses its workflow."""
    attempt = tx.of(Workflows).run(run.id)
    found = tx.of(Workflows).of_job(job.id) if attempt is not None and attempt.status != COMMITTED else None
    if attempt is not None and found is not None:
        handler, workflow = found
        if attempt.status == ACTIVE:
            _cut_off(tx, context, attempt, found, result=result, run=run)
        elif attempt.status == STATUS["approval"] and result.outcome == "cancelled":
            _rejected(tx, context, attempt, handler, why=result.error or "rejected")
        elif attempt.status == STATUS["approval"] and workflow.issue == "approval":
            _approved(tx, context, workflow)
    elif attempt is not None and attempt.status != COMMITTED:
        finish_removed(tx, context, attempt.workflow, attempt.handler, ended=run.id)
    if attempt is None or attempt.status != COMMITTED:  # a commit leaves one start, and its end adds none
        merge_waiting(tx, context, job)


def _approved(tx: Transaction, context: Context, workflow: WorkflowRow) -> None:
    """A person has answered: the question is closed, and the next run goes on."""
    tx.of(Workflows).change(workflow.name, tx.now, issue="transient", issue_message="approved, and going on")
    close_alert(tx, context, ALERT, workflow.name)


def _cut_off(
    tx: Transaction,
    context: Context,
    attempt: WorkflowRun,
    parts: tuple[HandlerRow, WorkflowRow],
    *,
    result: Result,
    run: RunRow,
) -> None:
    """The attempt has not said how it ended. One that a mistake of ours ended, or its time limit, is not hurried."""
    handler, workflow = parts
    begin = where_to_begin(attempt.phase, attempt.mutation, "crashed")
    why = result.error or "it was cut off"
    reconcile_at = attempt.reconcile_at
    if begin == "reconcile" and attempt.begins != "reconcile":
        gone = _is_gone(tx, context, run)
        reconcile_at = tx.now if gone else attempt.updated_at + handler.timeout
    if not keeps_reservations(begin):
        tx.of(Topics).release(attempt.id, tx.now)
    cut = attempt._replace(status=CRASHED, error=why, reconcile_at=reconcile_at, updated_at=tx.now)
    tx.of(Workflows).save_run(cut)
    kind = "reconciliation" if begin == "reconcile" else "transient"
    until = reconcile_at if begin == "reconcile" else None
    failures = workflow.failures
    if result.outcome in FAILURES:
        failures += 1
        until = max(until or 0, tx.now + backoff(failures))
    alert = failures == ATTENTION_AFTER and result.outcome in FAILURES
    issue = Issue(kind, handler.name, attempt.id, why, until, alert)
    raise_issue(tx, context, attempt.workflow, issue, failures=failures)
    by_hand = result.outcome == "cancelled" and not result.interrupted and begin == "prepare"
    again = until if result.outcome in FAILURES and until is not None else tx.now
    arm(tx, context, attempt.job_id, tx.now + MIN_WAKE_MS if by_hand else again, CONTINUED)


def _is_gone(tx: Transaction, context: Context, run: RunRow) -> bool:
    """Whether the process that ran it is known to be over, or has ended the call itself.

    Where nodes share the store, a node that is only silent may still be working. One that starts again under its name
    recovers its runs before it is on record as alive.
    """
    return tx.exclusive or run.node == context.id or tx.nodes.get(context.id) is None


def _rejected(tx: Transaction, context: Context, attempt: WorkflowRun, handler: HandlerRow, *, why: str) -> None:
    """A person said no: what can be undone is, and nothing more happens until a person resumes the workflow."""
    table = tx.of(Workflows)
    begin = where_to_begin(attempt.phase, attempt.mutation, "crashed")
    over = not keeps_reservations(begin)
    if over:
        tx.of(Topics).release(attempt.id, tx.now)
        table.change_handler(handler.workflow, handler.name, open_run=None, seen=0)
    status = REJECTED if over else CRASHED
    table.save_run(attempt._replace(status=status, error=why, updated_at=tx.now))
    table.change(
        attempt.workflow, tx.now, paused=1, pause_note=why, issue=None, issue_handler=None, issue_run=None,
        issue_message=None, backoff_until=None,
    )  # fmt: skip
    close_alert(tx, context, ALERT, attempt.workflow)
    look_again(tx, [one.job_id for one in table.handlers(attempt.workflow) if one.job_id is not None])
    arm(tx, context, attempt.job_id, tx.now, CONTINUED)


def merge_waiting(tx: Transaction, context: Context, job: JobDef) -> None:
    """One start is enough: where several wait for the same handler, the one that continues a run stays, or the first.

    What was approved goes before an event that came meanwhile: otherwise that start continues the run, unapproved.
    """
    state = tx.jobs.states([job.id]).get(job.id)
    if state is None or state.queued < 2:
        return
    waiting = [run for run in tx.runs.open(job.id) if run.status == "queued" and run.reason in (*OURS, APPROVAL)]
    waiting.sort(key=lambda run: (run.reason not in (APPROVAL, "retry", "recovery"), run.due_at, run.id))
    extra = waiting[1:]
    if not extra:
        return
    earliest = min(run.due_at for run in waiting)
    tx.runs.reschedule(waiting[0].id, earliest)
    tx.jobs.save([state._replace(queued=state.queued - len(extra))])
    drop_runs(tx, context, job, extra, f"merged with {ids.run_text(waiting[0].id)}")


def prune(tx: Transaction, before: int, limit: int) -> int:
    """Delete what is consumed and over, and that no run needs."""
    number = ids.first_id_at(before)
    deleted = tx.of(Topics).prune(before, limit)
    if deleted < limit:
        deleted += tx.of(Topics).prune_inputs(number, limit - deleted)
    if deleted < limit:
        deleted += tx.of(Workflows).prune_runs(number, limit - deleted)
    if deleted < limit:
        deleted += tx.of(Fixes).prune(number, limit - deleted)
    if deleted < limit:
        # Counted from when the event was published: a sender that repeats an event does so within a year.
        oldest = ids.first_id_at(min(before, tx.now - MESSAGE_IDS_MS))
        deleted += tx.of(Topics).prune_messages(oldest, limit - deleted)
    return deleted
