"""Storing what was found: all of it in one transaction, by the actions with which jobs are added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.domains.files.planning import same_grid
from wakeful.kernel.actions import pausing
from wakeful.kernel.actions.jobs import add_jobs
from wakeful.kernel.rules.policy import trigger_of, trigger_text
from wakeful.moving.checking import Batch, all_entries, with_existing

if TYPE_CHECKING:
    from wakeful.config.entries import JobEntry
    from wakeful.kernel.context import Context
    from wakeful.kernel.hooks import Draft
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef

SOURCE = "cli"
TAKEN = "a job of this name exists and is another: rename or remove that one, or import into a file"


async def compare(scheduler: Scheduler, batch: Batch) -> Batch:
    """The batch with those marked that are stored already."""
    drafts = _drafts(scheduler, all_entries(batch))
    zone = scheduler.host.default_zone
    return await scheduler.read(lambda tx: _compared(tx, batch, drafts, zone))


async def store(scheduler: Scheduler, batch: Batch) -> Batch:
    """Add what is not there yet; the batch as it was found then, with those marked that were there."""
    entries = all_entries(batch)
    drafts, zone = _drafts(scheduler, entries), scheduler.host.default_zone
    off = {entry.new.name for entry in entries if not entry.enabled}

    def work(tx: Transaction, context: Context) -> Batch:
        compared = _compared(tx, batch, drafts, zone)
        if not compared.new:
            return compared
        wanted = {one.found.name for one in compared.new} | {entry.new.name for entry in batch.wakes}
        known = tx.jobs.names(sorted(wanted))
        new = [draft for draft in drafts if draft.name in wanted and draft.name not in known]
        made = add_jobs(tx, context, new, "error", zone)
        for draft, job_id in zip(new, made, strict=True):
            if draft.name in off:
                pausing.disable_job(tx, context, ids.job_text(job_id))
        return compared

    return await scheduler.transact(work)


def _drafts(scheduler: Scheduler, entries: Sequence[JobEntry]) -> list[Draft]:
    return [scheduler.host.draft(entry.new, SOURCE) for entry in entries]


def _compared(tx: Transaction, batch: Batch, drafts: Sequence[Draft], zone: str) -> Batch:
    known = tx.jobs.names([draft.name for draft in drafts]) if drafts else {}
    stored = tx.jobs.definitions(list(known.values())) if known else {}
    same = {
        draft.name: None if _is_same(tx, draft, stored[known[draft.name]], zone) else TAKEN
        for draft in drafts
        if draft.name in known
    }
    return with_existing(batch, same)


def _is_same(tx: Transaction, draft: Draft, job: JobDef, zone: str) -> bool:
    """Whether a stored job does the same at the same times."""
    before = trigger_of(job.trigger)
    trigger = same_grid(draft.trigger, before).resolved(tx.now, zone, keep=before)
    parts = (draft.kind, draft.payload, draft.options)
    return trigger_text(trigger) == job.trigger and parts == (job.kind, job.payload, job.options)
