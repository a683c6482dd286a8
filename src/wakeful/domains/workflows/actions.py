"""What people do to workflows: run, pause, resume, settle, approve, reject. Each is one transaction, and on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.workflows.arming import CONTINUED, arm, first_waiting, look_again
from wakeful.domains.workflows.checkpoints import as_json
from wakeful.domains.workflows.cut_off import forget_crashes
from wakeful.domains.workflows.deploying import remove_workflow
from wakeful.domains.workflows.failures import LogicError
from wakeful.domains.workflows.fixes.deciding import decide, lapse, proposed_for
from wakeful.domains.workflows.issues import Issue, halted_job, raise_issue, resolve_issue
from wakeful.domains.workflows.lookup import find_attempt, find_listed, find_workflow, in_progress
from wakeful.domains.workflows.phases import ACTIVE, STATUS, VERDICTS, settled_mutation
from wakeful.domains.workflows.removed import finish_removed, uncertain_changes
from wakeful.domains.workflows.steps.people import settle_step
from wakeful.domains.workflows.steps.places import STEPS
from wakeful.domains.workflows.tables import HandlerRow, WorkflowAction, WorkflowRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.domains.workflows.words import ONCE_ENDED, answer_commands, asks_itself, issue_words
from wakeful.domains.workflows.working import forget_stopped, still_works
from wakeful.errors import InvalidJob, ScheduleTriggerError
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.actions.recording import Origin, keep
from wakeful.kernel.rules.approval import approvals
from wakeful.kernel.rules.outcome import Result, clean
from wakeful.store.actions import SubjectChange

if TYPE_CHECKING:
    from wakeful.domains.workflows.fixes.tables import FixRow
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobState

MAX_NOTE = 2_000
LONGEST_CHAIN = 100
#: What pausing, draining and resuming change of a workflow.
STANDING = ("paused", "pause_note", "draining")


def record(
    tx: Transaction, context: Context, workflow: str, *, who: str, action: str, detail: str | None = None
) -> int:
    """Keep what a person did; its number."""
    said, number = clean(detail)[:MAX_NOTE] if detail else None, context.new_id()
    tx.of(WorkflowVerbs).record(WorkflowAction(number, workflow, tx.now, clean(who)[:200], action, said))
    tx.events.emit("workflow", {"type": action, "workflow": workflow, "by": clean(who)[:200]})
    return number


def keep_change(tx: Transaction, row: WorkflowRow, number: int, origin: Origin, what: str) -> str | None:
    """Record the earlier state of a workflow; returns the action to undo, if it stands otherwise than before.

    Another note alone is nothing to undo.
    """
    left = find_workflow(tx, row.name)
    before, after = (tuple(getattr(found, name) for name in STANDING) for found in (row, left))
    changed = (row.paused, row.draining) != (left.paused, left.draining)
    changes = [SubjectChange(number, row.name, STANDING, before, after)] if changed else []
    return keep(tx, origin, what, changes)


def run_now(tx: Transaction, context: Context, name: str, *, who: str) -> list[str]:
    """Queue all producers, one after the other; their runs. Refused while a run is active or the workflow stands."""
    row = locked(tx, name)
    about: dict[str, Any] = {"workflow": name}
    if row.paused or row.draining:
        message = (
            f"{name} is {'paused' if row.paused else 'draining'}: resume it first (wakeful workflow resume {name})."
        )
        raise ScheduleTriggerError(message, {**about, "reason": "paused"})
    if row.issue is not None:
        words = issue_words(
            row.issue, row.issue_handler, row.issue_message, halted=halted_job(tx, row), asks=asks_itself(row),
            again=ONCE_ENDED if still_works(tx, row) else "soon",
        )  # fmt: skip
        message = f"{name} cannot run. {words}"
        message = f"{message.rstrip('.')} (wakeful workflow show {name})."
        raise ScheduleTriggerError(message, {**about, "reason": row.issue})
    handlers = tx.of(WorkflowVerbs).handlers(name)
    states = tx.jobs.states([handler.job_id for handler in handlers if handler.job_id is not None])
    running = [one.name for one in handlers if one.job_id is not None and states[one.job_id].run_id is not None]
    for handler in [*running, *(attempt.handler for attempt in in_progress(tx, name))]:
        message = f"{name}.{handler} is running: wait until it has ended."
        raise ScheduleTriggerError(message, {**about, "reason": "already_running"})
    producers = [handler for handler in handlers if handler.type == "producer"]
    runs = [_queue(tx, context, producer, states) for producer in producers]
    record(tx, context, name, who=who, action="run")
    return [ids.run_text(run_id) for run_id in runs]


def _queue(tx: Transaction, context: Context, producer: HandlerRow, states: Mapping[int, JobState]) -> int:
    """Start a producer now; at most one start of it waits, so one that does is this one."""
    state = states.get(producer.job_id or 0)
    waiting = first_waiting(tx, state) if state is not None else None
    if state is None or waiting is None:
        return run_actions.run_now(tx, context, f"{producer.workflow}.{producer.name}")
    if waiting.due_at > tx.now:
        tx.runs.reschedule(waiting.id, tx.now)
        look_again(tx, producer.workflow)
    return waiting.id


def pause(
    tx: Transaction, context: Context, name: str, *, who: str, origin: Origin | None = None, note: str | None = None
) -> str | None:
    """Pause the workflow; the run in progress ends, and what is due meanwhile waits.

    The action by which that can be undone, where it was not paused like that already.
    """
    row = locked(tx, name)
    kept = clean(note)[:MAX_NOTE] if note else None
    if row.paused and kept in (None, row.pause_note):
        return None
    tx.of(WorkflowVerbs).change(name, tx.now, paused=1, pause_note=kept, draining=0)
    number = record(tx, context, name, who=who, action="paused", detail=note)
    return keep_change(tx, row, number, origin or Origin(who, "code", context.new_id()), "pause_workflow")


def resume(tx: Transaction, context: Context, name: str, *, who: str, origin: Origin | None = None) -> str | None:
    """Continue: what waited starts, and a run that failed for a mistake in the code is tried again.

    The action by which the workflow is paused again, where it was paused.
    """
    row = locked(tx, name)
    table = tx.of(WorkflowVerbs)
    if row.issue == "load":
        said = (row.issue_message or "").partition("\n")[0]
        message = f"{name} cannot be loaded: {said}. Correct its file, and apply the configuration."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "load"})
    table.change(name, tx.now, paused=0, pause_note=None, draining=0)
    if row.issue in ("logic", "internal"):
        lapse(tx, name)
        if row.issue_handler is not None:
            table.change_handler(name, row.issue_handler, fixes=0)
        resolve_issue(tx, context, row)
    elif row.issue == "transient":
        table.change(name, tx.now, backoff_until=None)
    elif row.issue == "reconciliation" and row.backoff_until is not None and row.issue_run is not None:
        attempt = table.run(row.issue_run)  # after a crash it waits longer than reconcile asks for
        if attempt is not None and attempt.reconcile_at is not None:
            table.change(name, tx.now, backoff_until=attempt.reconcile_at)
    for handler in table.handlers(name):
        forget_crashes(tx, handler)
    go_on(tx, context, name)
    number = record(tx, context, name, who=who, action="resumed")
    return keep_change(tx, row, number, origin or Origin(who, "code", context.new_id()), "resume_workflow")


def go_on(tx: Transaction, context: Context, name: str) -> None:
    """Let what waited start."""
    handlers = tx.of(WorkflowVerbs).handlers(name)
    for handler in handlers:
        if handler.job_id is not None and (handler.open_run is not None or handler.dirty > handler.seen):
            arm(tx, context, handler.job_id, tx.now, CONTINUED)
    look_again(tx, name)


def remove(tx: Transaction, context: Context, name: str, *, who: str, note: str | None = None) -> list[str]:
    """Take a workflow out of service, wherever it came from; the runs that may have changed something: to be settled.

    A server that has its code deploys it again when it starts.
    """
    locked(tx, name)
    remove_workflow(tx, context, name)
    record(tx, context, name, who=who, action="removed", detail=note)
    return [ids.run_text(attempt.id) for attempt in uncertain_changes(tx, name)]


def approve(tx: Transaction, context: Context, name: str, ref: str, *, who: str, note: str | None = None) -> str | None:
    """Approve a run that asked, or the correction of one that failed; the run that continues, if it is known."""
    find_listed(tx, name)
    attempt = find_attempt(tx, name, ref)
    fix = proposed_for(tx, name, attempt.id)
    if fix is not None:
        decide(tx, name, fix, accepted=True, who=who)
        record(tx, context, name, who=who, action="fix_approved", detail=_about_fix(fix, note))
        return None
    _refuse_uncertain(attempt)
    return ids.run_text(run_actions.approve_run(tx, context, attempt.id, who, note))


def _refuse_uncertain(attempt: WorkflowRun) -> None:
    """Yes or no is no answer to whether a change happened."""
    if attempt.status == STATUS["reconciliation"] and attempt.mutation == "in_flight":
        run = ids.run_text(attempt.id)
        [command] = answer_commands(attempt.workflow, ["settle"], run)
        message = f"{run} does not wait for approval. It is not known whether its change happened: {command}."
        raise ScheduleTriggerError(message, {"workflow": attempt.workflow, "run": run, "reason": "no_question"})


def _about_fix(fix: FixRow, note: str | None) -> str:
    text = ids.encode("fix", fix.id)
    return f"{text}: {note}" if note else text


def reject(tx: Transaction, context: Context, name: str, ref: str, *, who: str, note: str | None = None) -> None:
    """Reject a run that asked: what it reserved is released, and the workflow is paused. Or reject a correction."""
    find_listed(tx, name)
    attempt = find_attempt(tx, name, ref)
    fix = proposed_for(tx, name, attempt.id)
    if fix is not None:
        decide(tx, name, fix, accepted=False, who=who)
        record(tx, context, name, who=who, action="fix_rejected", detail=_about_fix(fix, note))
        return
    _refuse_uncertain(attempt)
    run_actions.reject_run(tx, context, attempt.id, who, note)


def record_answer(tx: Transaction, context: Context, attempt: WorkflowRun) -> None:
    """Keep what a person answered to a run that asked, whichever way it was answered."""
    details = tx.runs.details(attempt.id)
    entries = approvals(details.approval) if details is not None else []
    if entries and entries[-1]["verdict"] is not None:
        said = entries[-1]
        record(tx, context, attempt.workflow, who=said["by"], action=said["verdict"], detail=said["note"])


def settle(
    tx: Transaction,
    context: Context,
    name: str,
    ref: str,
    verdict: str,
    *,
    who: str,
    result: Any = None,
    note: str | None = None,
) -> None:
    """Say whether an uncertain mutation happened: it happened, it did not, or it is to be skipped."""
    if verdict not in VERDICTS:
        message = f"A verdict is one of {', '.join(VERDICTS)}, not {verdict!r:.80}."
        raise InvalidJob(message)
    row = locked(tx, name, find_listed)
    asked = find_attempt(tx, name, ref)
    if asked.type == STEPS:
        try:
            text = as_json(result, "The result") if verdict == "happened" else None
        except LogicError as error:
            raise InvalidJob(str(error)) from error
        settle_step(tx, context, asked, verdict, who=who, result=text)
        record(tx, context, name, who=who, action="settled", detail=f"{verdict}: {note}" if note else verdict)
        return
    handler, attempt = _uncertain(tx, asked)
    if verdict == "did_not_happen":
        _refuse_unended(tx, attempt)
    try:
        text = as_json(result, "The result") if verdict == "happened" else None
    except LogicError as error:
        raise InvalidJob(str(error)) from error
    settled = attempt._replace(
        mutation=settled_mutation(verdict), result=text, status=STATUS["reconciliation"], reconcile_at=None,
        updated_at=tx.now,
    )  # fmt: skip
    if verdict == "did_not_happen":
        tx.of(Topics).release(attempt.id, tx.now)
        settled = settled._replace(reserved=0)
    tx.of(WorkflowVerbs).save_run(settled)
    forget_stopped(tx, row)
    forget_crashes(tx, handler)
    said = f"{who} settled {ids.run_text(attempt.id)} as {verdict}"
    raise_issue(tx, context, name, Issue("transient", handler.name, attempt.id, said, None, alert=False))
    waiting = tx.runs.get(attempt.id)
    if waiting is not None and waiting.status == "waiting":
        run_actions.end_waiting(tx, context, attempt.id, Result("deferred", error=said))
    if handler.job_id is not None:
        arm(tx, context, handler.job_id, tx.now, CONTINUED)
    finish_removed(tx, context, name, handler.name)
    record(tx, context, name, who=who, action="settled", detail=f"{verdict}: {note}" if note else verdict)


def _refuse_unended(tx: Transaction, attempt: WorkflowRun) -> None:
    """What still works may yet happen."""
    row = tx.of(WorkflowVerbs).get(attempt.workflow)
    if row is not None and still_works(tx, row):
        run = ids.run_text(attempt.id)
        message = (
            f"{run} was cut off, and a thread or program of it is still at work: wait until it has ended, or end its "
            "server."
        )
        raise ScheduleTriggerError(message, {"workflow": attempt.workflow, "run": run, "reason": "still_working"})


def _uncertain(tx: Transaction, asked: WorkflowRun) -> tuple[HandlerRow, WorkflowRun]:
    """The handler, and the latest attempt of the chain the run belongs to, whose mutation is uncertain."""
    table = tx.of(WorkflowVerbs)
    handler = table.handler(asked.workflow, asked.handler)
    latest = table.run(handler.open_run) if handler is not None and handler.open_run is not None else None
    about = {"workflow": asked.workflow, "run": ids.run_text(asked.id)}
    if handler is None or latest is None or not _continues(tx, latest, asked.id) or latest.mutation != "in_flight":
        message = f"{ids.run_text(asked.id)} has no mutation to settle: it was settled before, or never uncertain."
        raise ScheduleTriggerError(message, {**about, "reason": "settled"})
    if latest.status == ACTIVE:
        message = f"{ids.run_text(latest.id)} is just finding out by itself: try again when it has ended."
        raise ScheduleTriggerError(message, {**about, "reason": "already_running"})
    return handler, latest


def _continues(tx: Transaction, latest: WorkflowRun, run_id: int) -> bool:
    """Whether the run is the latest attempt, or one whose mutation that one is finding out about.

    What was tried before that is another change: an answer about it says nothing about this one.
    """
    found: WorkflowRun | None = latest
    for _ in range(LONGEST_CHAIN):
        if found is None or found.id == run_id:
            return found is not None
        goes_on = found.begins == "reconcile" and found.retry_of is not None
        found = tx.of(WorkflowVerbs).run(found.retry_of or 0) if goes_on else None
    return False


def locked(tx: Transaction, name: str, find: Callable[[Transaction, str], WorkflowRow] = find_workflow) -> WorkflowRow:
    """A workflow that no other transaction changes until this one ends."""
    find(tx, name)
    tx.of(WorkflowVerbs).lock_jobs(name)
    tx.of(WorkflowVerbs).lock(name)
    return find(tx, name)
