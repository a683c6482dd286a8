"""What callers from outside may not do.

Each function raises inside the transaction that would do it. A caller that is limited to its own jobs (`owner`)
sees no others: it cannot start after them, take a name that they start after, or remove what an operator set.
"""

from __future__ import annotations

import json

from wakeful.counting import counted
from wakeful.errors import InvalidJob, JobNotFound, NotAllowed, QuotaReached
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.context import Rights
from wakeful.kernel.hooks import Draft
from wakeful.kernel.kinds import Kinds
from wakeful.kernel.rules.options import from_text
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState
from wakeful.triggers import After, Trigger


def own_job(tx: Transaction, ref: str, rights: Rights) -> tuple[JobDef, JobState]:
    """The job of that id or name, if this caller may see it."""
    if rights.owner is None:
        return find_job(tx, ref)
    message = f"There is no job {ref!r:.300} of {rights.owner}."
    try:
        job, state = find_job(tx, ref)
    except JobNotFound:
        raise JobNotFound(message) from None  # without a hint at the names of others' jobs
    if not rights.sees(job):
        raise JobNotFound(message)
    return job, state


def refuse_admin_kind(rights: Rights, kinds: Kinds, *names: str) -> None:
    """NotAllowed when one of these kinds of job is for admins to write, and the caller is none."""
    for name in names:
        if kinds.declared(name).admin_only and not rights.admin_kinds:
            message = f"Only an admin may write jobs of kind {name}."
            raise NotAllowed(message)


def refuse_priority(rights: Rights, options: str, before: JobDef | None) -> None:
    """Only admins raise a priority above 0; what a job has stays, and every caller may lower it."""
    allowed = max(0, from_text(before.options).priority if before is not None else 0)
    if from_text(options).priority > allowed and not rights.priority:
        message = f"Only an admin may give a job a priority above {allowed}."
        raise NotAllowed(message)


def check_kind_allows(tx: Transaction, rights: Rights, kind: str, payload: str, before: JobDef | None) -> None:
    """What the kind itself has against this caller's payload."""
    if rights.check is not None:
        rights.check(tx, kind, payload, before)


def refuse_lanes(tx: Transaction, rights: Rights, kinds: Kinds, job: JobDef | Draft, before: JobDef | None) -> None:
    """A caller that is limited to its own jobs cannot narrow or fill what others run in.

    It enters no lane of theirs, nor one that follows from what other jobs do; those that a job has been given stay.
    """
    if rights.owned is None:
        return
    known = dict(from_text(before.options).lanes) if before is not None else {}
    kind = kinds.declared(job.kind)
    follows = kind.lanes_of(json.loads(job.payload)) if kind.lanes_of is not None else ()
    for lane, size in from_text(job.options).lanes:
        if known.get(lane) == size or lane in follows:
            continue
        refusal = f"{rights.owner} cannot enter the lane {lane!r:.220}"
        if kinds.is_reserved_lane(lane):
            raise NotAllowed(f"{refusal}: names that begin like this are reserved. Choose another name.")
        if tx.lanes.holds_others(lane, rights.owned):
            raise NotAllowed(f"{refusal}: jobs of others are in it.")


def check_predecessor(tx: Transaction, rights: Rights, trigger: Trigger) -> None:
    """A job may start only after jobs that its writer can see: when other jobs run is not visible to everyone.

    A job that does not exist yet is refused like an invisible one; otherwise the caller could wait for it.
    """
    if rights.owner is None or not isinstance(trigger, After):
        return
    try:
        own_job(tx, trigger.job, rights)
    except JobNotFound as error:
        message = f"There is no job {trigger.job!r:.300} of {rights.owner} to start after."
        raise InvalidJob(message) from error


def check_name_not_awaited(tx: Transaction, rights: Rights, name: str) -> None:
    """Refuse a name that jobs of other owners start after: taking it would start them."""
    if rights.owner is None:
        return
    waiting = tx.jobs.definitions([job_id for job_id, _ in tx.jobs.chained(name)])
    if not all(rights.sees(job) for job in waiting.values()):
        message = f"Another owner's jobs start after {name!r}: choose another name."
        raise NotAllowed(message)


def check_approval_kept(rights: Rights, job: JobDef, options: str) -> None:
    """A caller that is limited to its own jobs cannot remove their approval."""
    if rights.owner is not None and asks(job.options) and not asks(options):
        message = f"{job.name} needs approval before every start; only an operator can change that."
        raise NotAllowed(message)


def check_may_be_replaced(rights: Rights, job: JobDef) -> None:
    """Nor can it remove or rename them, to create them again under that name."""
    if rights.owner is not None and asks(job.options):
        message = f"{job.name} needs approval before every start; only an operator can remove or rename it. Pause it."
        raise NotAllowed(message)


def asks(options: str) -> bool:
    return from_text(options).approval


def check_quota(tx: Transaction, rights: Rights, size: int, *, jobs: int = 0) -> None:
    """QuotaReached when so many bytes and jobs more are too many for the owner."""
    owned = rights.owned if rights.stored is None else rights.stored
    if owned is None:
        return
    if jobs and rights.max_jobs is not None and tx.jobs.count_of(owned) + jobs > rights.max_jobs:
        message = f"{owned.owner} has {counted(rights.max_jobs, 'job')}, and may have no more: remove one."
        raise QuotaReached(message)
    if size > 0 and rights.max_bytes is not None:
        answers = tx.access.answer_bytes(owned.owner) if owned.kind is None else 0  # tokens have answers, runs none
        stored = tx.jobs.bytes_of(owned) + answers
        if stored + size > rights.max_bytes:
            message = (
                f"{owned.owner} may store {counted(rights.max_bytes, 'byte')}, and has {stored} in its jobs, their "
                "runs and answers: store less, or wait until old ones are pruned."
            )
            raise QuotaReached(message)


def size_of(trigger: str, payload: str, options: str) -> int:
    """What a definition counts for; all of it is stored in ASCII, so letters are bytes."""
    return len(trigger) + len(payload) + len(options)
