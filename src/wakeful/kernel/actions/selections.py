"""Many jobs at once: pausing and resuming those that a caller names, or all that match; each is one transaction."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.errors import InvalidJob, NotAllowed
from wakeful.kernel.actions import pausing
from wakeful.kernel.actions.authorization import Rights, own_job
from wakeful.kernel.actions.recording import on_record, origin_of
from wakeful.kernel.actions.stops import stopped_by_others
from wakeful.kernel.context import Context
from wakeful.store.interface import Transaction
from wakeful.store.jobs import JobFilter
from wakeful.store.records import JobDef, JobState


class JobSelection(NamedTuple):
    """Which jobs are meant: those named, or all that match."""

    refs: tuple[str, ...] | None = None
    wanted: JobFilter | None = None


class BulkResult(NamedTuple):
    """The result for many jobs: the names of those that changed, and why others did not."""

    changed: list[str]
    unchanged: list[str]
    refused: dict[str, str]
    action: str | None = None  # by which it can be undone, where anything changed


def pause_many(tx: Transaction, context: Context, many: JobSelection, note: str | None, rights: Rights) -> BulkResult:
    pairs, own = _meant(tx, many, rights), rights.owned is not None
    changed, action = on_record(
        tx, origin_of(context, rights), "pause", pairs, lambda: pausing.pause_all(tx, context, pairs, note, own=own)
    )
    known = set(changed)
    return BulkResult(changed, [job.name for job, _ in pairs if job.name not in known], {}, action)


def resume_many(tx: Transaction, context: Context, many: JobSelection, rights: Rights) -> BulkResult:
    meant = _meant(tx, many, rights)
    against = stopped_by_others(tx, rights, meant)
    if many.refs is not None:
        for refusal in against.values():
            raise NotAllowed(refusal)
    pairs = [pair for pair in meant if pair[0].id not in against]
    stopped = [job.name for job, state in pairs if state.paused or state.errors or not state.enabled]
    errors, action = on_record(
        tx, origin_of(context, rights), "resume", pairs, lambda: pausing.resume_all(tx, context, pairs)
    )
    refused = {name: str(error) for name, error in errors.items()}
    refused |= {job.name: against[job.id] for job, _ in meant if job.id in against}
    known = set(stopped)
    unchanged = [job.name for job, _ in pairs if job.name not in known]
    return BulkResult([name for name in stopped if name not in refused], unchanged, refused, action)


def _meant(tx: Transaction, many: JobSelection, rights: Rights) -> list[tuple[JobDef, JobState]]:
    if many.refs is not None:
        found = {pair[0].id: pair for pair in (own_job(tx, ref, rights) for ref in many.refs)}
        return [found[job_id] for job_id in sorted(found)]
    wanted = many.wanted if many.wanted is not None else JobFilter()
    if rights.owner is not None:
        if wanted.owner not in (None, rights.owner):
            message = f"{rights.owner} may only name its own jobs."
            raise InvalidJob(message)
        wanted = wanted._replace(owned=rights.owned)
    pairs = tx.jobs.matching(wanted)
    states = tx.jobs.states(sorted(job.id for job, _ in pairs))  # locked from here on
    return sorted(((job, states[job.id]) for job, _ in pairs if job.id in states), key=lambda pair: pair[0].id)
