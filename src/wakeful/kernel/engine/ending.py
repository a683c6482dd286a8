"""The only place where runs become `done`: every run ends here, and all that follows is written with it.

A handler that returned, a crash, a deadline, a cancel, an edit that takes a waiting start away: each decides what the
end means (`Settled`, pure) and hands it in. One transaction then holds the run's end and details, its job's state,
further attempts, refused starts, alerts, what its kind adds, the jobs that start after it, the lanes it held, and the
event.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import alert_rules, close_alert, open_alert, replace_alert
from wakeful.kernel.engine.stretches import keep_passed
from wakeful.kernel.rules.alerting import worth_opening
from wakeful.kernel.rules.outcome import APPROVAL, FAILURES, Result, check_transition, read_messages
from wakeful.kernel.rules.pending import RETRY
from wakeful.kernel.rules.settle import AlertChange, Settled, dropped, fail_for_good
from wakeful.store.interface import Transaction
from wakeful.store.owners import Proposals
from wakeful.store.records import Finish, JobDef, JobState, RunDetails, RunRow, SkipRow

ABOUT_ERRORS = ("failing", "failed")  # alerts that a domain may open in its own words
ITSELF = ("error", "crashed")  # after these
DELIVER = '"deliver"'  # in the options of a job whose results are sent somewhere


class Ending(NamedTuple):
    """A run that ends, or begins to wait, and everything that means."""

    job: JobDef
    run: RunRow
    result: Result
    settled: Settled


def end_runs(tx: Transaction, context: Context, endings: Sequence[Ending], *, announce: bool = False) -> None:
    """End these runs. The caller has checked in this transaction that they are still open and its own.

    `announce`: other nodes may have to look at what became due; an engine's own turn looks itself.
    """
    if not endings:
        return
    for item in endings:
        check_transition(item.run.status, item.settled.finish.status, item.run.id)
    # Asked first: a question waits for all that was written before it.
    chains = any(item.settled.ended_as is not None for item in endings) and tx.jobs.any_chains()
    save = tx.jobs.save if announce else tx.jobs.save_settled
    save([item.settled.state for item in endings if item.settled.state is not None])
    tx.runs.finish([item.settled.finish for item in endings])
    tx.runs.detail([item.settled.details for item in endings if item.settled.details is not None])
    queue_runs(tx, [run for item in endings for run in item.settled.queue])
    tx.skips.count([skip for item in endings for skip in item.settled.skips])
    keep_passed(tx, [passed for item in endings for passed in item.settled.passed])
    _call_ended(tx, context, endings)  # before the alerts: it may ask for a further attempt, and their messages say so
    _change_alerts(tx, context, endings)
    _deliver(tx, context, endings)
    if chains:
        over = [(item.job, item.run, item.settled.ended_as) for item in endings]
        start_chained(tx, context, [(job, run, how) for job, run, how in over if how is not None])
    free_lanes(
        tx, [_without_kept(item) for item in endings]
    )  # last: no transaction waits for a row while it holds the lanes
    tx.events.count(*endings)
    tx.events.emit("run", *[_event(item.job, item.run, item.settled.finish.outcome) for item in endings])


def drop_runs(tx: Transaction, context: Context, job: JobDef, runs: Sequence[RunRow], why: str) -> None:
    """End queued runs that are no longer needed; the caller writes the job's state."""
    endings = []
    for run in runs:
        before = tx.runs.get(run.retry_of) if run.retry_of is not None else None
        result = Result("cancelled", error=why)
        endings.append(
            Ending(job, run, result, dropped(run, why, tx.now, before.outcome if before is not None else None))
        )
    end_runs(tx, context, endings)


def count_dropped(tx: Transaction, context: Context, job: JobDef, state: JobState, run: RunRow) -> JobState:
    """The job after a run that waits is dropped: a failure that it was to repair was not counted yet, and is now."""
    before = tx.runs.get(run.retry_of) if run.reason == RETRY and run.retry_of is not None else None
    stopped = job.removed_at is not None or state.paused or not state.enabled
    if before is None or before.outcome not in FAILURES or stopped:
        return state
    state, changes = fail_for_good(job, state, before.finished_at or tx.now)
    _change_alerts_of(tx, context, job, _own_alerts(context, job, before.outcome, changes))
    return state


def queue_runs(tx: Transaction, runs: Sequence[RunRow]) -> None:
    """Runs that wait for their turn, each with the payload of the one it continues."""
    tx.runs.add(runs)
    for run in runs:
        if run.retry_of is not None:
            tx.runs.inherit(run.id, run.retry_of, approvals=run.reason != "manual")


def free_lanes(tx: Transaction, runs: Sequence[RunRow]) -> None:
    """Release what the runs held, and requeue the jobs that waited for it."""
    held: dict[str, list[int]] = {}
    for run in runs:
        for lane in json.loads(run.lanes) if run.lanes is not None else ():
            held.setdefault(lane, []).append(max(0, tx.now - (run.started_at or tx.now)))
    tx.lanes.free(held)
    for lane, lengths in sorted(held.items()):
        tx.jobs.requeue_parked(lane, tx.now, len(lengths))


def _without_kept(item: Ending) -> RunRow:
    """The run with the lanes that it holds no longer."""
    kept = json.loads(item.settled.finish.lanes or "[]")
    if not kept:
        return item.run
    return item.run._replace(
        lanes=json.dumps([lane for lane in json.loads(item.run.lanes or "[]") if lane not in kept])
    )


def _change_alerts(tx: Transaction, context: Context, endings: Sequence[Ending]) -> None:
    for item in endings:
        changes = _own_alerts(context, item.job, item.result.outcome, item.settled.alerts)
        if changes:
            _change_alerts_of(tx, context, item.job, changes)
        if item.run.phase == APPROVAL and item.settled.finish.status == "done":
            close_alert(tx, context, APPROVAL, item.run.id, item.result.error or "it was approved")


def _own_alerts(context: Context, job: JobDef, outcome: str, changes: Sequence[AlertChange]) -> Sequence[AlertChange]:
    """Without those that the job's kind opens in its own words."""
    if not changes or outcome not in ITSELF or job.kind not in context.declared.hooks.alerts_itself:
        return changes
    return [change for change in changes if change.kind not in ABOUT_ERRORS or change.message is None]


def _change_alerts_of(tx: Transaction, context: Context, job: JobDef, changes: Sequence[AlertChange]) -> None:
    rules = alert_rules(tx) if any(change.errors for change in changes) else None
    opening = [change for change in changes if change.message is not None]
    if rules is not None:
        opening = [change for change in opening if worth_opening(rules, change.kind, change.errors)]
    if any(change.kind == "failing" for change in opening):  # which says why: its time limit is not told twice
        opening = [change for change in opening if change.kind != "stuck"]
    for change in changes:
        if change.message is None and opening:
            replace_alert(tx, change.kind, job.id)
        elif change.message is None:
            close_alert(tx, context, change.kind, job.id)
    for change in opening:
        open_alert(tx, context, change.kind, job.id, change.message or "", job_id=job.id)


def _call_ended(tx: Transaction, context: Context, endings: Sequence[Ending]) -> None:
    hooks = context.declared.hooks.ended
    for job, run, result, settled in endings if hooks else ():
        hook = hooks.get(run.kind) if settled.finish.outcome is not None else None
        if hook is not None:
            hook(tx, context, job, run, result)


def _deliver(tx: Transaction, context: Context, endings: Sequence[Ending]) -> None:
    hooks = context.declared.hooks.delivers
    for job, run, given, settled in endings if hooks else ():
        if settled.finish.outcome is None:
            continue
        result = _with_kept(tx, run, given)
        if DELIVER in job.options or result.messages:  # most jobs do not deliver, and have no extra cost
            for deliver in hooks:
                deliver(tx, context, job, run, result, last=not settled.queue)


def _with_kept(tx: Transaction, run: RunRow, result: Result) -> Result:
    """With what the run was to send when it has waited."""
    if run.status != "waiting" or run.phase == APPROVAL or result.outcome not in ("success", "noop"):
        return result
    details = tx.runs.details(run.id)
    kept = details.messages if details is not None else None
    return result if kept is None else result._replace(messages=(*read_messages(kept), *result.messages))


def _event(job: JobDef, run: RunRow, outcome: str | None) -> dict[str, object]:
    if outcome is None:
        return {"type": "waiting", "run": run.id, "job_id": job.id, "job": job.name}
    return {"type": "finished", "run": run.id, "job_id": job.id, "job": job.name, "outcome": outcome}


def start_chained(tx: Transaction, context: Context, ended: Sequence[tuple[JobDef, RunRow, str]]) -> None:
    """Queue what starts after these runs; the text says how each ended: success, failure or other."""
    for job, run, ended_as in ended:
        for job_id, on_end in tx.jobs.chained(job.name):
            if on_end in ("any", ended_as):
                _start(tx, context, job_id, run)


def _start(tx: Transaction, context: Context, job_id: int, cause: RunRow) -> None:
    found = tx.jobs.by_id(job_id)
    if found is None or found[0].removed_at is not None:
        return
    job, state = found
    if not state.enabled or state.paused:
        reason = "paused" if state.paused else "disabled"
        tx.skips.count([SkipRow(job_id, reason, 1, tx.now, None)])
        return
    waiting = next((run for run in tx.runs.open(job_id) if run.status == "queued" and run.reason == "after"), None)
    if waiting is not None:
        tx.skips.count([SkipRow(job_id, "already_running", 1, tx.now, "one start is already waiting")])
        for hook in context.declared.hooks.joined:
            hook(tx, waiting, cause)
        return
    tx.runs.add([RunRow.queued(context.new_id(), job, "after", tx.now, caused_by=cause.id)])
    # A parked job keeps waiting for its lane; a running one is looked at when it ends.
    due_at = state.due_at if state.run_id is not None or state.parked is not None else tx.now
    tx.jobs.save([state._replace(queued=state.queued + 1, due_at=due_at)])


MCP = "mcp"  # the source of jobs that agents made
PROPOSED = "proposed"  # the reason of such a run
NO_OPTIONS = "{}"


def digest(job: JobDef) -> str:
    """What a definition is recognised by."""
    text = json.dumps([job.name, job.kind, job.trigger, job.payload, job.options])
    return hashlib.sha256(text.encode()).hexdigest()


def open_proposal(tx: Transaction, job: JobDef) -> RunRow | None:
    """The run by which this job waits for a person's answer; None where none does."""
    found = tx.of(Proposals).of([job.id]).get(job.id) if job.source == MCP else None
    run = tx.runs.get(found.run_id) if found is not None and found.run_id is not None else None
    return run if run is not None and run.status == "waiting" else None


def end_proposal(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """End the run, whatever the job does meanwhile; the job's state stays, and nothing is delivered."""
    finish = Finish(run.id, "done", result.outcome, run.started_at, tx.now, None)
    details = RunDetails(run.id, error_type=result.error_type, error=result.error) if result.error else None
    settled = Settled(None, finish, details=details)
    end_runs(tx, context, [Ending(job._replace(options=NO_OPTIONS), run, result, settled)], announce=True)
    known = tx.of(Proposals).of([job.id]).get(job.id)
    if known is not None and known.run_id == run.id:
        tx.of(Proposals).put(known._replace(run_id=None, expires_at=None))
