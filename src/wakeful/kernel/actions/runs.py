"""What people and programs do to runs: start one, try one again, cancel it, complete it, approve it, release it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from wakeful import ids
from wakeful.errors import ScheduleTriggerError, StartRefused
from wakeful.kernel.actions.drafts import check_payload
from wakeful.kernel.actions.holding import refuse_held
from wakeful.kernel.actions.lookup import find_job, find_run
from wakeful.kernel.actions.proposing import Decision, answer_proposal
from wakeful.kernel.context import Context
from wakeful.kernel.engine.ending import PROPOSED, count_dropped, drop_runs, free_lanes, queue_runs
from wakeful.kernel.engine.turn import FinishedRun, as_reported, settle_all
from wakeful.kernel.rules.approval import APPROVAL, APPROVED, REJECTED, approvals, decided
from wakeful.kernel.rules.outcome import Result, after
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState, RunDetails, RunRow, SkipRow

OF_ITSELF = ("schedule", "catch_up", "retry", "recovery")
"""Why runs start that nobody asked for."""

# -- starting and trying again by hand ---------------------------------------------------------------------------------


def run_now(tx: Transaction, context: Context, ref: str, payload: Any = None) -> int:
    """Ask for a start now, through the same admission; the id of the run that will be. Refused while one runs.

    A job that is over may be started by hand, one that was disabled may not.
    """
    job, state = find_job(tx, ref)
    refuse_start_by_hand(tx, context, (job, state))
    run = RunRow.queued(context.new_id(), job, "manual", tx.now)
    tx.runs.add([run])
    if payload is not None:
        text = check_payload(payload, context.declared.declared(job.kind))
        tx.runs.detail([RunDetails(run.id, payload=text)])
    _wake(tx, state)
    return run.id


def refuse_start_by_hand(tx: Transaction, context: Context, pair: tuple[JobDef, JobState]) -> None:
    """ScheduleTriggerError or StartRefused unless a person can start the job now."""
    job, state = pair
    _refuse_unstartable(context, job)
    _refuse_busy(tx, context, job, state)
    if not state.enabled and state.ended_at is None:
        message = f"{job.name} is disabled: resume it first."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "disabled"})
    _refuse_start(tx, context, job)


def run_alone_now(tx: Transaction, context: Context, ref: str, payload: Any = None) -> int:
    """The run for a process that runs this job and nothing else: one that was asked for and waits, else a new one."""
    job, state = find_job(tx, ref)
    waits = state.queued and state.run_id is None and state.enabled and payload is None
    asked = [run for run in tx.runs.open(job.id) if run.reason not in OF_ITSELF] if waits else []
    if not asked:
        return run_now(tx, context, ref, payload)
    _refuse_start(tx, context, job)
    tx.jobs.save([state._replace(due_at=None if state.parked is not None else tx.now)])
    return asked[0].id


def retry_run(tx: Transaction, context: Context, run_id: int) -> int:
    """Try again what a finished run did not do; the id of the new run."""
    job, state, run = find_run(tx, run_id)
    about = {"job": job.name, "run": ids.run_text(run_id)}
    if job.removed_at is not None:
        message = f"{job.name} was removed: its runs cannot be tried again."
        raise ScheduleTriggerError(message, {**about, "reason": "removed"})
    _refuse_unstartable(context, job)
    if run.status != "done":
        message = f"{ids.run_text(run_id)} is {run.status}: only a finished run can be tried again."
        raise ScheduleTriggerError(message, {**about, "reason": "already_running"})
    successor = tx.runs.successor(run_id)
    if successor is not None:
        message = f"{ids.run_text(run_id)} was already tried again as {ids.run_text(successor)}."
        raise ScheduleTriggerError(message, {**about, "reason": "already_retried"})
    _refuse_busy(tx, context, job, state)
    _refuse_start(tx, context, job)
    _check_own_payload(tx, context, job, run)
    again = RunRow.again(context.new_id(), run, "manual", tx.now)._replace(kind=job.kind, caused_by=None)
    queue_runs(tx, [again])
    _wake(tx, state)
    return again.id


def _check_own_payload(tx: Transaction, context: Context, job: JobDef, run: RunRow) -> None:
    """What the run was given is given again: it must suit the kind that its job is of now."""
    details = tx.runs.details(run.id) if run.kind != job.kind else None
    if details is not None and details.payload is not None:
        check_payload(json.loads(details.payload), context.declared.declared(job.kind))


def _refuse_busy(tx: Transaction, context: Context, job: JobDef, state: JobState) -> None:
    if state.run_id is not None:
        current = ids.run_text(state.run_id)
        run = tx.runs.get(state.run_id)
        if run is not None and run.status == "waiting" and run.phase == APPROVAL:
            message = (
                f"{job.name} waits for approval ({current}): approve it (wakeful approve {current}) or reject it "
                f"(wakeful reject {current}) first."
            )
            raise ScheduleTriggerError(message, {"job": job.name, "reason": APPROVAL, "run": current})
        if run is not None and run.status == "waiting":
            _refuse_start(tx, context, job)  # its kind may know what it waits for
        message = f"{job.name} is already running ({current}): wait for it, or cancel it first."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "already_running", "run": current})
    asked = [run for run in tx.runs.open(job.id) if run.reason == "manual"] if state.queued else []
    if asked:
        current = ids.run_text(asked[0].id)
        message = f"{job.name} is already about to start ({current})."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "already_running", "run": current})


def _refuse_start(tx: Transaction, context: Context, job: JobDef) -> None:
    """Refuse a manual start while everything is held, or while the job's kind does not admit it."""
    refuse_held(tx, job.name)
    hook = context.declared.declared(job.kind).by_hand
    refused = hook(tx, context, job) if hook is not None else None
    if refused is not None:
        message = f"{job.name} cannot start: {refused.detail or refused.reason}."
        raise StartRefused(message, {"job": job.name, "reason": refused.reason})


def note_refused(tx: Transaction, context: Context, name: str) -> None:
    """A start by hand was refused by the job's kind: that is counted, with what the kind writes about it."""
    found = tx.jobs.by_name(name)
    hook = context.declared.declared(found[0].kind).by_hand if found is not None else None
    refused = hook(tx, context, found[0]) if found is not None and hook is not None else None
    if found is not None and refused is not None:
        tx.skips.count([SkipRow(found[0].id, refused.reason, 1, tx.now, refused.detail)])


def _refuse_unstartable(context: Context, job: JobDef) -> None:
    why = context.declared.declared(job.kind).not_started
    if why is not None:
        raise ScheduleTriggerError(f"{job.name} {why}", {"job": job.name, "reason": job.kind})


def _wake(tx: Transaction, state: JobState) -> None:
    """One more run waits as a row; a job parked on a lane keeps its place in the line."""
    due_at = None if state.parked is not None else tx.now
    tx.jobs.save([state._replace(queued=state.queued + 1, due_at=due_at)])


# -- ending from outside -----------------------------------------------------------------------------------------------


def cancel_run(tx: Transaction, context: Context, run_id: int) -> str:
    """Cancel a run in any status; returns the status it was in. An active one is ended by its own node."""
    job, state, run = find_run(tx, run_id)
    if run.status == "done":
        message = f"{ids.run_text(run_id)} has already ended as {run.outcome}."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "done"})
    if run.reason == PROPOSED:
        answer_proposal(tx, context, run, Decision(REJECTED, "hand"))
    elif run.status == "active":
        tx.runs.ask_cancel(run_id)
    elif run.status == "waiting":
        if state.run_id != run_id:  # one of several whose ends are waited for
            tx.jobs.save([state._replace(run_id=run_id)])
        settle_all(tx, context, [FinishedRun(job, state.revision, run, Result("cancelled", error="cancelled by hand"))])
    else:
        drop_runs(tx, context, job, [run], "cancelled by hand")
        state = tx.jobs.states([job.id])[job.id]
        state = count_dropped(tx, context, job, state._replace(queued=max(0, state.queued - 1)), run)
        if state.run_id is None:  # what it is armed or parked for may be gone: let the engine check it again
            state = state._replace(due_at=tx.now, parked=None)
        tx.jobs.save([state])
    return run.status


def complete_run(tx: Transaction, context: Context, run_id: int, result: Result) -> None:
    """Report how a waiting run ended; refused where its kind ends it."""
    job, _, run = find_run(tx, run_id)
    why = context.declared.declared(run.kind).ends_itself if run.status == "waiting" and run.phase != APPROVAL else None
    if why is not None:
        message = f"{ids.run_text(run_id)} cannot be completed: {why}."
        raise ScheduleTriggerError(message, {"job": job.name, "run": ids.run_text(run_id), "reason": "ends_itself"})
    if run.status == "waiting" and run.phase != APPROVAL:
        result = as_reported(tx, context, job, run, result)
    end_waiting(tx, context, run_id, result)


def end_waiting(tx: Transaction, context: Context, run_id: int, result: Result) -> None:
    """End a waiting run, also for the domain of its kind."""
    job, state, run = find_run(tx, run_id)
    if run.phase == APPROVAL and run.status == "waiting":
        message = f"{ids.run_text(run_id)} waits for approval: approve or reject it."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": APPROVAL})
    if run.status != "waiting":
        message = f"{ids.run_text(run_id)} is {run.status}: only a waiting run can be completed."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": run.status})
    settle_all(tx, context, [FinishedRun(job, state.revision, run, result)])


# -- what a person says to a run that asked ----------------------------------------------------------------------------


def approve_run(tx: Transaction, context: Context, run_id: int, by: str, note: str | None = None) -> int:
    """The question is answered with yes: the run ends as deferred and the same slot continues; the new run's id.

    One transaction: after a crash either the question is still open or the new run is queued, never neither. A job that
    its owner proposed starts by its times from now on; its question ends as it is.
    """
    if (proposal := _proposal(tx, run_id)) is not None:
        answer_proposal(tx, context, proposal, Decision(APPROVED, by, note))
        return run_id
    job, state, run = _open_question(tx, run_id)
    about = {"job": job.name, "run": ids.run_text(run_id)}
    if job.removed_at is not None or not state.enabled:
        why, what = ("removed", "reject") if job.removed_at is not None else ("disabled", "resume it first, or reject")
        message = f"{job.name} is {why}: {what} {ids.run_text(run_id)}."
        raise ScheduleTriggerError(message, {**about, "reason": why})
    if job.kind != run.kind:
        message = f"{job.name} is of another kind now ({job.kind}, not {run.kind}) than when it asked: reject it."
        raise ScheduleTriggerError(message, {**about, "reason": "changed"})
    _decide(tx, (job, run), APPROVED, by, note)
    settle_all(tx, context, [FinishedRun(job, state.revision, run, Result("deferred", approved=True))])
    continued = tx.runs.successor(run_id)
    assert continued is not None  # noqa: S101 - what is approved always continues
    return continued


def reject_run(tx: Transaction, context: Context, run_id: int, by: str, note: str | None = None) -> None:
    """The question is answered with no: the run is cancelled, counts as no error, and the next slot comes as usual."""
    if (proposal := _proposal(tx, run_id)) is not None:
        answer_proposal(tx, context, proposal, Decision(REJECTED, by, note))
        return
    job, state, run = _open_question(tx, run_id)
    said = _decide(tx, (job, run), REJECTED, by, note)
    why = f"rejected by {said['by']}" + (f": {said['note']}" if said["note"] else "")
    settle_all(
        tx, context, [FinishedRun(job, state.revision, run, Result("cancelled", error_type="Rejected", error=why))]
    )


def _proposal(tx: Transaction, run_id: int) -> RunRow | None:
    """The run, if a job was proposed by it."""
    run = find_run(tx, run_id)[2]
    return run if run.reason == PROPOSED else None


def _open_question(tx: Transaction, run_id: int) -> tuple[JobDef, JobState, RunRow]:
    job, state, run = find_run(tx, run_id)
    if run.status == "waiting" and run.phase == APPROVAL and state.run_id == run_id:
        return job, state, run
    entries = approvals(_record(tx, run_id))
    message = f"{ids.run_text(run_id)} does not wait for approval: it is {run.outcome or run.status}."
    if run.phase == APPROVAL and entries and entries[-1]["verdict"] is not None:
        message = f"{ids.run_text(run_id)} was already {entries[-1]['verdict']} by {entries[-1]['by']}."
    raise ScheduleTriggerError(message, {"job": job.name, "run": ids.run_text(run_id), "reason": "no_question"})


def _decide(tx: Transaction, pair: tuple[JobDef, RunRow], verdict: str, by: str, note: str | None) -> dict[str, Any]:
    job, run = pair
    record = decided(_record(tx, run.id), verdict, by, note, tx.now)
    said = approvals(record)[-1]
    tx.runs.detail([RunDetails(run.id, approval=record)])
    about = {"run": run.id, "job_id": job.id, "job": job.name}
    tx.events.emit("run", {"type": verdict, **about, "by": said["by"], "note": said["note"]})
    return said


def _record(tx: Transaction, run_id: int) -> str | None:
    details = tx.runs.details(run_id)
    return details.approval if details is not None else None


def release_runs(tx: Transaction, context: Context, runs: Sequence[RunRow]) -> None:
    """Release what was claimed and never started: it waits as before, and no attempt was made.

    A run whose job was removed meanwhile would wait for ever: it is cancelled.
    """
    states = tx.jobs.states([run.job_id for run in runs])
    jobs = tx.jobs.definitions([run.job_id for run in runs])
    back = [run for run in runs if run.job_id in states and states[run.job_id].run_id == run.id]
    waiting = [
        run._replace(status=after("release", run.status, ids.run_text(run.id)), started_at=None, lanes=None, node=None)
        for run in back
    ]
    tx.runs.activate(waiting)
    free_lanes(tx, runs)
    for run in waiting:
        state, job = states[run.job_id], jobs[run.job_id]
        if job.removed_at is None:
            tx.jobs.save([state._replace(run_id=None, queued=state.queued + 1, due_at=run.due_at)])
        else:
            tx.jobs.save([state._replace(run_id=None)])
            drop_runs(tx, context, job, [run], "the job was removed")
