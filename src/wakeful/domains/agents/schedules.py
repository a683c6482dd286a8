"""Schedules: what is sent to a session, and when; a plainer view of jobs of kind `session`.

Each function is one transaction. A schedule is its job: the same rights, limits, history and explanations hold for it
under either name. What it does not speak of (retries, labels, and so on) is left as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.agents import SESSION
from wakeful.domains.agents.ad_hoc_schedules import added_schedule
from wakeful.domains.agents.naming import AGENT, LANE
from wakeful.domains.agents.schedule_options import edited, said_options, with_lanes
from wakeful.domains.agents.tables import Sessions
from wakeful.domains.agents.task import Task, read_task
from wakeful.domains.agents.timing import is_same, read_timing
from wakeful.errors import InvalidJob, JobExists, JobNotFound, NotAllowed
from wakeful.kernel.actions import authorized, pausing
from wakeful.kernel.actions.drafts import NewJob, draft
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.actions.recording import on_record, origin_of
from wakeful.kernel.actions.runs import run_now
from wakeful.kernel.actions.stops import refuse_stopped
from wakeful.kernel.model.job import Job, job_views
from wakeful.kernel.rules.options import OPTION_NAMES, as_written, from_text
from wakeful.kernel.rules.policy import trigger_of
from wakeful.store.jobs import JobFilter
from wakeful.triggers import Trigger, to_ms

if TYPE_CHECKING:
    from wakeful.kernel.context import Context, Rights
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunDetails

SOURCE = "api"
SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
ERROR_SPAN = "24h"  # a schedule is not disabled before its errors have gone on for a day


class Schedule(NamedTuple):
    """A schedule as it stands: definition and state."""

    job: Job
    enabled: bool
    task: Task
    session: str | None
    next_at: int | None
    last_result: str | None
    last_error: str | None
    agent: str | None = None
    options: Mapping[str, Any] = NO_OPTIONS  # as it says them itself


class ScheduleSpec(NamedTuple):
    """What a schedule is to be; None leaves that part as it is."""

    task: Task | None = None
    timing: dict[str, Any] | None = None
    enabled: bool | None = None
    agent: str | None = None  # the agent that gets the prompt, instead of a session
    options: dict[str, Any] | None = None  # of its job; None puts one back to its default


# -- reading -----------------------------------------------------------------------------------------------------------


def find(tx: Transaction, slug: str, rights: Rights) -> Schedule:
    """The schedule of that name; JobNotFound where there is none for this caller."""
    return _views(tx, [_own(tx, slug, rights)])[0]


def find_all(tx: Transaction, rights: Rights) -> list[Schedule]:
    """Every schedule that this caller may see, by name."""
    of_sessions = tx.jobs.matching(JobFilter(kind=SESSION, owned=rights.owned))
    of_agents = tx.jobs.matching(JobFilter(kind=AGENT, source=SOURCE, owned=rights.owned))
    return _views(tx, sorted([*of_sessions, *of_agents], key=lambda pair: pair[0].name))


def _own(tx: Transaction, slug: str, rights: Rights) -> tuple[JobDef, JobState]:
    found = tx.jobs.by_name(slug)
    if found is None or not _is_schedule(found[0]) or not rights.sees(found[0]):
        message = f"There is no schedule {slug!r:.300}."
        raise JobNotFound(message)
    return found


def _is_schedule(job: JobDef) -> bool:
    """Jobs of sessions, and jobs of agents that were made here: others belong to their creators."""
    return job.kind == SESSION or (job.kind == AGENT and job.source == SOURCE)


def _agent_of(job: JobDef) -> str | None:
    return str(json.loads(job.payload)["agent"]) if job.kind == AGENT else None


def _views(tx: Transaction, pairs: list[tuple[JobDef, JobState]]) -> list[Schedule]:
    kept = tx.of(Sessions).of_all([job.id for job, _ in pairs])
    last = [state.last_run_id for _, state in pairs if state.last_run_id != state.run_id]
    details = tx.runs.details_of([run_id for run_id in last if run_id is not None])
    views = job_views(tx, pairs)
    return [
        _view(view, job, state, kept, details.get(state.last_run_id or 0))
        for view, (job, state) in zip(views, pairs, strict=True)
    ]


def _view(view: Job, job: JobDef, state: JobState, kept: dict[int, str], details: RunDetails | None) -> Schedule:
    task = _task_of(job)
    next_at = state.due_at if state.queued and state.run_id is None else None
    if next_at is None and view.next_run_at is not None:
        next_at = to_ms(view.next_run_at)
    return Schedule(
        view,
        bool(state.enabled and not state.paused),
        task,
        task.session or kept.get(job.id),
        next_at,
        _last_result(state, details),
        _last_error(state, details),
        _agent_of(job),
        said_options(json.loads(job.payload) if job.kind == AGENT else None, as_written(from_text(job.options))),
    )


def _task_of(job: JobDef) -> Task:
    """The job's payload, as far as it can be read: other code may have written it."""
    if job.kind == AGENT:
        return Task(json.loads(job.payload).get("prompt") or "")
    try:
        return read_task(json.loads(job.payload))
    except InvalidJob:
        return Task("")


def _last_result(state: JobState, details: RunDetails | None) -> str | None:
    """How the last run ended. A busy session is an error to readers of schedules; the run itself is deferred."""
    busy = state.last_outcome == "deferred" and details is not None and details.output is not None
    return "error" if busy else state.last_outcome


def _last_error(state: JobState, details: RunDetails | None) -> str | None:
    """Why the last run did not succeed: also a busy session and a report that never came are shown."""
    if state.last_outcome in (None, "success", "noop"):
        return None
    if details is None:
        return state.last_error
    if details.error is None and details.output is not None:
        said = json.loads(details.output)
        return said if isinstance(said, str) else state.last_error
    return details.error or state.last_error


# -- writing -----------------------------------------------------------------------------------------------------------


def put(
    tx: Transaction, context: Context, slug: str, wanted: ScheduleSpec, defaults: Mapping[str, Any] = NO_OPTIONS
) -> tuple[Schedule, bool, str | None]:
    """The schedule of that name as requested, whether this made it, and the action, if it was switched on or off.

    `defaults` are the options of a new one that it does not give itself.
    """
    found, action = tx.jobs.by_name(slug), None
    _check(wanted)
    if found is None:
        _make(tx, context, slug, wanted, defaults)
    else:
        job, _ = found
        if not context.rights.sees(job):
            message = f"The name {slug!r} belongs to another owner's job: choose another name."
            raise NotAllowed(message)
        if not _is_schedule(job):
            message = f"{slug!r} is a job of kind {job.kind}, not a schedule: choose another name."
            raise JobExists(message)
        if _agent_of(job) != wanted.agent:
            message = (
                f"{slug!r} is a schedule of {_agent_of(job) or 'a session'}: remove it first, or choose another name."
            )
            raise JobExists(message)
        _, action = patch(tx, context, slug, wanted)
    return find(tx, slug, context.rights), found is None, action


def _check(wanted: ScheduleSpec) -> None:
    if wanted.task is not None:
        read_task(wanted.task.to_payload())
    others = (wanted.options or {}).keys() - {*OPTION_NAMES, "hooks"}
    if others:  # options are given together with what else can be changed about a job: its kind, its payload
        message = f"A schedule has no option {min(others)!r:.60}."
        raise InvalidJob(message)


def _make(tx: Transaction, context: Context, slug: str, wanted: ScheduleSpec, defaults: Mapping[str, Any]) -> None:
    if SLUG.fullmatch(slug) is None:
        message = f"A slug is 1 to 100 letters, digits, dots, dashes and underscores, not {slug!r:.120}."
        raise InvalidJob(message)
    assert wanted.task is not None and wanted.timing is not None  # noqa: S101, PT018 - a whole definition
    trigger = read_timing(wanted.timing, tx.now, context.rights.min_interval)
    if wanted.agent is not None:
        prompt = wanted.task.prompt
        options = {**defaults, **(wanted.options or {})}
        new = added_schedule(tx, wanted.agent, slug, trigger, prompt=prompt, options=options)
        context = _for_agents(context)
    else:
        own = with_lanes({"lanes": _lanes({}, wanted.task)}, {"lanes": None, **(wanted.options or {})})
        options = {**defaults, "error_span": ERROR_SPAN, **own}
        new = NewJob(slug, trigger, kind=SESSION, payload=wanted.task.to_payload(), **options)
    job = authorized.create_job(tx, context, draft(new, SOURCE, context.declared))
    if wanted.enabled is False:
        pausing.pause_job(tx, context, job.id, own=context.rights.owned is not None)


def _for_agents(context: Context) -> Context:
    """Operators may schedule prompts for agents, but not define agents; agents cannot do either."""
    if context.rights.owner is not None:
        message = f"{context.rights.owner} cannot make or change schedules of agents: an operator can."
        raise NotAllowed(message)
    return context._replace(rights=context.rights._replace(admin_kinds=True))


def patch(tx: Transaction, context: Context, slug: str, wanted: ScheduleSpec) -> tuple[Schedule, str | None]:
    """Some of a schedule changed; and the action, if that switched it on or off.

    A run in progress continues with what it was given.
    """
    job, state = _own(tx, slug, context.rights)
    _check(wanted)
    job_id = ids.job_text(job.id)
    changes: dict[str, Any] = {}
    if wanted.task is not None and wanted.task != _task_of(job):
        changes = _task_changes(job, wanted.task)
    stored = trigger_of(job.trigger)
    if wanted.timing is not None and not is_same(wanted.timing, stored, tx.now, context.zone()):
        changes["trigger"] = read_timing(wanted.timing, tx.now, context.rights.min_interval)
    if wanted.options:
        known = {**as_written(from_text(job.options)), **{key: changes[key] for key in ("lanes",) if key in changes}}
        payload = changes.get("payload", json.loads(job.payload))
        changes |= edited(payload, known, wanted.options) if job.kind == AGENT else with_lanes(known, wanted.options)
    if changes:
        allowed = _for_agents(context) if job.kind == AGENT else context
        authorized.patch_job(tx, allowed, job_id, changes)
    action = None
    if wanted.enabled is False:
        action = _switch(tx, context, job_id, on=False)
    elif wanted.enabled is True and (state.paused or not state.enabled) and not _is_over(stored, state, changes):
        action = _switch(tx, context, job_id, on=True)
    return find(tx, slug, context.rights), action


def _task_changes(job: JobDef, task: Task) -> dict[str, Any]:
    if job.kind == AGENT:
        return {"payload": {**json.loads(job.payload), "prompt": task.prompt}}
    known = as_written(from_text(job.options)).get("lanes", {})
    return {"payload": task.to_payload(), "lanes": _lanes(known, task)}


def _switch(tx: Transaction, context: Context, job_id: str, *, on: bool) -> str | None:
    """Switch a schedule on or off; the action by which that can be undone."""
    pair, rights = find_job(tx, job_id), context.rights
    if on:
        refuse_stopped(tx, rights, pair)
    pause = partial(pausing.pause_job, tx, context, job_id, own=rights.owned is not None)
    work = partial(pausing.resume_job, tx, context, job_id) if on else pause
    return on_record(tx, origin_of(context), "resume" if on else "pause", [pair], work)[1]


def _is_over(trigger: Trigger, state: JobState, changes: dict[str, Any]) -> bool:
    """A one-time schedule that has succeeded: written again as it is, nothing is left to enable."""
    return trigger.type == "once" and not state.paused and state.last_outcome == "success" and "trigger" not in changes


def _lanes(known: dict[str, int], task: Task) -> dict[str, int]:
    """The lanes of a schedule: one that shares a session by name does not run alongside the others that do."""
    lanes = {lane: capacity for lane, capacity in known.items() if not lane.startswith(LANE)}
    return {**lanes, LANE + task.session: 1} if task.session is not None else lanes


def remove(tx: Transaction, context: Context, slug: str) -> str | None:
    """Remove the schedule; a run in progress finishes, and its history stays. The action by which it is restored."""
    job, _ = _own(tx, slug, context.rights)
    allowed = _for_agents(context) if job.kind == AGENT else context
    return authorized.remove_job(tx, allowed, ids.job_text(job.id))


def start(tx: Transaction, context: Context, slug: str) -> tuple[str, str | None]:
    """Start it now; the run's id, and the session it will continue."""
    job, state = _own(tx, slug, context.rights)
    refuse_stopped(tx, context.rights, (job, state))
    run_id = run_now(tx, context, ids.job_text(job.id))
    return ids.run_text(run_id), find(tx, slug, context.rights).session
