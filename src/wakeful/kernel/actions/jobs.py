"""What people and programs do to jobs: add, change, remove.

Each function is one transaction: read the job, decide, write. An edit commits at once and gives the job a new
revision; a run in progress keeps what it was started with and settles against what it then finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful.errors import ChangedSinceRead, InvalidTrigger, JobExists
from wakeful.kernel.actions.drafts import chain, changed_fields, check_flag, follows, rename_in_chains
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.actions.pausing import disable_job, job_event, resume_job
from wakeful.kernel.actions.stops import note_given
from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import OF_A_JOB, UNSERVED, close_alerts
from wakeful.kernel.engine.ending import drop_runs, end_proposal, open_proposal
from wakeful.kernel.engine.lines import enter_lanes, leave_lanes
from wakeful.kernel.engine.stretches import keep_passed
from wakeful.kernel.engine.turn import GONE, FinishedRun, settle_all
from wakeful.kernel.hooks import Draft
from wakeful.kernel.model.job import Job, job_view
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import APPROVAL, Result
from wakeful.kernel.rules.passing import MERGED, REMOVED, Passed, skip_old_slots, skip_slots, why_waiting
from wakeful.kernel.rules.policy import (
    Next,
    add_note,
    alarm,
    next_start,
    notes_of_pause,
    thinned_note,
    trigger_of,
    trigger_text,
)
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState
from wakeful.triggers import Once

# -- adding and changing ----------------------------------------------------------------------------------------------


def add_jobs(tx: Transaction, context: Context, drafts: Sequence[Draft], if_exists: str, zone: str) -> list[int]:
    """Store all of them or none; the ids in the order given."""
    names = [draft.name for draft in drafts]
    taken = tx.jobs.taken(names) if if_exists == "error" else tx.jobs.names(names)
    new: list[tuple[JobDef, JobState]] = []
    found: list[int] = []
    updated: list[tuple[JobDef, JobDef]] = []
    spread = _spread(context, [draft for draft in drafts if draft.name not in taken], tx.now)
    for draft in drafts:
        known = taken.get(draft.name)
        if known is None:
            job, state = _place(tx, context, spread.get(draft.name, draft), zone)
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
    keep_new(tx, context, new)
    move_lanes(tx, updated)
    return found


def keep_new(tx: Transaction, context: Context, new: Sequence[tuple[JobDef, JobState]]) -> None:
    """Store jobs whose names are free, as they are given."""
    context.declared.refuse_reserved(tx, ((job.name, job.kind) for job, _ in new))
    context.declared.check_names(job for job, _ in new)
    tx.jobs.add(new)
    _note_stored(tx, context, [job for job, _ in new])
    for job, _ in new:
        if follows(job):
            chain(tx, job)
    enter_lanes(tx, [job for job, _ in new])
    if new:
        tx.events.emit("job", *[job_event("added", job) for job, _ in new])


def _spread(context: Context, drafts: Sequence[Draft], now: int) -> dict[str, Draft]:
    """The new jobs whose kind places them among the others that are added with them."""
    found: dict[str, Draft] = {}
    for name in {draft.kind for draft in drafts}:
        spread = context.declared.declared(name).spread
        mine = {draft.name: draft for draft in drafts if draft.kind == name} if spread is not None else {}
        triggers = spread(list(mine.values()), now) if spread is not None else {}
        found |= {name: mine[name]._replace(trigger=trigger) for name, trigger in triggers.items()}
    return found


def _note_stored(tx: Transaction, context: Context, jobs: Sequence[JobDef]) -> None:
    """Let the kinds that keep something of their own about their jobs do so."""
    for name in {job.kind for job in jobs}:
        stored = context.declared.declared(name).stored
        if stored is not None:
            stored(tx, context, [job for job in jobs if job.kind == name])


def _update_known(
    tx: Transaction, context: Context, known: int, new: list[tuple[JobDef, JobState]], *, draft: Draft, zone: str
) -> tuple[JobDef, JobDef]:
    """The job as it was and as it is now."""
    if any(job.id == known for job, _ in new):
        message = f"{draft.name!r} is given twice in one call."
        raise JobExists(message)
    pair = tx.jobs.by_id(known)
    assert pair is not None  # noqa: S101 - read in this transaction
    if pair[0].kind != draft.kind:
        context.declared.refuse_managed(pair[0])
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
    if enabled is False and (state.enabled or state.ended_at is not None):
        disable_job(tx, context, ref)
    elif enabled is True:
        resume_job(tx, context, ref)
    fields = changed_fields(job, {key: value for key, value in changes.items() if key != "enabled"}, context.declared)
    if fields:
        changed = _redefine(tx, context, ref, fields, zone)
        return job_view(tx, (changed, tx.jobs.states([changed.id])[changed.id]))
    return job_view(tx, find_job(tx, ref))


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
    if name != pair[0].name:
        context.declared.refuse_reserved(tx, [(name, str(changes.get("kind", pair[0].kind)))])
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

    With `keep_due` a due slot still runs, even if the trigger changed, where both recur by time.
    """
    passed: list[Passed] = []
    made = [
        (pair, *_changed(tx, context, pair, changes, zone, passed=passed, keep_due=keep_due)) for pair, changes in edits
    ]
    moved = [(job, changed, state) for (job, _), changed, state in made if changed != job]
    context.declared.check_names(changed for job, changed, _ in moved if _named(changed) != _named(job))
    tx.jobs.define(*[changed for _, changed, _ in moved])
    tx.jobs.save([state for _, _, state in moved])
    keep_passed(tx, passed)
    _note_stored(tx, context, [changed for job, changed, _ in moved if changed.kind != job.kind])
    close_alerts(tx, context, UNSERVED, [job.id for job, changed, _ in moved if _waits_again(job, changed)])
    chained = [(job, changed) for job, changed, _ in moved if follows(job) or follows(changed)]
    for job, _ in chained:
        tx.jobs.unchain(job.id)
    for _, changed in chained:
        chain(tx, changed)
    for job, changed, state in moved:
        if changed.name != job.name:
            rename_in_chains(tx, job.name, changed.name)
        tx.events.emit("job", {**job_event("changed", changed), "revision": state.revision})
    return [changed for _, changed, _ in made]


def _changed(
    tx: Transaction,
    context: Context,
    pair: tuple[JobDef, JobState],
    changes: dict[str, Any],
    zone: str,
    *,
    passed: list[Passed],
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
    if changed.owner != job.owner:
        note_given(tx, changed, state)
    before, state = state, state._replace(revision=state.revision + 1, priority=from_text(changed.options).priority)
    if changed.trigger != job.trigger:
        tx.stretches.retire_trigger(job.id, job.trigger, tx.now)
        kept_slot = keep_due and is_due(before, tx.now) and _recurs(job) and _recurs(changed)
        state, found = _skip_old_slots(job, state, tx.now, kept_slot=kept_slot)
        passed += found
        state = _retime(context, changed, state._replace(slot_runs=0), tx.now)
        if kept_slot:
            kept = ("due_at", "next_at", "slot", "parked", "ready_at")
            state = state._replace(**{name: getattr(before, name) for name in kept})
    elif state.parked is not None or is_put_off(state, tx.now):
        # What it waits for may be another thing now, or nothing.
        state = state._replace(parked=None, due_at=tx.now)
    return changed, state


def _skip_old_slots(job: JobDef, state: JobState, now: int, *, kept_slot: bool) -> tuple[JobState, tuple[Passed, ...]]:
    """What came up to now and has not run belongs to the old trigger; `kept_slot`: but the first of it is still run."""
    if not kept_slot:
        return skip_old_slots(job.trigger, state, now)
    begin = max(state.counted_to, state.slot or 0)
    return skip_slots(job.trigger, state._replace(counted_to=begin, slot=None), now, MERGED)


def _named(job: JobDef) -> tuple[str, str, str]:
    return job.name, job.kind, job.payload


def _waits_again(job: JobDef, changed: JobDef) -> bool:
    """Whether the job is due at another time now, or waits for another node."""
    return (job.trigger, job.kind, from_text(job.options).labels) != (
        changed.trigger, changed.kind, from_text(changed.options).labels,
    )  # fmt: skip


def _recurs(job: JobDef) -> bool:
    """Whether it starts by time again and again: the one time of a one-shot is the one it has now."""
    trigger = trigger_of(job.trigger)
    return trigger.timed and not trigger.reports and trigger.type != "once"


def is_put_off(state: JobState, now: int) -> bool:
    """Whether its kind lets a start wait that could have been."""
    return state.run_id is None and state.ready_at is not None and state.due_at is not None and state.due_at > now


def is_due(state: JobState, now: int) -> bool:
    """Whether a slot's time has come and it is not running yet."""
    return state.run_id is None and state.next_at is not None and state.next_at <= now


def _retime(context: Context, job: JobDef, state: JobState, now: int) -> JobState:
    """A new trigger moves the next time; a run in progress moves it when it ends."""
    trigger = trigger_of(job.trigger)
    notes = add_note(notes_of_pause(state), thinned_note(trigger))
    state = state._replace(next_at=None, slot=None, parked=None, ready_at=None, backoff_until=None, notes=notes)
    if state.ended_at is not None:  # it was over, and is given further times
        state = state._replace(enabled=1, ended_at=None, errors=0, crashes=0, failing_since=None)
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
        id=context.new_id(), name=draft.name, kind=draft.kind, owner=draft.owner, source=draft.source,
        trigger=trigger_text(trigger), payload=draft.payload, options=draft.options, created_at=now, updated_at=now,
        removed_at=None,
    )  # fmt: skip
    notes = add_note(None, thinned_note(trigger))
    state = JobState.new(job.id, notes, priority=from_text(draft.options).priority, counted_to=now)
    coming = next_start(trigger, state, now, context.rng.random())
    _refuse_never(coming, draft.name)
    return job, state._replace(due_at=coming.at, next_at=coming.at, slot=coming.slot)


def _refuse_never(coming: Next, name: str) -> None:
    if coming.slot is None and coming.ended is not None:
        why = coming.ended or "its one time has passed"
        message = f"{name} would never run: {why}."
        raise InvalidTrigger(message)


def remove_job(tx: Transaction, context: Context, ref: str) -> int:
    """Remove the definition; a run in progress finishes, and history stays under its name."""
    job, state = find_job(tx, ref)
    drop_runs(tx, context, job, [run for run in tx.runs.open(job.id) if run.status == "queued"], GONE)
    if (proposal := open_proposal(tx, job)) is not None:
        end_proposal(tx, context, job, proposal, Result("cancelled", error=GONE))
    for run in tx.runs.open(job.id):
        if run.status == "waiting" and run.phase == APPROVAL:  # no question is left about what is gone
            settle_all(tx, context, [FinishedRun(job, state.revision, run, Result("cancelled", error=GONE))])
    state = tx.jobs.states([job.id])[job.id]
    state, passed = skip_slots(job.trigger, state, tx.now, why_waiting(state, REMOVED))
    keep_passed(tx, passed)
    tx.jobs.define(job._replace(removed_at=tx.now, updated_at=tx.now))
    tx.jobs.save(
        [
            state._replace(
                revision=state.revision + 1,
                enabled=0,
                ended_at=tx.now,
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
    close_alerts(tx, context, OF_A_JOB, [job.id], "the job was removed")
    tx.events.emit("job", job_event("removed", job))
    return job.id
