"""One turn of the engine, as one transaction: settle what ended, free its lanes, claim what is due.

Nothing here waits or asks the time. A turn may be run again from the start by the store; its only effects are the
records it writes and the `TurnResult` it returns after the commit.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from wakeful.kernel.engine.claim import HANDLER, Claim, Claimed, Context
from wakeful.kernel.rules.approval import asked
from wakeful.kernel.rules.outcome import APPROVAL, WAITING, Result
from wakeful.kernel.rules.settle import AlertChange, Settled, settle
from wakeful.store.interface import Transaction
from wakeful.store.records import Alert, JobDef, JobState, RunRow, SkipRow
from wakeful.store.reports import Report

#: Ends after which a run's work may still be done elsewhere: what is said about it there counts more.
_NOT_THE_LAST_WORD = frozenset({WAITING, "deferred", "error", "timeout", "crashed"})


class Ended(NamedTuple):
    """A run whose handler is through, as the engine hands it in."""

    job: JobDef
    revision: int
    run: RunRow
    result: Result


class TurnResult(NamedTuple):
    """What the engine must do after the commit."""

    claimed: list[Claimed]
    settled: list[int]
    lost: list[int]  # runs somebody else settled first: their results are discarded
    to_cancel: list[int]
    next_alarm: int | None
    fenced: bool = False  # another node took over from this one: it must claim nothing under its old id
    draining: bool = False  # a person asked this node to start nothing more
    unsettled: Sequence[Ended] = ()  # what the store did not take in any form: to be tried again later


def turn(tx: Transaction, context: Context, ended: Sequence[Ended], limit: int) -> TurnResult:
    """Settle `ended`, then claim at most `limit`."""
    # Read before anything else is locked: a node that takes over locks this row first too, so there is no deadlock.
    draining = tx.journal.lives(context.id) if limit and not tx.exclusive else False
    settled, lost = settle_all(tx, context, ended)
    if draining is not False:
        return TurnResult([], settled, lost, [], None, fenced=draining is None, draining=bool(draining))
    claimed: list[Claimed] = []
    to_cancel: list[int] = []
    if limit:
        claim = Claim(tx, context)
        claim.run(limit)
        if claim.expired:
            late = [_too_late(*item) for item in claim.expired]
            settle_all(tx, context, late)
        claimed, to_cancel = claim.claimed, claim.to_cancel
    return TurnResult(claimed, settled, lost, to_cancel, tx.jobs.next_alarm())


def _too_late(job: JobDef, state: JobState, run: RunRow) -> Ended:
    result = Result("unknown", error="nobody reported how it ended before its deadline")
    if run.phase == APPROVAL:
        result = Result("cancelled", error="nobody approved it before its deadline")
    return Ended(job, state.revision, run, result)


def settle_all(tx: Transaction, context: Context, ended: Sequence[Ended]) -> tuple[list[int], list[int]]:
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
    answers: list[tuple[JobDef, RunRow, Settled]] = []
    lost: list[int] = []
    waiting = _already_waiting(tx, ended)
    ended = take_reports(tx, ended)
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
        )
        answers.append((job, item.run, answer))
    _write(tx, context, answers)
    for item in ended:
        if item.result.phase == APPROVAL and item.run.id not in lost:
            _ask(tx, item)
    return [run.id for _, run, _ in answers], lost


def _already_waiting(tx: Transaction, ended: Sequence[Ended]) -> set[int]:
    """Of the runs that begin to wait, those on record as waiting: the answer to the turn that stored it was lost."""
    begin = [item.run for item in ended if item.result.outcome == WAITING and item.run.status == "active"]
    return {run.id for one in begin for run in tx.runs.open(one.job_id) if run.status == "waiting"}


def _ask(tx: Transaction, item: Ended) -> None:
    """Put the question on record, with the payload it is about: what is approved is what was asked, edits aside."""
    question = str(json.loads(item.result.output or '""'))
    details = tx.runs.details(item.run.id)
    record = asked(details.approval if details is not None else None, question, tx.now)
    tx.runs.ask(item.run.id, APPROVAL, item.job.payload, record)
    tx.journal.emit("run", ["approval_needed", item.run.id, item.run.job_id, question])


def take_reports(tx: Transaction, ended: Sequence[Ended]) -> Sequence[Ended]:
    """How runs ended that had not succeeded by themselves, but were reported to have ended before we got here."""
    open_ends = [item.run.id for item in ended if item.result.outcome in _NOT_THE_LAST_WORD or item.result.interrupted]
    found = tx.reports.of(open_ends) if open_ends else {}
    if not found:
        return ended
    tx.reports.drop(list(found))
    return [item._replace(result=from_report(found[item.run.id])) if item.run.id in found else item for item in ended]


def from_report(report: Report) -> Result:
    """What somebody else said about a run."""
    return Result(report.outcome, report.output, report.error_type, report.error)


def _write(tx: Transaction, context: Context, answers: Sequence[tuple[JobDef, RunRow, Settled]]) -> None:
    # Asked first: a question waits for all that was written before it.
    chains = any(answer.ended_as is not None for _, _, answer in answers) and tx.jobs.any_chains()
    tx.jobs.save_settled([answer.state for _, _, answer in answers])
    tx.runs.finish([answer.finish for _, _, answer in answers])
    tx.runs.detail([answer.details for _, _, answer in answers if answer.details is not None])
    queue_runs(tx, [run for _, _, answer in answers for run in answer.queue])
    tx.journal.skip([skip for _, _, answer in answers for skip in answer.skips])
    for job, _, answer in answers:
        for change in answer.alerts:
            apply_alert(tx, context, job.id, change)
    if chains:
        chain_all(tx, context, answers)
    free_lanes(tx, [run for _, run, _ in answers])  # last: nobody waits for a row while holding the lanes
    tx.journal.emit("run", *[_told(run, answer.finish.outcome) for _, run, answer in answers])


def _told(run: RunRow, outcome: str | None) -> list[object]:
    return ["waiting" if outcome is None else "finished", run.id, run.job_id, outcome]


def queue_runs(tx: Transaction, runs: Sequence[RunRow]) -> None:
    """Runs that wait for their turn, each with the payload of the one it continues."""
    tx.runs.add(runs)
    for run in runs:
        if run.retry_of is not None:
            tx.runs.inherit(run.id, run.retry_of, approvals=run.reason != "manual")


def free_lanes(tx: Transaction, runs: Sequence[RunRow]) -> None:
    """Give back what the runs held, and put back the jobs that waited for it, oldest first."""
    held = Counter(lane for run in runs if run.lanes is not None for lane in json.loads(run.lanes))
    if held:
        tx.lanes.add({lane: -count for lane, count in held.items()})
        for lane, count in sorted(held.items()):
            tx.jobs.requeue_parked(lane, tx.now, count)


def apply_alert(tx: Transaction, context: Context, job_id: int | None, change: AlertChange) -> None:
    if change.message is None:
        tx.journal.close_alert(change.key, tx.now)
        return
    tx.journal.raise_alert(
        Alert(context.new_id(), change.key, change.kind, job_id, change.message, tx.now, tx.now, 1, None, None)
    )


def chain_all(tx: Transaction, context: Context, answers: Sequence[tuple[JobDef, RunRow, Settled]]) -> None:
    """Queue what starts after these runs, in the transaction that ends them."""
    over = [(job, run, answer.ended_as) for job, run, answer in answers if answer.ended_as is not None]
    if not over or not tx.jobs.any_chains():
        return
    for job, run, ended_as in over:
        for job_id, on_end in tx.jobs.chained(job.name):
            if on_end in ("any", ended_as):
                _chain(tx, context, job_id, run)


def _chain(tx: Transaction, context: Context, job_id: int, cause: RunRow) -> None:
    found = tx.jobs.by_id(job_id)
    if found is None or found[0].removed_at is not None:
        return
    job, state = found
    if not state.enabled or state.paused:
        reason = "paused" if state.paused else "disabled"
        tx.journal.skip([SkipRow(job_id, reason, 1, tx.now, None)])
        return
    if any(run.status == "queued" and run.reason == "after" for run in tx.runs.open(job_id)):
        tx.journal.skip([SkipRow(job_id, "already_running", 1, tx.now, "one start is already waiting")])
        return
    tx.runs.add([queued_run(context, job, "after", tx.now, caused_by=cause.id)])
    # A parked job keeps waiting for its lane; a running one is looked at when it ends.
    due_at = state.due_at if state.run_id is not None or state.parked is not None else tx.now
    tx.jobs.save([state._replace(queued=state.queued + 1, due_at=due_at)])


def queued_run(
    context: Context,
    job: JobDef,
    reason: str,
    due_at: int,
    *,
    slot: int | None = None,
    attempt: int = 1,
    retry_of: int | None = None,
    caused_by: int | None = None,
) -> RunRow:
    """A run that was asked for and waits for its turn."""
    return RunRow(
        context.new_id(), job.id, job.kind, reason, slot, attempt, retry_of, caused_by, None, "queued", None, due_at,
        None, None, None, None, None, 0,
    )  # fmt: skip


def handler_key(kind: str) -> str:
    """What a job of that kind is parked on while nobody can run it."""
    return HANDLER + kind
