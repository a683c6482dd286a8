"""What workflows add to the engine's transactions: which start is allowed, where it begins, and what a crash means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.workflows.actions import record_answer
from wakeful.domains.workflows.admission import SKIP_REASONS, AdmissionWait, WorkflowState, may_start
from wakeful.domains.workflows.approving import only_approved
from wakeful.domains.workflows.arming import CONTINUED, OURS, arm, look_again
from wakeful.domains.workflows.cut_off import count_on, cut_off
from wakeful.domains.workflows.fixes.tables import Fixes
from wakeful.domains.workflows.issues import ALERT
from wakeful.domains.workflows.phases import (
    ACTIVE,
    COMMITTED,
    FAILURE_OF,
    REJECTED,
    STATUS,
    first_phase,
    keeps_reservations,
    where_to_begin,
)
from wakeful.domains.workflows.registry import registry_of
from wakeful.domains.workflows.removed import finish_removed, give_up
from wakeful.domains.workflows.steps.ending import cut_off_steps, rejected
from wakeful.domains.workflows.steps.places import STEPS
from wakeful.domains.workflows.steps.tables import ReadAhead
from wakeful.domains.workflows.steps.taking import go_on_with
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRow, WorkflowRun, WorkflowVerbs, output_of
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.domains.workflows.versions.on_nodes import version_words
from wakeful.domains.workflows.words import answer_commands
from wakeful.domains.workflows.working import look_for_end, may_work
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.kernel.engine.ending import drop_runs
from wakeful.kernel.hooks import Refused
from wakeful.kernel.rules.approval import approvals
from wakeful.kernel.rules.outcome import APPROVAL, from_return
from wakeful.store.records import RunDetails

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

OTHER_CODE = SKIP_REASONS["other_code"]
OTHER_CODE_MS = (100, 5_000)  # how soon a node with other code lets others look, first and at last
NO_CODE_MS = 60_000  # for so long nodes may come and go without an alert
MESSAGE_IDS_MS = 400 * 86_400_000


def admit(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
    """A start waits while its workflow is paused, stopped or blocked, and where its code is not known."""
    found = tx.of(ReadAhead).due(job.id, workflow_of(job), tx.now) or tx.of(WorkflowVerbs).of_job(job.id)
    if found is None:
        return Refused("no_workflow", SKIP_REASONS["no_workflow"])
    handler, workflow = found
    found = handler, look_for_end(tx, context, workflow)
    tx.of(WorkflowVerbs).admitted[job.id] = found
    wait = standing_of(tx, found)
    if wait is not None:
        return Refused(wait.reason, wait.detail, wait.until)
    known = registry_of(context.declared).get(workflow.name)
    if known is None or known[1] != workflow.version:
        return _leave_to_others(tx, context, job, state, workflow)
    if state.ready_at is not None and tx.now - state.ready_at >= NO_CODE_MS:
        close_alert(tx, context, "no_handler", job.id)
    return None


def workflow_of(job: JobDef) -> str:
    """The name of the workflow that a job belongs to."""
    return job.name.partition(".")[0]


def standing_of(tx: Transaction, found: tuple[HandlerRow, WorkflowRow]) -> AdmissionWait | None:
    """Why a handler may not start now, as its workflow stands; None when it may."""
    handler, workflow = found
    standing = WorkflowState(
        bool(workflow.paused),
        workflow.issue,
        workflow.issue_handler,
        workflow.backoff_until,
        bool(workflow.draining),
        may_work(tx, workflow),
    )
    if handler.type == STEPS:  # its places are no exception from what stops the workflow
        standing = standing._replace(issue_handler=None)
    brings_new = handler.type == "producer" and handler.open_run is None
    return may_start(standing, handler.name, tx.now, brings_new=brings_new)


def by_hand(tx: Transaction, job: JobDef) -> Refused | None:
    """A person starts nothing of a workflow that is paused, drains or has an issue."""
    found = tx.of(WorkflowVerbs).of_job(job.id)
    if found is None:
        return None
    handler, workflow = found
    own = workflow.issue_handler == handler.name and workflow.issue_run is not None
    if workflow.issue == "reconciliation" and workflow.backoff_until is None and own:
        [command] = answer_commands(workflow.name, ["settle"], ids.run_text(workflow.issue_run or 0))
        return Refused("blocked", f"whether its last change happened is not known: {command}")
    wait = standing_of(tx, found)
    if wait is None:
        return None
    verb = "resume" if wait.reason in ("paused", "draining") else "show"
    return Refused(wait.reason, f"{wait.detail} (wakeful workflow {verb} {found[1].name})")


def _leave_to_others(tx: Transaction, context: Context, job: JobDef, state: JobState, workflow: WorkflowRow) -> Refused:
    """This node has other code. One that has it should come next: so the job is due again soon, and ever later."""
    registry = registry_of(context.declared)
    known, since = registry.get(workflow.name), registry.refused_since(job.id, tx.now, state.last_run_at)
    waited, version = tx.now - since, workflow.version or "none"
    if waited >= NO_CODE_MS:
        nodes = version_words(tx, context.lease, workflow.name)
        message = f"{job.name} is due, and no running node has version {version} of its workflow: {nodes}"
        open_alert(tx, context, "no_handler", job.id, message, job_id=job.id)
    said = f"this node has version {known[1]} of its workflow, and {version} is deployed" if known else OTHER_CODE
    return Refused("other_code", said, tx.now + min(max(waited, OTHER_CODE_MS[0]), OTHER_CODE_MS[1]))


def claimed(tx: Transaction, context: Context, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    """Record the attempt: a fresh one, or one that continues the last, with what that has already done."""
    found = tx.of(WorkflowVerbs).admitted.pop(job.id, None) or tx.of(WorkflowVerbs).of_job(job.id)
    if found is None:
        return None
    handler, workflow = found
    table = tx.of(WorkflowVerbs)
    # A start that was claimed and given back before its handler was called has an attempt already.
    attempt, approved = table.run(run.id) if handler.open_run == run.id else None, None
    if attempt is None:
        attempt = _new_attempt(tx, (handler, workflow), job, run)
        approved = _inherit_approvals(tx, handler.open_run, run)
        table.add_run(attempt)
        table.set_by_job(("open_run",), [(job.id, run.id)])
    if workflow.issue == "approval":
        _approved(tx, context, workflow)
    return {"attempt": attempt._asdict(), "state": handler.state, "approvals": approved}


def _inherit_approvals(tx: Transaction, before: int | None, run: RunRow) -> str | None:
    """What was approved for the last attempt holds for the next, as far as that does the same.

    Runs that the engine continues have it already, and what a person starts is asked again.
    """
    if before is None or run.reason == "manual":
        return None
    details = tx.runs.details_of([before, run.id])
    known = {run_id: found.approval for run_id, found in details.items()}
    record = only_approved(known.get(before)) if known.get(run.id) is None else None
    if record is not None:
        tx.runs.detail([RunDetails(run.id, approval=record)])
    return record


def _new_attempt(tx: Transaction, parts: tuple[HandlerRow, WorkflowRow], job: JobDef, run: RunRow) -> WorkflowRun:
    handler, workflow = parts
    fresh = WorkflowRun(
        id=run.id, job_id=job.id, workflow=workflow.name, handler=handler.name, type=handler.type,
        retry_of=handler.open_run, version=workflow.version, phase="preparing", status=ACTIVE, mutation="none",
        begins="prepare", watermark=workflow.event_seq, created_at=tx.now, updated_at=tx.now,
    )  # fmt: skip
    before = tx.of(WorkflowVerbs).run(handler.open_run) if handler.open_run is not None else None
    if before is None:
        return fresh
    if handler.type == STEPS:
        return go_on_with(tx, fresh, before)
    begin = where_to_begin(before.phase, before.mutation, FAILURE_OF.get(before.status, "crashed"))
    if begin == "mutate" and handler.type == "producer":
        begin = "prepare"  # it was a consumer: the new code has no mutation to make
    if not keeps_reservations(begin):
        tx.of(Topics).release(before.id, tx.now)
        return fresh
    tx.of(Topics).hand_over(before.id, run.id)
    error = before.error if begin == "reconcile" else None  # why it is uncertain, until that is known
    return before._replace(
        id=run.id, job_id=job.id, retry_of=before.id, version=workflow.version, phase=first_phase(begin), status=ACTIVE,
        begins=begin, error=error, notes=None, created_at=tx.now, updated_at=tx.now,
    )  # fmt: skip


def ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """A run that ended before its attempt did was cut off: it is continued. A rejected one pauses its workflow."""
    if not tx.of(ReadAhead).is_over(run.id, workflow_of(job)):
        _ended(tx, context, job, run, result)


def _ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    attempt = tx.of(WorkflowVerbs).run(run.id)
    found = _parts_of(tx, attempt, job) if attempt is not None and attempt.status != COMMITTED else None
    if attempt is not None and attempt.status == STATUS["approval"]:
        record_answer(tx, context, attempt)
    if attempt is not None and found is not None:
        handler, workflow = found
        if attempt.type == STEPS:
            _ended_steps(tx, context, attempt, handler, result=result, run=run)
        elif attempt.status == ACTIVE:
            cut_off(tx, context, attempt, found, result=result, run=run)
        elif attempt.status == STATUS["approval"] and job.removed_at is not None:
            look_again(tx, handler.workflow)  # it is back, and asks again
        elif attempt.status == STATUS["approval"] and result.outcome == "cancelled":
            _rejected(tx, context, attempt, handler, why=result.error or "rejected")
        elif attempt.status == STATUS["approval"] and workflow.issue == "approval":
            _approved(tx, context, workflow)
        count_on(tx, handler)
    elif attempt is not None and attempt.status != COMMITTED:
        finish_removed(tx, context, attempt.workflow, attempt.handler, ended=run.id)
    if attempt is None or attempt.status != COMMITTED:  # a commit leaves one start, and its end adds none
        merge_waiting(tx, context, job)


def _ended_steps(
    tx: Transaction, context: Context, attempt: WorkflowRun, handler: HandlerRow, *, result: Result, run: RunRow
) -> None:
    """The end of a run of a handler with steps that had not said how it ends, or that asked a person."""
    if attempt.status == ACTIVE:
        cut_off_steps(tx, context, attempt, handler, result=result, run=run)
    elif attempt.status == STATUS["approval"] and result.outcome == "cancelled":
        rejected(tx, context, attempt, handler, why=result.error or "rejected")


def succeeded(tx: Transaction, run_ids: Sequence[int]) -> dict[int, Result]:
    """Those whose attempt is committed, whatever ended their process after that."""
    attempts = tx.of(WorkflowVerbs).runs_of(run_ids).values()
    made = {one.id: tx.of(Topics).count_made_by(one.id) for one in attempts if one.status == COMMITTED}
    return {one.id: from_return(output_of(one, made[one.id])) for one in attempts if one.id in made}


def _parts_of(tx: Transaction, attempt: WorkflowRun, job: JobDef) -> tuple[HandlerRow, WorkflowRow] | None:
    """The handler of an attempt, also one that was removed meanwhile and is back with another job."""
    found = tx.of(WorkflowVerbs).of_job(job.id)
    handler = tx.of(WorkflowVerbs).handler(attempt.workflow, attempt.handler) if found is None else None
    if handler is None or handler.job_id is None or handler.open_run != attempt.id:
        return found
    return tx.of(WorkflowVerbs).of_job(handler.job_id)


def _approved(tx: Transaction, context: Context, workflow: WorkflowRow) -> None:
    """A person has answered: the question is closed, and the next run continues."""
    tx.of(WorkflowVerbs).change(workflow.name, tx.now, issue="transient", issue_message="a person approved it")
    close_alert(tx, context, ALERT, workflow.name)


def _rejected(tx: Transaction, context: Context, attempt: WorkflowRun, handler: HandlerRow, *, why: str) -> None:
    """A person said no: what can be undone is, and nothing more happens until a person resumes the workflow.

    After a change that was made, its events are consumed, and what follows it is not done.
    """
    table = tx.of(WorkflowVerbs)
    begin = where_to_begin(attempt.phase, attempt.mutation, "crashed")
    if begin == "emit":
        details = tx.runs.details(attempt.id)
        answered = approvals(details.approval if details is not None else None)
        who = next((entry["by"] for entry in answered[-1:] if entry["by"]), "wakeful")  # itself: it was not answered
        became = give_up(tx, context, attempt._replace(error=why), why, who=who, status=REJECTED)
        why = f"{why}; {became}"
    else:
        tx.of(Topics).release(attempt.id, tx.now)
        table.save_run(attempt._replace(status=REJECTED, error=why, updated_at=tx.now))
    table.change_handler(handler.workflow, handler.name, open_run=None, seen=0)
    table.change(
        attempt.workflow, tx.now, paused=1, pause_note=why, issue=None, issue_handler=None, issue_run=None,
        issue_message=None, backoff_until=None,
    )  # fmt: skip
    close_alert(tx, context, ALERT, attempt.workflow)
    look_again(tx, attempt.workflow)
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
        deleted += tx.of(WorkflowVerbs).prune_runs(number, limit - deleted)
    if deleted < limit:
        deleted += tx.of(Fixes).prune(number, limit - deleted)
    if deleted < limit:
        deleted += tx.of(WorkflowVerbs).prune_actions(number, limit - deleted)
    if deleted < limit:
        # Counted from when the event was published: a sender that repeats an event does so within a year.
        oldest = ids.first_id_at(min(before, tx.now - MESSAGE_IDS_MS))
        deleted += tx.of(Topics).prune_messages(oldest, limit - deleted)
    return deleted


def thin(tx: Transaction, most: int, limit: int) -> int:
    """The same of what is more than so many."""
    tables = tx.tables
    deleted = tx.of(Topics).prune(tables.beyond_newest("workflow_events", "settled_at", most), limit)
    if deleted < limit:
        deleted += tx.of(Topics).prune_inputs(tables.beyond_newest("workflow_inputs", "id", most), limit - deleted)
    if deleted < limit:
        deleted += tx.of(WorkflowVerbs).prune_actions(
            tables.beyond_newest("workflow_actions", "id", most), limit - deleted
        )
    return deleted
