"""Chains: jobs with the trigger `after`, put behind the job that they follow."""

from __future__ import annotations

from typing import Literal

from wakeful import ids
from wakeful.errors import InvalidJob
from wakeful.kernel.rules.policy import trigger_of, trigger_text
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef
from wakeful.triggers import After


def follows(job: JobDef) -> bool:
    return isinstance(trigger_of(job.trigger), After)


def chain(tx: Transaction, job: JobDef) -> None:
    """Put an `after` job behind the one it follows; a circle would run forever and is refused."""
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


def rename_in_chains(tx: Transaction, old: str, new: str) -> None:
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
