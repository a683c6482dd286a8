"""Jobs that their owner asks for, and that start nothing before a person has approved them.

What must stay true:
- a proposed job is stored paused, and is resumed by a person's answer alone;
- rejected, a new job is removed, and a changed one is as it was before; what a person has changed meanwhile
  stays as it is, and paused;
- what somebody else has edited since is theirs: the owner changes it no more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.errors import NotAllowed, ScheduleTriggerError
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.actions import pausing
from wakeful.kernel.engine.alerts import open_alert
from wakeful.kernel.engine.ending import MCP, PROPOSED, digest, end_proposal, open_proposal
from wakeful.kernel.rules.approval import ABOUT, APPROVAL, APPROVED, approvals, asked, decided
from wakeful.kernel.rules.outcome import Result, clean
from wakeful.kernel.rules.policy import trigger_of
from wakeful.store.owners import Proposal, Proposals
from wakeful.store.records import RunDetails, RunRow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wakeful.kernel.context import Context, Rights
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

NOTE = "it waits for approval"
LATE = "it was not approved in time"
KEPT = ("trigger", "payload", "options")  # what a rejected change puts back
UTC = "UTC"


def note_written(tx: Transaction, job_id: int, proposal: Proposal) -> None:
    """Remember who asked for a job, and the job as it is now."""
    found = tx.jobs.by_id(job_id)
    if found is not None:
        tx.of(Proposals).put(proposal._replace(job_id=job_id, written=digest(found[0])))


def propose(
    tx: Transaction, context: Context, job_id: int, question: str, *, until: int | None, before: JobDef | None = None
) -> int:
    """Pause the job, and ask a person whether it may run; `before`: the job without the change that is asked about.

    Not answered before `until`, it is as if it were rejected. The run that waits for the answer.
    """
    found = tx.jobs.by_id(job_id)
    assert found is not None  # noqa: S101 - the caller has just written it
    job, state = found
    was_running = bool(state.enabled and not state.paused)
    pausing.pause_all(tx, context, [(job, state)], NOTE)
    now, text = tx.now, clean(question)
    run = RunRow(context.new_id(), job.id, job.kind, PROPOSED, None, 1, None, None, APPROVAL, "waiting", None, now, now)
    tx.runs.add([run])
    about = {name: getattr(before, name) for name in KEPT} | {"running": was_running} if before is not None else {}
    tx.runs.detail([RunDetails(run.id, approval=asked(None, text, now, about))])
    known = tx.of(Proposals).of([job.id])[job.id]
    tx.of(Proposals).put(known._replace(run_id=run.id, expires_at=until))
    subject = {"run": run.id, "job_id": job.id, "job": job.name}
    tx.events.emit("run", {"type": "approval_needed", **subject, "question": text})
    message = f"{job.name} waits for a person to approve it: {text}"
    open_alert(tx, context, APPROVAL, run.id, message, job_id=job.id, data=json.dumps({"run": run.id}))
    return run.id


class Decision(NamedTuple):
    """What a person says to a proposal."""

    verdict: str  # approved or rejected
    by: str
    note: str | None = None


def answer_proposal(tx: Transaction, context: Context, run: RunRow, said: Decision) -> None:
    """What a person says to a proposal; ScheduleTriggerError where there is nothing left to answer."""
    job, state = _job_of(tx, run)
    if run.status != "waiting":
        raise _no_question(job, run, _record(tx, run))
    entry = _decide(tx, job, run, said)
    if said.verdict == APPROVED:
        if job.removed_at is None and state.enabled:
            pausing.resume_job(tx, context, ids.job_text(job.id))  # ends the proposal, too
        if open_proposal(tx, job) is not None:
            end_proposal(tx, context, job, run, Result("noop"))
        return
    why = f"rejected by {entry['by']}" + (f": {entry['note']}" if entry["note"] else "")
    _take_back(tx, context, (job, state), run, why)


def drop_late(tx: Transaction, context: Context, limit: int = 20) -> int:
    """Take back what was not answered in time; how many there were."""
    late = tx.of(Proposals).late(tx.now, limit)
    for one in late:
        run = tx.runs.get(one.run_id) if one.run_id is not None else None
        if run is not None and run.status == "waiting":
            _take_back(tx, context, _job_of(tx, run), run, LATE)
        else:
            tx.of(Proposals).put(one._replace(run_id=None, expires_at=None))
    return len(late)


def unanswered(tx: Transaction, jobs: Iterable[JobDef]) -> dict[int, str]:
    """Of these jobs, those that wait for a person's answer, and what to do: a word about many jobs is no answer."""
    runs = {job.id: (job.name, open_proposal(tx, job)) for job in jobs if job.source == MCP}
    return {
        job_id: f"{name} waits for approval: approve or reject {ids.run_text(run.id)}."
        for job_id, (name, run) in runs.items()
        if run is not None
    }


def refuse_proposed(rights: Rights, job: JobDef) -> None:
    """A job that its owner made over MCP is changed by the owner over MCP alone, where a person is asked again."""
    if rights.owned is not None and job.source == MCP and rights.via != MCP:
        message = f"{job.name} was made over MCP: change it there, where a person is asked if that is needed."
        raise NotAllowed(message)


def refuse_own_answer(rights: Rights, job: JobDef, run: RunRow) -> None:
    """The owner does not answer its own question; it may remove the job, unless somebody else has changed that."""
    if rights.owned is not None and run.reason == PROPOSED and run.status == "waiting":
        message = f"{ids.run_text(run.id)} asks a person about {job.name}: wait for the answer, or remove {job.name}."
        raise NotAllowed(message)


def refuse_edited(tx: Transaction, job: JobDef) -> None:
    """NotAllowed where somebody else has changed the job since its owner wrote it."""
    if _is_edited(tx, job):
        message = f"{job.name} was changed by a person since you made it, and stays so: ask them, or make another one."
        raise NotAllowed(message)


# -- inside -----------------------------------------------------------------------------------------------------------


def _is_edited(tx: Transaction, job: JobDef) -> bool:
    known = tx.of(Proposals).of([job.id]).get(job.id)
    return known is not None and known.written != digest(job)


def _take_back(tx: Transaction, context: Context, pair: tuple[JobDef, JobState], run: RunRow, why: str) -> None:
    """The job as it was before it was asked about; a new one is removed."""
    job, state = pair
    before = _before(_record(tx, run))
    end_proposal(tx, context, job, run, Result("cancelled", error_type="Rejected", error=why))
    if job.removed_at is not None:
        return
    edited = _is_edited(tx, job)
    if not before and not (edited and why == LATE):
        job_actions.remove_job(tx, context, ids.job_text(job.id))
    if edited or not before:  # an edited one stays paused: part of it was not approved
        return
    fields = {**{name: before[name] for name in KEPT}, "trigger": trigger_of(before["trigger"])}
    (restored,) = job_actions.change_all(tx, context, [((job, state), fields)], UTC)
    job_actions.move_lanes(tx, [(job, restored)])
    known = tx.of(Proposals).of([job.id])[job.id]
    tx.of(Proposals).put(known._replace(written=digest(restored)))
    if before["running"]:
        pausing.resume_all(tx, context, [(restored, tx.jobs.states([job.id])[job.id])])


def _before(record: str | None) -> dict[str, Any]:
    entries = approvals(record)
    return dict(entries[-1].get(ABOUT) or {}) if entries else {}


def _job_of(tx: Transaction, run: RunRow) -> tuple[JobDef, JobState]:
    job, state = tx.jobs.definitions([run.job_id])[run.job_id], tx.jobs.states([run.job_id])[run.job_id]
    return job, state


def _record(tx: Transaction, run: RunRow) -> str | None:
    details = tx.runs.details(run.id)
    return details.approval if details is not None else None


def _decide(tx: Transaction, job: JobDef, run: RunRow, said: Decision) -> dict[str, Any]:
    record = decided(_record(tx, run), said.verdict, said.by, said.note, tx.now)
    entry = approvals(record)[-1]
    tx.runs.detail([RunDetails(run.id, approval=record)])
    subject = {"run": run.id, "job_id": job.id, "job": job.name}
    tx.events.emit("run", {"type": said.verdict, **subject, "by": entry["by"], "note": entry["note"]})
    return entry


def _no_question(job: JobDef, run: RunRow, record: str | None) -> ScheduleTriggerError:
    entries, text = approvals(record), ids.run_text(run.id)
    message = f"{text} does not wait for approval: it is {run.outcome or run.status}."
    if entries and entries[-1]["verdict"] is not None:
        message = f"{text} was already {entries[-1]['verdict']} by {entries[-1]['by']}."
    return ScheduleTriggerError(message, {"job": job.name, "run": text, "reason": "no_question"})
