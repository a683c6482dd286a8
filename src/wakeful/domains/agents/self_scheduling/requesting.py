"""Schedules of agents, in transactions: made, changed, stopped and removed by the agent, within its bounds."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.agents.hops import MOST_HOPS, RequestingAgent, sender_of, too_far
from wakeful.domains.agents.naming import AGENT, check_name
from wakeful.domains.agents.self_scheduling.bounds import (
    ASK,
    Bounds,
    answer_until,
    bounds_of,
    check_schedule_quota,
    refuse_off,
    within,
)
from wakeful.domains.agents.self_scheduling.question import question_about
from wakeful.domains.agents.senders.tables import Senders
from wakeful.domains.agents.wakes import find_agent
from wakeful.errors import InvalidJob, JobExists, JobNotFound, NotAllowed, QueueFull
from wakeful.kernel.actions import authorized, pausing
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.actions.authorization import check_name_not_awaited, own_job
from wakeful.kernel.actions.drafts import draft
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.actions.proposing import note_written, propose, refuse_edited
from wakeful.kernel.actions.recording import on_record, origin_of
from wakeful.kernel.actions.runs import run_now
from wakeful.kernel.actions.stops import refuse_stopped
from wakeful.kernel.engine.ending import MCP, open_proposal
from wakeful.kernel.rules.policy import trigger_of
from wakeful.store.listing import JobFilter
from wakeful.store.owners import Proposal, Proposals

if TYPE_CHECKING:
    from wakeful.kernel.actions.drafts import NewJob
    from wakeful.kernel.context import Context, Rights
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

MOST_CHANGES = 100  # what one run may do to schedules, together with the events it leaves
_OTHER = re.compile(r"[^a-z0-9]+")


class Requester(NamedTuple):
    """Who asks for schedules of its own: an agent in a run, or a token of the role agent."""

    name: str
    rights: Rights
    bounds: Bounds
    sender: RequestingAgent | None = None  # the run that asks
    is_paused: bool = False  # the agent is: a person wants it to start nothing

    @property
    def writing(self) -> Rights:
        """The rights to write what has been checked here; what the requester may store is bounded as before."""
        if self.sender is None or self.rights.owned is None:
            return self.rights
        made = self.rights.owned._replace(source=MCP)
        return self.rights._replace(owned=None, stored=made, admin_kinds=True)


def requester(tx: Transaction, rights: Rights, run_id: int | None) -> Requester:
    """The requester; NotAllowed for a run that has ended."""
    if run_id is None:
        return Requester(rights.caller, rights, _limited(Bounds(), rights))
    sender = sender_of(tx, run_id)
    wake, state = find_agent(tx, sender.agent)
    bounds = _limited(bounds_of(json.loads(wake.payload).get("self_schedule")), rights)
    return Requester(sender.agent, rights, bounds, sender, bool(state.paused))


def create(tx: Transaction, context: Context, who: Requester, new: NewJob, *, what: str) -> str | None:
    """Store a schedule within the bounds; the run that asks a person about it, None where nobody is asked.

    `what`: what it does, for the person who is asked.
    """
    refuse_off(who.bounds, who.name)
    _refuse_paused(who)
    _count(tx, who)
    check_schedule_quota(who.bounds, who.name, len(_own_jobs(tx, who)))
    new.trigger = within(new.trigger.resolved(tx.now, context.zone()), who.bounds, tx.now)
    if tx.jobs.by_name(new.name) is not None:
        raise JobExists(f"A job named {new.name!r} already exists: choose another name, or change that one.")
    check_name_not_awaited(tx, who.rights, new.name)
    made = authorized.create_job(tx, context._replace(rights=who.writing), draft(new, MCP, context.declared))
    job, _ = find_job(tx, made.id)
    hops, outside = (0, 0) if who.sender is None else (who.sender.hops, int(who.sender.is_fed))
    run_id = None if who.sender is None else who.sender.run_id
    note_written(tx, job.id, Proposal(job.id, who.name, run_id, tx.now, hops, outside))
    return _ask(tx, context, who, job, what=what) if who.bounds.mode == ASK else None


def change(
    tx: Transaction, context: Context, who: Requester, ref: str, changes: dict[str, Any], *, what: str | None
) -> str | None:
    """Change a schedule of the requester; in the mode `ask` it waits for a person again. As `create`."""
    refuse_off(who.bounds, who.name)
    _refuse_paused(who)
    job, state = own_schedule(tx, who, ref)
    _refuse_waiting(tx, job)
    refuse_edited(tx, job)
    refuse_stopped(tx, who.rights, (job, state))
    _count(tx, who)
    if state.ended_at is not None:  # it counts no more, and would again
        check_schedule_quota(who.bounds, who.name, len(_own_jobs(tx, who)))
    if "trigger" in changes:
        resolved = changes["trigger"].resolved(tx.now, context.zone(), keep=trigger_of(job.trigger))
        changes["trigger"] = within(resolved, who.bounds, tx.now)
    authorized.patch_job(tx, context._replace(rights=who.writing), ids.job_text(job.id), changes)
    changed, _ = find_job(tx, ids.job_text(job.id))
    note_written(tx, job.id, _following(tx, who, job))
    if who.bounds.mode != ASK or changed == job:
        return None
    return _ask(tx, context, who, changed, what=what, before=job)


def switch(tx: Transaction, context: Context, who: Requester, ref: str, *, on: bool) -> None:
    """Pause or resume a schedule of the requester; what a person stopped, or has not approved, stays stopped."""
    pair = own_schedule(tx, who, ref)
    _refuse_waiting(tx, pair[0])
    refuse_edited(tx, pair[0])
    _count(tx, who)
    job_id = ids.job_text(pair[0].id)
    if on:
        _refuse_paused(who)
        refuse_stopped(tx, who.rights, pair)
        if pair[1].ended_at is not None:
            check_schedule_quota(who.bounds, who.name, len(_own_jobs(tx, who)))
        tx.of(Proposals).put(_following(tx, who, pair[0]))
    pause = partial(pausing.pause_job, tx, context, job_id, own=True)
    work = partial(pausing.resume_job, tx, context, job_id) if on else pause
    on_record(tx, origin_of(context), "resume" if on else "pause", [pair], work)


def remove(tx: Transaction, context: Context, who: Requester, ref: str) -> str | None:
    """Remove a schedule of the requester, also one that waits for approval. The action, by which it is restored."""
    job, state = own_schedule(tx, who, ref)
    refuse_edited(tx, job)
    _count(tx, who)
    if open_proposal(tx, job) is None:
        refuse_stopped(tx, who.rights, (job, state))
    removal = partial(job_actions.remove_job, tx, context, ids.job_text(job.id))
    return on_record(tx, origin_of(context), "remove", [(job, state)], removal)[1]


def start(tx: Transaction, context: Context, who: Requester, ref: str) -> int:
    """Start a schedule of the requester now; its run follows from the run that asks."""
    job, state = own_schedule(tx, who, ref)
    _refuse_waiting(tx, job)
    _refuse_paused(who)
    refuse_stopped(tx, who.rights, (job, state))
    if state.ended_at is not None:
        raise NotAllowed(f"{job.name} is over: change when it runs, or make another one.")
    _count(tx, who)
    if who.sender is None:
        return run_now(tx, context, ids.job_text(job.id))
    payload = {**json.loads(job.payload), "hops": who.sender.hops}
    run_id = run_now(tx, context, ids.job_text(job.id), payload)
    if who.sender.is_fed:
        tx.of(Senders).feed(run_id)
    return run_id


def own_schedule(tx: Transaction, who: Requester, ref: str) -> tuple[JobDef, JobState]:
    """The schedule of that name that the requester made itself; JobNotFound or NotAllowed for every other."""
    job, state = find_own(tx, who.rights, ref)
    if job.source != MCP or job.id not in tx.of(Proposals).of([job.id]):  # an operator's over MCP has no record
        raise NotAllowed(f"{job.name} was not made by {who.name}: only what you made yourself can be changed.")
    return job, state


def find_own(tx: Transaction, rights: Rights, ref: str) -> tuple[JobDef, JobState]:
    """The job of a name or an id; agents may leave out their own name before it."""
    agent = rights.owned.owner if rights.owned is not None and rights.owned.kind == AGENT else None
    if agent is not None and not ref.startswith(("job_", f"{agent}.")):
        try:
            return own_job(tx, f"{agent}.{ref}", rights)
        except JobNotFound:
            pass  # it may be the whole name of one that has no dot
    return own_job(tx, ref, rights)


def new_name(tx: Transaction, agent: str | None, given: str | None, text: str) -> str:
    """The name of a new job: as it was given, else made of what it does. InvalidJob for one that cannot be used."""
    prefix = "" if agent is None else f"{agent}."
    if given is not None:
        own = given.removeprefix(prefix)
        if agent is None:
            return given
        try:
            return prefix + check_name(own)
        except InvalidJob as error:
            raise InvalidJob(f"{given!r:.80} {error}.") from None
    words = "-".join(_OTHER.sub("-", text.lower()).strip("-").split("-")[:5])[:40].strip("-") or "schedule"
    words = words if words not in ("wake", "heartbeat") else f"{words}-1"
    names = [f"{prefix}{words}", *(f"{prefix}{words}-{number}" for number in range(2, 200))]
    taken = tx.jobs.names(names)
    return next((name for name in names if name not in taken), names[-1])


def waits(tx: Transaction, job: JobDef) -> str | None:
    """The run by which the job waits for approval, None where it does not."""
    run = open_proposal(tx, job)
    return None if run is None else ids.run_text(run.id)


# -- inside -----------------------------------------------------------------------------------------------------------


def _own_jobs(tx: Transaction, who: Requester) -> list[JobDef]:
    """The schedules that count: those the requester made and that are not over."""
    found = tx.jobs.matching(JobFilter(source=MCP, owned=who.rights.owned, requested=True))
    return [job for job, state in found if state.ended_at is None]


def _following(tx: Transaction, who: Requester, job: JobDef) -> Proposal:
    """The record of a schedule whose runs follow from the run that asks, too."""
    known = tx.of(Proposals).of([job.id])[job.id]
    if who.sender is None:
        return known
    hops, outside = max(known.hops, who.sender.hops), max(known.outside, int(who.sender.is_fed))
    return known._replace(hops=hops, outside=outside, asked_in=who.sender.run_id)


def _count(tx: Transaction, who: Requester) -> None:
    """One more thing that the run does: none goes too far, or on without end."""
    if who.sender is None:
        return
    if who.sender.hops > MOST_HOPS:
        raise too_far(who.name, who.sender)
    if tx.of(Senders).count_event(who.sender.run_id) > MOST_CHANGES:
        run = ids.run_text(who.sender.run_id)
        raise QueueFull(f"{run} has changed schedules and left events {MOST_CHANGES} times: end this run.")


def _limited(bounds: Bounds, rights: Rights) -> Bounds:
    """The bounds with the server's own limit, so that a refusal says what would be accepted."""
    return bounds._replace(min_interval=max(bounds.min_interval, rights.min_interval or 0))


def _refuse_paused(who: Requester) -> None:
    """A person has paused the agent: nothing that it makes would be paused with the rest."""
    if who.is_paused:
        raise NotAllowed(f"{who.name} is paused by an operator: nothing is scheduled until it is resumed.")


def _refuse_waiting(tx: Transaction, job: JobDef) -> None:
    if (run := waits(tx, job)) is not None:
        raise NotAllowed(f"{job.name} waits for a person's approval ({run}): wait for the answer, or remove it.")


def _ask(
    tx: Transaction, context: Context, who: Requester, job: JobDef, *, what: str | None, before: JobDef | None = None
) -> str:
    question = question_about(tx, who, job, what, before=before)
    until = answer_until(trigger_of(job.trigger), who.bounds, tx.now)
    return ids.run_text(propose(tx, context, job.id, question, until=until, before=before))
