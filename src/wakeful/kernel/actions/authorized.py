"""What callers from outside do to jobs and runs: within their rights, under conditions, and never half.

Each function is one transaction. Rights are checked against what is stored in that transaction, not against what was
read before it. Jobs whose trigger a caller wrote are `bounded`: they obey the server's minimum interval.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.errors import ChangedSinceRead, JobExists, NotAllowed, RunNotFound
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.actions import pausing
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.actions.authorization import (
    check_approval_kept,
    check_kind_allows,
    check_may_be_replaced,
    check_name_not_awaited,
    check_predecessor,
    check_quota,
    own_job,
    refuse_admin_kind,
    refuse_lanes,
    refuse_priority,
    size_of,
)
from wakeful.kernel.actions.drafts import changed_fields, check_payload, from_outside
from wakeful.kernel.actions.lookup import find_run, require_run
from wakeful.kernel.actions.proposing import refuse_own_answer, refuse_proposed
from wakeful.kernel.actions.recording import Origin, note, on_record, origin_of
from wakeful.kernel.actions.stops import is_stopped, note_stops, refuse_stopped
from wakeful.kernel.context import Context, Rights
from wakeful.kernel.hooks import Draft
from wakeful.kernel.kinds import Kinds
from wakeful.kernel.model.job import Job, job_view
from wakeful.kernel.model.run import Run, run_views
from wakeful.kernel.rules.options import from_text, to_text
from wakeful.kernel.rules.policy import refuse_too_often, trigger_of, trigger_text
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState
from wakeful.triggers import Trigger


class Condition(NamedTuple):
    """What must be so for a change to be made; the default asks for nothing."""

    revisions: frozenset[int] | None = None  # the job is at one of these
    exists: bool = False
    absent: bool = False

    def check(self, name: str, state: JobState | None) -> None:
        """ChangedSinceRead when it is not so."""
        if state is None:
            if self.exists or self.revisions is not None:
                message = f"There is no job {name!r}, and the request changes only an existing one."
                raise ChangedSinceRead(message)
            return
        if self.absent:
            message = f"A job named {name!r} already exists, at revision {state.revision}."
            raise ChangedSinceRead(message)
        if self.revisions is not None and state.revision not in self.revisions:
            message = f"{name} is at revision {state.revision}: read it again, then repeat your change."
            raise ChangedSinceRead(message)


ALWAYS = Condition()


class Changed(NamedTuple):
    """A job as it is after a request, and whether the request made it."""

    job: Job
    created: bool
    action: str | None = None  # by which it can be undone that it was switched on or off


# -- rights ------------------------------------------------------------------------------------------------------------


def ensure_own_run(tx: Transaction, run_id: int, rights: Rights) -> None:
    """RunNotFound unless this caller may see the run."""
    job, _, _ = find_run(tx, run_id)
    if not rights.sees(job):
        message = f"There is no run {ids.run_text(run_id)} of {rights.owner}."
        raise RunNotFound(message)


# -- writing jobs ------------------------------------------------------------------------------------------------------


def create_job(tx: Transaction, context: Context, draft: Draft, *, enabled: bool = True) -> Job:
    """A new job under a free name."""
    rights = context.rights
    draft = _allowed(draft, rights, context.declared, None)
    refuse_too_often(draft.trigger, rights.min_interval)
    check_predecessor(tx, rights, draft.trigger)
    check_name_not_awaited(tx, rights, draft.name)
    check_kind_allows(tx, rights, draft.kind, draft.payload, None)
    refuse_lanes(tx, rights, context.declared, draft, None)
    draft = draft._replace(options=_with(draft.options, bounded=True))
    if tx.jobs.by_name(draft.name) is not None:
        message = f"A job named {draft.name!r} already exists: choose another name, or replace it."
        raise JobExists(message)
    check_quota(tx, rights, size_of(trigger_text(draft.trigger), draft.payload, draft.options), jobs=1)
    (job_id,) = job_actions.add_jobs(tx, context, [draft], "error", context.zone())
    if not enabled:
        pausing.disable_job(tx, context, ids.job_text(job_id), own=rights.owned is not None)
    view = _view(tx, job_id)
    _note(tx, _alone(context), "add", job_id)
    return view


def put_job(
    tx: Transaction, context: Context, draft: Draft, condition: Condition = ALWAYS, *, enabled: bool | None = None
) -> Changed:
    """Create or replace the job of that name. An unchanged definition is not written."""
    rights, zone = context.rights, context.zone()
    found = tx.jobs.by_name(draft.name)
    if found is not None and not rights.sees(found[0]):
        message = f"The name {draft.name!r} belongs to another owner's job: choose another name."
        raise NotAllowed(message)
    condition.check(draft.name, found[1] if found is not None else None)
    if found is None:
        try:
            return Changed(create_job(tx, context, draft, enabled=enabled is not False), created=True)
        except JobExists:  # another node made it since we looked; from here on it is there to be replaced
            return put_job(tx, context, draft, condition, enabled=enabled)
    job, _ = found
    draft = _allowed(draft, rights, context.declared, job)
    refuse_admin_kind(rights, context.declared, job.kind)
    refuse_proposed(rights, job)
    context.declared.refuse_managed(job)
    check_approval_kept(rights, job, draft.options)
    check_kind_allows(tx, rights, draft.kind, draft.payload, job)
    refuse_lanes(tx, rights, context.declared, draft, job)
    check_quota(tx, rights, size_of(trigger_text(draft.trigger), draft.payload, draft.options) - _size(job))
    bounded = from_text(job.options).bounded
    if _moves(tx, job, draft.trigger, zone):
        refuse_too_often(draft.trigger, rights.min_interval)
        check_predecessor(tx, rights, draft.trigger)
        bounded = True
    draft = draft._replace(options=_with(draft.options, bounded=bounded), source=job.source)
    job_actions.add_jobs(tx, context, [draft], "update", zone)
    _note_edit(tx, context, found)
    action = _switch(tx, context, job.id, enabled=enabled)
    return Changed(_view(tx, job.id), created=False, action=action)


def patch_job(
    tx: Transaction, context: Context, ref: str, changes: dict[str, Any], condition: Condition = ALWAYS
) -> Changed:
    """Some of a job changed, the rest as it is."""
    rights, zone = context.rights, context.zone()
    job, state = own_job(tx, ref, rights)
    condition.check(job.name, state)
    refuse_proposed(rights, job)
    refuse_admin_kind(rights, context.declared, job.kind, str(changes.get("kind", job.kind)))
    if rights.owner is not None and changes.get("owner", rights.owner) != rights.owner:
        message = f"{rights.owner} cannot give its jobs to another owner."
        raise NotAllowed(message)
    changes = _marked(job, changes, context.declared)
    trigger = changes.get("trigger")
    if trigger is not None:
        if _moves(tx, job, trigger, zone):
            refuse_too_often(trigger, rights.min_interval)
            check_predecessor(tx, rights, trigger)
            changes["bounded"] = True
        else:
            del changes["trigger"]
    enabled = changes.pop("enabled", None)
    fields = changed_fields(job, changes, context.declared)
    _refuse_fields(tx, context.declared, rights, job, fields)
    if fields.get("name", job.name) != job.name:
        refuse_stopped(tx, rights, (job, state))
    if changes:
        context.declared.refuse_managed(job)
        job_actions.update_job(tx, context, ids.job_text(job.id), changes, revision=None, zone=zone)
        _note_edit(tx, context, (job, state))
    action = _switch(tx, context, job.id, enabled=enabled)
    return Changed(_view(tx, job.id), created=False, action=action)


def _marked(job: JobDef, changes: dict[str, Any], kinds: Kinds) -> dict[str, Any]:
    """The changes with the payload as its kind keeps one from outside: also where only the kind is another now."""
    kind = kinds.declared(str(changes.get("kind", job.kind)))
    if kind.from_outside is None or not {"kind", "payload"} & set(changes):
        return dict(changes)
    payload = changes["payload"] if "payload" in changes else json.loads(job.payload)
    return {**changes, "payload": from_outside(payload, kind)}


def _refuse_fields(tx: Transaction, kinds: Kinds, rights: Rights, job: JobDef, fields: dict[str, Any]) -> None:
    """What stands against the columns a change would give a job."""
    trigger = fields.get("trigger")
    changed = job._replace(
        name=fields.get("name", job.name),
        kind=fields.get("kind", job.kind),
        payload=fields.get("payload", job.payload),
        options=fields.get("options", job.options),
        trigger=job.trigger if trigger is None else trigger_text(trigger),
    )
    check_approval_kept(rights, job, changed.options)
    refuse_priority(rights, changed.options, job)
    if changed.name != job.name:
        check_may_be_replaced(rights, job)
        check_name_not_awaited(tx, rights, changed.name)
    check_kind_allows(tx, rights, changed.kind, changed.payload, job)
    refuse_lanes(tx, rights, kinds, changed, job)
    check_quota(tx, rights, _size(changed) - _size(job))


def _size(job: JobDef) -> int:
    return size_of(job.trigger, job.payload, job.options)


def remove_job(tx: Transaction, context: Context, ref: str, condition: Condition = ALWAYS) -> str | None:
    """Remove a job; the id of the action, by which it can be restored."""
    rights = context.rights
    job, state = own_job(tx, ref, rights)
    condition.check(job.name, state)
    refuse_admin_kind(rights, context.declared, job.kind)
    context.declared.refuse_managed(job)
    check_may_be_replaced(rights, job)
    refuse_stopped(tx, rights, (job, state))
    removal = partial(job_actions.remove_job, tx, context, ids.job_text(job.id))
    return on_record(tx, origin_of(context), "remove", [(job, state)], removal)[1]


def _allowed(draft: Draft, rights: Rights, kinds: Kinds, before: JobDef | None) -> Draft:
    """The draft as this caller may have it: no commands, no place before others, and no owner but itself."""
    refuse_admin_kind(rights, kinds, draft.kind)
    refuse_priority(rights, draft.options, before)
    if rights.owner is None:
        return draft
    if draft.owner not in (None, rights.owner):
        message = f"{rights.owner} cannot make jobs for another owner."
        raise NotAllowed(message)
    return draft._replace(owner=rights.owner)


def _moves(tx: Transaction, job: JobDef, trigger: Trigger, zone: str) -> bool:
    """Whether the trigger means anything else than the stored one."""
    stored = trigger_of(job.trigger)
    return trigger.resolved(tx.now, zone, keep=stored) != stored


def _with(options: str, *, bounded: bool) -> str:
    return to_text(from_text(options)._replace(bounded=bounded))


def _switch(tx: Transaction, context: Context, job_id: int, *, enabled: bool | None) -> str | None:
    """Switch a job on or off; the id of the action, where that changed anything."""
    pair, own = tx.jobs.by_id(job_id), context.rights.owned is not None
    if pair is None or enabled is None:
        return None
    state, ref = pair[1], ids.job_text(job_id)
    if enabled and is_stopped(state):
        refuse_stopped(tx, context.rights, pair)
        resume = partial(pausing.resume_job, tx, context, ref)
        return on_record(tx, origin_of(context), "resume", [pair], resume)[1]
    if not enabled and (state.enabled or state.ended_at is not None):
        disable = partial(pausing.disable_job, tx, context, ref, own=own)
        return on_record(tx, origin_of(context), "disable", [pair], disable)[1]
    if not enabled:  # it is switched off already, perhaps by its owner
        note_stops(tx, [pair], own=own)
    return None


def _note(tx: Transaction, origin: Origin, what: str, job_id: int, run_id: int | None = None) -> None:
    """Keep who did what cannot be undone."""
    found = tx.jobs.definitions([job_id]).get(job_id)
    if found is not None:
        note(tx, origin, what, found, run_id)


def _alone(context: Context) -> Origin:
    """The origin of an action of its own, apart from others of the same request."""
    return Origin(context.rights.caller, context.rights.via, context.new_id())


def _note_edit(tx: Transaction, context: Context, before: tuple[JobDef, JobState]) -> None:
    """Keep who changed a job, where it was changed."""
    job, state = before
    now = tx.jobs.by_id(job.id)
    if now is not None and now[1].revision != state.revision:
        _note(tx, _alone(context), "edit", job.id)


def _view(tx: Transaction, job_id: int) -> Job:
    found = tx.jobs.by_id(job_id)
    assert found is not None  # noqa: S101 - written in this transaction
    return job_view(tx, found)


# -- runs --------------------------------------------------------------------------------------------------------------


def run_job(tx: Transaction, context: Context, ref: str, payload: Any = None) -> Run:
    """Start a job by hand. A command with another payload is another command, and needs the right to write one."""
    rights = context.rights
    job, state = own_job(tx, ref, rights)
    refuse_stopped(tx, rights, (job, state))
    if payload is not None:
        refuse_admin_kind(rights, context.declared, job.kind)
        kind = context.declared.declared(job.kind)
        payload = from_outside(payload, kind)
        text = check_payload(payload, kind)
        check_kind_allows(tx, rights, job.kind, text, job)
        check_quota(tx, rights, len(text))
    run_id = run_actions.run_now(tx, context, ids.job_text(job.id), payload)
    _note(tx, _alone(context), "run", job.id, run_id)
    return _run(tx, run_id)


def retry_run(tx: Transaction, context: Context, run: str) -> Run:
    run_id = require_run(run)
    ensure_own_run(tx, run_id, context.rights)
    refuse_stopped(tx, context.rights, find_run(tx, run_id)[:2])
    given = tx.runs.details_of([run_id]).get(run_id)
    check_quota(tx, context.rights, len(given.payload or "") if given is not None else 0)
    again = run_actions.retry_run(tx, context, run_id)
    return _noted(tx, context, "retry", again)


def cancel_run(tx: Transaction, context: Context, run: str) -> Run:
    run_id = require_run(run)
    ensure_own_run(tx, run_id, context.rights)
    job, _, row = find_run(tx, run_id)
    refuse_own_answer(context.rights, job, row)
    run_actions.cancel_run(tx, context, run_id)
    return _noted(tx, context, "cancel", run_id)


def approve_run(tx: Transaction, context: Context, run: str, said: str | None) -> Run:
    """Say yes; the run that continues."""
    run_id = require_run(run)
    ensure_own_run(tx, run_id, context.rights)
    again = run_actions.approve_run(tx, context, run_id, context.rights.caller, said)
    return _noted(tx, context, "approve", again)


def reject_run(tx: Transaction, context: Context, run: str, said: str | None) -> Run:
    """Say no; the run that ended."""
    run_id = require_run(run)
    ensure_own_run(tx, run_id, context.rights)
    run_actions.reject_run(tx, context, run_id, context.rights.caller, said)
    return _noted(tx, context, "reject", run_id)


def _noted(tx: Transaction, context: Context, what: str, run_id: int) -> Run:
    """The run, after keeping who did that to it."""
    run = _run(tx, run_id)
    job_id = ids.number_of("job", run.job_id)
    if job_id is not None:
        _note(tx, _alone(context), what, job_id, run_id)
    return run


def _run(tx: Transaction, run_id: int) -> Run:
    row = tx.runs.get(run_id)
    assert row is not None  # noqa: S101 - written in this transaction
    return run_views(tx, [row])[0]
