"""One turn of the engine, as one transaction: settle what ended, free its lanes, claim what is due.

Nothing here waits or asks the time. A turn may be run again from the start by the store; its only effects are the
records it writes and the `TurnResult` it returns after the commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import open_alert
from wakeful.kernel.engine.claim import Claim, due_jobs
from wakeful.kernel.engine.ending import Ending, end_runs
from wakeful.kernel.engine.lines import Claimed, requeue_served
from wakeful.kernel.rules.approval import asked
from wakeful.kernel.rules.option_reading import RESERVED_LANES
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import APPROVAL, FAILURES, WAITING, Result
from wakeful.kernel.rules.pending import is_deferred
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.rules.settle import Settled, settle
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState, NodeState, RunRow
from wakeful.store.reports import ReportedEnd

GONE = "the job was removed"
#: Ends after which a run's work may still be done elsewhere: a report from there takes precedence.
_NOT_THE_LAST_WORD = frozenset({WAITING, "deferred", "error", "timeout", "crashed"})

_CUT_SHORT = frozenset({"error", "timeout", "cancelled"})


class FinishedRun(NamedTuple):
    """A run whose handler is through, as the engine hands it in."""

    job: JobDef
    revision: int
    run: RunRow
    result: Result


class TurnResult(NamedTuple):
    """What the engine must do after the commit."""

    claimed: list[Claimed]
    settled: list[int]
    lost: list[int]  # runs that another process settled first: their results are discarded
    to_cancel: list[int]
    next_alarm: int | None
    fenced: bool = False  # another node took over from this one: it must claim nothing under its old id
    draining: bool = False  # a person asked this node to start nothing more
    unsettled: Sequence[FinishedRun] = ()  # what the store did not take in any form: to be tried again later


def turn(
    tx: Transaction, context: Context, ended: Sequence[FinishedRun], limit: int, *, requeue: bool = False
) -> TurnResult:
    """Settle `ended`, then claim at most `limit`; `requeue`: also of what others left for a node such as this one."""
    standing, due = NodeState(parked=True), None
    if limit and not tx.exclusive:
        # The node's row is locked before anything else: a node that takes over locks it first too, so there is no
        # deadlock.
        if ended or context.only is not None:
            standing = tx.members.standing(context.id, parked=requeue)
        else:  # in one question, because a claim waits for each
            standing, due = tx.jobs.due_for(context.id, tx.now, limit, parked=requeue)
    if requeue and limit and standing.parked and standing.draining is False:
        # In the transaction that claims: requeued alone, they could be taken and parked again by a node that cannot run
        # them.
        due = None if requeue_served(tx, context) else due
    settled, lost = settle_all(tx, context, ended)
    if standing.draining is not False:
        fenced = standing.draining is None
        return TurnResult([], settled, lost, [], None, fenced=fenced, draining=bool(standing.draining))
    claimed: list[Claimed] = []
    to_cancel: list[int] = []
    if limit:
        claim = Claim(tx, context, standing.held)
        claim.run(due_jobs(tx, context, limit) if due is None else due)
        if claim.expired:
            late = [_too_late(*item) for item in claim.expired]
            settle_all(tx, context, late)
        claimed, to_cancel = claim.claimed, claim.to_cancel
    return TurnResult(claimed, settled, lost, to_cancel, tx.jobs.next_alarm(claimed=True))


def _too_late(job: JobDef, state: JobState, run: RunRow) -> FinishedRun:
    result = Result("unknown", error="no report of its end arrived before its deadline")
    if run.phase == APPROVAL:
        result = Result("cancelled", error="it was not approved before its deadline")
    if (why := trigger_of(job.trigger).unended) is not None:
        result = Result("timeout", error=why)
    return FinishedRun(job, state.revision, run, result)


def settle_all(tx: Transaction, context: Context, ended: Sequence[FinishedRun]) -> tuple[list[int], list[int]]:
    """Settle each run that is still its job's run; the others are lost."""
    if not ended:
        return [], []
    states = tx.jobs.states([item.run.job_id for item in ended])
    edited = [
        item.job.id
        for item in ended
        if (state := states.get(item.job.id)) is not None and state.revision != item.revision
    ]
    definitions = tx.jobs.definitions(edited) if edited else {}
    endings: list[Ending] = []
    lost: list[int] = []
    waiting = _already_waiting(tx, ended)
    ended = take_successes(tx, context, [_unasked(item, definitions) for item in take_reports(tx, context, ended)])
    for item in ended:
        state = states.get(item.run.job_id)
        if state is None or state.run_id != item.run.id or item.run.id in waiting:
            lost.append(item.run.id)
            continue
        job = definitions.get(item.job.id, item.job)
        answer = settle(
            job,
            state,
            item.run,
            item.result,
            now=tx.now,
            rand=context.rng.random(),
            new_id=context.new_id,
            min_interval=context.min_interval,
            failed_before=_failed_before(tx, item),
            deferred=_deferred(tx, item) if state.queued and item.result.outcome == "deferred" else (),
        )
        endings.append(Ending(job, item.run, item.result, _keeping(tx, context, item, answer)))
    end_runs(tx, context, endings)
    for item in ended:
        if item.result.phase == APPROVAL and item.run.id not in lost:
            _ask(tx, context, item)
    return [ending.run.id for ending in endings], lost


def _keeping(tx: Transaction, context: Context, item: FinishedRun, answer: Settled) -> Settled:
    """A run that waits to be completed keeps the lanes that its kind took: its work continues in them."""
    hook = context.declared.hooks.takes_lanes.get(item.run.kind)
    if hook is None or item.run.lanes is None or answer.finish.status != "waiting" or item.result.phase == APPROVAL:
        return answer
    own = () if context.declared.declared(item.run.kind).keeps_lanes else dict(from_text(item.job.options).lanes)
    others = {*own, *RESERVED_LANES} - {*hook(tx, item.job, item.run)}
    kept = [lane for lane in json.loads(item.run.lanes) if lane not in others]
    return answer._replace(finish=answer.finish._replace(lanes=json.dumps(kept))) if kept else answer


def _unasked(item: FinishedRun, definitions: Mapping[int, JobDef]) -> FinishedRun:
    """How the run ended; one whose job was removed meanwhile asks nothing, because nobody could say yes."""
    job = definitions.get(item.job.id)
    if item.result.phase != APPROVAL or job is None or job.removed_at is None:
        return item
    return item._replace(result=Result("cancelled", error=GONE))


def _failed_before(tx: Transaction, item: FinishedRun) -> int:
    """How many earlier attempts failed: approvals, deferrals and recoveries make attempts too, and use no retry."""
    if item.run.retry_of is None or item.result.outcome not in FAILURES:
        return item.run.attempt - 1
    return item.run.attempt - 1 - tx.runs.attempts_without_failure(item.run.retry_of)


def _deferred(tx: Transaction, item: FinishedRun) -> list[RunRow]:
    """The attempts of the same job at other slots that wait for the time they were deferred to."""
    queued = [run for run in tx.runs.open(item.run.job_id) if run.status == "queued" and run.slot is not None]
    return [run for run in queued if run.retry_of is not None and is_deferred(run, tx.runs.get(run.retry_of))]


def _already_waiting(tx: Transaction, ended: Sequence[FinishedRun]) -> set[int]:
    """Of the runs that begin to wait, those on record as waiting: the answer to the turn that stored it was lost."""
    begin = [item.run for item in ended if item.result.outcome == WAITING and item.run.status == "active"]
    return {run.id for one in begin for run in tx.runs.open(one.job_id) if run.status == "waiting"}


def _ask(tx: Transaction, context: Context, item: FinishedRun) -> None:
    """Put the question on record, with the payload it is about: what is approved is what was asked, edits aside."""
    question = str(json.loads(item.result.output or '""'))
    details = tx.runs.details(item.run.id)
    record = asked(details.approval if details is not None else None, question, tx.now, item.result.about)
    tx.runs.ask(item.run.id, APPROVAL, item.job.payload, record)
    about = {"run": item.run.id, "job_id": item.job.id, "job": item.job.name}
    tx.events.emit("run", {"type": "approval_needed", **about, "question": question})
    message = f"{item.job.name} waits for a person to approve it: {question}"
    data = json.dumps({"run": item.run.id})
    open_alert(tx, context, APPROVAL, item.run.id, message, job_id=item.job.id, data=data)


def take_reports(tx: Transaction, context: Context, ended: Sequence[FinishedRun]) -> Sequence[FinishedRun]:
    """How runs ended that had not succeeded by themselves, but were reported to have ended before we got here."""
    open_ends = [item.run.id for item in ended if item.result.outcome in _NOT_THE_LAST_WORD or item.result.interrupted]
    found = tx.reports.of(open_ends) if open_ends else {}
    if not found:
        return ended
    tx.reports.drop(list(found))
    return [
        item._replace(result=from_report(tx, context, item.job, item.run, found[item.run.id]))
        if item.run.id in found
        else item
        for item in ended
    ]


def take_successes(tx: Transaction, context: Context, ended: Sequence[FinishedRun]) -> Sequence[FinishedRun]:
    """Runs that had done everything when they were cut off have succeeded."""
    doubtful = [item.run for item in ended if item.result.outcome in _CUT_SHORT]
    found = succeeded(tx, context, doubtful) if doubtful else {}
    return [item._replace(result=found.get(item.run.id, item.result)) for item in ended] if found else ended


def succeeded(tx: Transaction, context: Context, runs: Sequence[RunRow]) -> dict[int, Result]:
    """Of these runs, those that had stored all they were to do, as their kinds know it."""
    by_kind: dict[str, list[int]] = {}
    for run in runs:
        by_kind.setdefault(run.kind, []).append(run.id)
    found: dict[int, Result] = {}
    for kind, run_ids in by_kind.items():
        asked = context.declared.declared(kind).succeeded
        found.update(asked(tx, run_ids) if asked is not None else {})
    return found


def from_report(tx: Transaction, context: Context, job: JobDef, run: RunRow, report: ReportedEnd) -> Result:
    """A result as another process reported it."""
    return as_reported(tx, context, job, run, Result(report.outcome, report.output, report.error_type, report.error))


def as_reported(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> Result:
    """What was reported about a run, as its kind writes the end of a run."""
    written = context.declared.declared(run.kind).reported
    return result if written is None else written(tx, job, run, result)
