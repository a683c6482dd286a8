"""What people and programs do to jobs: add, change, pause, resume, remove.

Each function is one transaction: read the job, decide, write. An edit commits at once and gives the job a new
revision; a run in progress keeps what it was started with and settles against what it then finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from wakeful import ids
from wakeful.errors import ChangedSinceRead, InvalidJob, InvalidTrigger, JobExists, ScheduleTriggerError
from wakeful.kernel.actions.drafts import Draft, changed_fields, check_flag
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import OF_A_JOB, alert_key, close_alert
from wakeful.kernel.engine.claim import BY_HAND
from wakeful.kernel.engine.ending import drop_runs
from wakeful.kernel.engine.lane_sizes import enter_lanes, leave_lanes
from wakeful.kernel.engine.turn import Ended, settle_all
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import APPROVAL, Result
from wakeful.kernel.rules.policy import Next, add_note, alarm, next_start, thinned_note, trigger_of, trigger_text
from wakeful.kernel.views.models import Job
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState, RunRow
from wakeful.triggers import After, Once

MANY = 1_000
GONE = "the job was removed"

# -- adding and changing ----------------------------------------------------------------------------------------------


def add_jobs(tx: Transaction, context: Context, drafts: Sequence[Draft], if_exists: str, zone: str) -> list[int]:
    """Store all of them or none; the ids in the order given."""
    taken = tx.jobs.names([draft.name for draft in drafts])
    new: list[tuple[JobDef, JobState]] = []
    found: list[int] = []
    updated: list[tuple[JobDef, JobDef]] = []
    for draft in drafts:
        known = taken.get(draft.name)
        if known is None:
            job, state = _place(tx, context, draft, zone)
            new.append((job, state))
            taken[draft.name] = job.id
            found.append(job.id)
        elif if_exists == "error":
            message = f"A job named {draft.name!r} already exists: choose another name, or pass if_exists='update'."
            raise JobExists(message)
        else:
            found.append(known)
            if if_exists == "update":
                updated.append(_update_known(tx, context, known, new, draft=draft, zone=zone))
    tx.jobs.add(new)
    _note_stored(tx, context, [job for job, _ in new])
    for job, _ in new:
        _chain(tx, job)
    enter_lanes(tx, [job for job, _ in new])
    move_lanes(tx, updated)
    if new:
        tx.journal.emit("job", *[_event("added", job) for job, _ in new])
    return found


def _note_stored(tx: Transaction, context: Context, jobs: Sequence[JobDef]) -> None:
    """Let the kinds that keep something of their own about their jobs do so."""
    for name in {job.kind for job in jobs}:
        stored = context.declared.declared(name).stored
        if stored is not None:
            stored(tx, [job for job in jobs if job.kind == name])


def _update_known(
    tx: Transaction, context: Context, known: int, new: list[tuple[JobDef, JobState]], *, draft: Draft, zone: str
) -> tuple[JobDef, JobDef]:
    """The job as it was and as it is now."""
    if any(job.id == known for job, _ in new):
        message = f"{draft.name!r} is given twice in one call."
        raise JobExists(message)
    pair = tx.jobs.by_id(known)
    assert pair is not None  # noqa: S101 - read in this transaction
    changes = draft._asdict()
    changes.pop("name")
    return pair[0], _change(tx, context, pair, changes, zone)


def move_lanes(tx: Transaction, changes: Sequence[tuple[JobDef, JobDef]]) -> None:
    """Jobs that were changed, old and new, go from their old lanes to their new ones."""
    moved = [new for old, new in changes if from_text(new.options).lanes != from_text(old.options).lanes]
    leave_lanes(tx, [job.id for job in moved], moved)


def update_job(
    tx: Transaction, context: Context, ref: str, changes: dict[str, Any], *, revision: int | None, zone: str
) -> Job:
    """Change some of a job, as it was given by a user: its definition, its options, whether it is enabled."""
    job, state = find_job(tx, ref)
    _refuse_stale(job, state, revision)
    enabled = check_flag("enabled", changes["enabled"]) if "enabled" in changes else None
    if enabled is False and state.enabled:
        disable_job(tx, context, ref)
    elif enabled is True:
        resume_job(tx, context, ref)
    fields = changed_fields(job, {key: value for key, value in changes.items() if key != "enabled"}, context.declared)
    if fields:
        changed = _redefine(tx, context, ref, fields, zone)
        return Job(changed, tx.jobs.states([changed.id])[changed.id], tx.now)
    return Job(*find_job(tx, ref), tx.now)


def _refuse_stale(job: JobDef, state: JobState, revision: int | None) -> None:
    """An edit made against a revision that is no longer the current one must be made again."""
    if revision is not None and state.revision != revision:
        message = f"{job.name} is at revision {state.revision}, not {revision}: read it again, then repeat your change."
        raise ChangedSinceRead(message)


def _redefine(tx: Transaction, context: Context, ref: str, changes: dict[str, Any], zone: str) -> JobDef:
    pair = find_job(tx, ref)
    name = changes.get("name", pair[0].name)
    if name != pair[0].name and tx.jobs.by_name(name) is not None:
        message = f"A job named {name!r} already exists: choose another name."
        raise JobExists(message)
    changed = _change(tx, context, pair, changes, zone)
    move_lanes(tx, [(pair[0], changed)])
    return changed


def _change(
    tx: Transaction, context: Context, pair: tuple[JobDef, JobState], changes: dict[str, Any], zone: str
) -> JobDef:
    return change_all(tx, context, [(pair, changes)], zone)[0]


def change_all(
    tx: Transaction,
    context: Context,
    edits: Sequence[tuple[tuple[JobDef, JobState], dict[str, Any]]],
    zone: str,
    *,
    keep_due: bool = False,
) -> list[JobDef]:
    """Change many jobs at the price of a few statements; each as it is then.

    With `keep_due` a slot that is due is run all the same, though its trigger is another one now.
    """
    made = [(pair, *_changed(tx, context, pair, changes, zone, keep_due=keep_due)) for pair, changes in edits]
    moved = [(job, changed, state) for (job, _), changed, state in made if changed != job]
    tx.jobs.define(*[changed for _, changed, _ in moved])
    tx.jobs.save([state for _, _, state in moved])
    _note_stored(tx, context, [changed for job, changed, _ in moved if changed.kind != job.kind])
    chained = [(job, changed) for job, changed, _ in moved if _follows(job) or _follows(changed)]
    for job, _ in chained:
        tx.jobs.unchain(job.id)
    for _, changed in chained:
        _chain(tx, changed)
    for job, changed, state in moved:
        if changed.name != job.name:
            _rename_in_chains(tx, job.name, changed.name)
        tx.journal.emit("job", {**_event("changed", changed), "revision": state.revision})
    return [changed for _, changed, _ in made]


def _changed(
    tx: Transaction,
    context: Context,
    pair: tuple[JobDef, JobState],
    changes: dict[str, Any],
    zone: str,
    *,
    keep_due: bool,
) -> tuple[JobDef, JobState]:
    job, state = pair
    fields = dict(changes)
    trigger = fields.pop("trigger", None)
    if trigger is not None:
        fields["trigger"] = trigger_text(trigger.resolved(tx.now, zone, keep=trigger_of(job.trigger)))
    changed = job._replace(**fields)
    if changed == job:
        return job, state
    changed = changed._replace(updated_at=tx.now)
    before, state = state, state._replace(revision=state.revision + 1, priority=from_text(changed.options).priority)
    if changed.trigger != job.trigger:
        tx.stretches.retire_trigger(job.id, job.trigger, tx.now)
        state = _retime(context, changed, state._replace(slot_runs=0), tx.now)
        if keep_due and is_due(before, tx.now):
            kept = ("due_at", "next_at", "slot", "parked", "ready_at")
            state = state._replace(**{name: getattr(before, name) for name in kept})
    elif state.parked is not None:  # what it waits for may be another thing now, or nothing
        state = state._replace(parked=None, due_at=tx.now)
    if changed.kind != job.kind:
        for kind in ("no_handler", "no_node"):
            close_alert(tx, kind, job.id)
    return changed, state


def is_due(state: JobState, now: int) -> bool:
    """Whether a slot's time has come and it is not running yet."""
    return state.run_id is None and state.next_at is not None and state.next_at <= now


def _follows(job: JobDef) -> bool:
    return isinstance(trigger_of(job.trigger), After)


def _retime(context: Context, job: JobDef, state: JobState, now: int) -> JobState:
    """A new trigger moves the next time; a run in progress moves it when it ends."""
    trigger = trigger_of(job.trigger)
    notes = add_note(None, thinned_note(trigger))
    state = state._replace(next_at=None, slot=None, parked=None, ready_at=None, backoff_until=None, notes=notes)
    if isinstance(trigger, Once) and state.last_slot is not None and trigger.at_ms <= state.last_slot:
        state = state._replace(last_slot=None)
    coming = next_start(trigger, state, now, context.rng.random())
    _refuse_never(coming, job.name)
    if state.run_id is not None:
        return state
    if state.enabled and not state.paused:
        state = state._replace(slot=coming.slot, next_at=coming.at)
    return state._replace(due_at=alarm(state, now if state.queued else None))


def _place(tx: Transaction, context: Context, draft: Draft, zone: str) -> tuple[JobDef, JobState]:
    now = tx.now
    trigger = draft.trigger.resolved(now, zone)
    job = JobDef(
        context.new_id(), draft.name, draft.kind, draft.owner, draft.source, trigger_text(trigger), draft.payload,
        draft.options, now, now, None,
    )  # fmt: skip
    notes = add_note(None, thinned_note(trigger))
    state = JobState.new(job.id, notes, priority=from_text(draft.options).priority)
    coming = next_start(trigger, state, now, context.rng.random())
    _refuse_never(coming, draft.name)
    return job, state._replace(due_at=coming.at, next_at=coming.at, slot=coming.slot)


def _refuse_never(coming: Next, name: str) -> None:
    if coming.slot is None and coming.ended is not None:
        why = coming.ended or "its one time has passed"
        message = f"{name} would never run: {why}."
        raise InvalidTrigger(message)


def _chain(tx: Transaction, job: JobDef) -> None:
    """Put an `after` job behind the one it follows; a circle would run for ever and is refused."""
    trigger = trigger_of(job.trigger)
    if not isinstance(trigger, After):
        return
    upstream = trigger.job
    parsed = ids.decode(upstream)
    if parsed is not None and (found := tx.jobs.by_id(parsed[1])) is not None:
        upstream = found[0].name
    ahead: str | None = upstream
    seen: set[str] = set()
    while ahead is not None and ahead not in seen:
        if ahead == job.name:
            message = f"{job.name} cannot start after {upstream}: {upstream} itself waits for {job.name}."
            raise InvalidJob(message)
        seen.add(ahead)
        before = tx.jobs.by_name(ahead)
        ahead = tx.jobs.upstream(before[0].id) if before is not None else None
    tx.jobs.chain(upstream, job.id, trigger.on)


_ENDS: dict[str, Literal["success", "failure", "any"]] = {"success": "success", "failure": "failure", "any": "any"}


def _rename_in_chains(tx: Transaction, old: str, new: str) -> None:
    """Jobs that start after a renamed one go on starting after it."""
    for job_id, on_end in tx.jobs.chained(old):
        found = tx.jobs.by_id(job_id)
        if found is None:
            continue
        job, state = found
        tx.jobs.define(job._replace(trigger=trigger_text(After(new, on=_ENDS[on_end])), updated_at=tx.now))
        tx.jobs.save([state._replace(revision=state.revision + 1)])
        tx.jobs.unchain(job_id)
        tx.jobs.chain(new, job_id, on_end)


def remove_job(tx: Transaction, context: Context, ref: str) -> int:
    """Remove the definition; a run in progress finishes, and history stays under its name."""
    job, state = find_job(tx, ref)
    drop_runs(tx, context, job, [run for run in tx.runs.open(job.id) if run.status == "queued"], GONE)
    for run in tx.runs.open(job.id):
        if run.status == "waiting" and run.phase == APPROVAL:  # nobody is to be asked about what is gone
            settle_all(tx, context, [Ended(job, state.revision, run, Result("cancelled", error=GONE))])
    state = tx.jobs.states([job.id])[job.id]
    tx.jobs.define(job._replace(removed_at=tx.now, updated_at=tx.now))
    tx.jobs.save(
        [
            state._replace(
                revision=state.revision + 1,
                enabled=0,
                due_at=state.due_at if state.run_id is not None else None,  # a waiting run keeps its deadline
                next_at=None,
                slot=None,
                queued=0,
                parked=None,
            )
        ]
    )
    tx.jobs.unchain(job.id)
    leave_lanes(tx, [job.id])
    for kind in OF_A_JOB:
        close_alert(tx, kind, job.id)
    tx.journal.emit("job", _event("removed", job))
    return job.id


# -- pause and resume -------------------------------------------------------------------------------------------------


def pause_job(tx: Transaction, context: Context, ref: str, note: str | None = None) -> None:
    """No start by time until resumed. A run in progress finishes; a person may still start it by hand."""
    pause_all(tx, context, [find_job(tx, ref)], note)


def pause_all(
    tx: Transaction, context: Context, pairs: Sequence[tuple[JobDef, JobState]], note: str | None
) -> list[str]:
    """Pause many at the price of a few statements; the names of those that were not paused already."""
    text = f"paused: {note}" if note else None
    paused = [(job, _paused(state, text, tx.now)) for job, state in pairs if text is not None or not state.paused]
    tx.jobs.save([state for _, state in paused])
    # Only now: what ends here may start jobs after it, but none of those that are paused with it.
    left = [_without_pending(tx, context, pair, "the job was paused") for pair in paused if pair[1].queued]
    tx.jobs.save([_armed_for_queue(state, tx.now) for state in left])
    _emit_many(tx, "paused", [job for job, _ in paused])
    return [job.name for job, _ in paused]


def _without_pending(
    tx: Transaction, context: Context, pair: tuple[JobDef, JobState], why: str, keep: Sequence[str] = BY_HAND
) -> JobState:
    """End what waits to be started, but for what a person asked for: it belongs to a time that is over."""
    job, state = pair
    if not state.queued:
        return state
    pending = [run for run in tx.runs.open(job.id) if run.status == "queued" and run.reason not in keep]
    drop_runs(tx, context, job, pending, why)
    return state._replace(queued=state.queued - len(pending))


def _event(what: str, job: JobDef) -> dict[str, object]:
    return {"type": what, "job_id": job.id, "job": job.name}


def _emit_many(tx: Transaction, what: str, jobs: Sequence[JobDef]) -> None:
    """One event each; of very many only how many, for whoever reads events reads all of one transaction at once."""
    if len(jobs) > MANY:
        tx.journal.emit("job", {"type": f"{what}_many", "count": len(jobs)})
    elif jobs:
        tx.journal.emit("job", *[_event(what, job) for job in jobs])


def _paused(state: JobState, note: str | None, now: int) -> JobState:
    state = state._replace(
        paused=1, next_at=None, slot=None, parked=None, ready_at=None, notes=add_note(state.notes, note)
    )
    return _armed_for_queue(state, now)


def _armed_for_queue(state: JobState, now: int) -> JobState:
    """A job that starts no more by time is only looked at for what waits to be started."""
    return state if state.run_id is not None else state._replace(due_at=now if state.queued else None)


def disable_job(tx: Transaction, context: Context, ref: str) -> None:
    """Switch a job off; like paused, but it may not be started by hand either."""
    job, state = find_job(tx, ref)
    state = _without_pending(tx, context, (job, state), "the job was disabled", keep=())
    state = state._replace(enabled=0, next_at=None, slot=None, parked=None, ready_at=None)
    tx.jobs.save([state if state.run_id is not None else state._replace(due_at=None)])
    tx.journal.emit("job", _event("disabled", job))


def enable_job(tx: Transaction, context: Context, ref: str) -> None:
    """Switch a job on again. One that is also paused stays so; one that has no future stays as it is."""
    job, state = find_job(tx, ref)
    if state.enabled:
        return
    if state.paused:
        tx.jobs.save([state._replace(enabled=1, errors=0, crashes=0, failing_since=None)])
    else:
        resume_all(tx, context, [(job, state)])


def resume_job(tx: Transaction, context: Context, ref: str) -> None:
    """Errors forgotten, idle again, and a fresh next time; nothing that went by is caught up."""
    for refusal in resume_all(tx, context, [find_job(tx, ref)]).values():
        raise refusal


def resume_all(
    tx: Transaction, context: Context, pairs: Sequence[tuple[JobDef, JobState]]
) -> dict[str, ScheduleTriggerError]:
    """Resume many at the price of a few statements; those that cannot be, with the reason, stay as they are."""
    resumed, refused = [], {}
    for job, state in _without_leftovers(tx, context, pairs):
        if state.enabled and not state.paused and not state.errors:
            continue
        try:
            resumed.append((job, _resumed(tx, context, job, state)))
        except ScheduleTriggerError as error:
            refused[job.name] = error
    tx.jobs.save([state for _, state in resumed])
    over = {
        alert_key(kind, job.id) for job, _ in resumed for kind in ("disabled", "failed", "failing", "stuck", "down")
    }
    for alert in tx.journal.open_alerts() if over else ():
        if alert.key in over:
            tx.journal.close_alert(alert.key, tx.now)
    _emit_many(tx, "resumed", [job for job, _ in resumed])
    return refused


def _without_leftovers(
    tx: Transaction, context: Context, pairs: Sequence[tuple[JobDef, JobState]]
) -> Sequence[tuple[JobDef, JobState]]:
    """The jobs, without the starts that were pending when they were stopped."""
    stopped = [pair for pair in pairs if pair[1].queued and (pair[1].paused or not pair[1].enabled)]
    if not stopped:
        return pairs
    for pair in stopped:
        tx.jobs.save([_without_pending(tx, context, pair, "the job was stopped before it could start")])
    states = tx.jobs.states([job.id for job, _ in pairs])  # again: what ended may have started others of them
    return [(job, states[job.id]) for job, _ in pairs]


def _resumed(tx: Transaction, context: Context, job: JobDef, state: JobState) -> JobState:
    trigger = trigger_of(job.trigger)
    notes = add_note(None, thinned_note(trigger))
    state = state._replace(
        enabled=1, paused=0, errors=0, crashes=0, failing_since=None, parked=None, ready_at=None, backoff_until=None,
        notes=notes,
    )  # fmt: skip
    if state.run_id is None:
        coming = next_start(trigger, state, tx.now, context.rng.random())
        if coming.slot is None and coming.ended is not None and not state.queued:
            state = _again_once(tx, context, job, state, coming)
        else:
            state = state._replace(slot=coming.slot, next_at=coming.at)
        state = state._replace(due_at=alarm(state, tx.now if state.queued else None))
    return state


def _again_once(tx: Transaction, context: Context, job: JobDef, state: JobState, coming: Next) -> JobState:
    """A one-shot that did not succeed is tried once more; whatever else has no future cannot be resumed."""
    last = tx.runs.get(state.last_run_id) if state.last_run_id is not None else None
    if trigger_of(job.trigger).type != "once" or last is None or last.outcome in ("success", "noop"):
        why = coming.ended or "its one time has passed"
        message = f"{job.name} would never run again: {why}. Give it a new time first."
        raise ScheduleTriggerError(message, {"job": job.name, "reason": "disabled"})
    while (successor := tx.runs.successor(last.id)) is not None and (dropped := tx.runs.get(successor)) is not None:
        last = dropped  # a further attempt that a pause ended
    tx.runs.add([RunRow.again(context.new_id(), last, "manual", tx.now)._replace(kind=job.kind)])
    return state._replace(queued=state.queued + 1)
