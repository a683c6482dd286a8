"""`overlap: cancel_other`: the alarm of a job whose run is in progress, for the slot that replaces the run."""

from __future__ import annotations

from wakeful.kernel.context import Context
from wakeful.kernel.engine.stretches import was_started
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.policy import armed_to_replace, due_slot, trigger_of
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState


def look_at_active(
    tx: Transaction, context: Context, job: JobDef, state: JobState, *, held: bool
) -> tuple[JobState, bool]:
    """The job as it continues, and whether a slot has come that replaces its run, as the job is defined now.

    A job that was stopped, or given another trigger, is armed for no slot: its run finishes. So does one whose next
    start would have to wait because everything is `held`.
    """
    trigger, options = trigger_of(job.trigger), from_text(job.options)
    if options.overlap != "cancel_other" or state.slot is None or (state.next_at or 0) > tx.now:
        return state._replace(due_at=None), False
    if held:  # looked at again with the slot that follows
        return armed_to_replace(trigger, options, state, tx.now, context.rng.random()), False
    slot = due_slot(trigger, options, state, tx.now).slot
    if slot is not None and was_started(tx, job, state, slot):  # the clock was set meanwhile: it is no new one
        state = state._replace(slot=None, next_at=None)
        return armed_to_replace(trigger, options, state, tx.now, context.rng.random()), False
    return state._replace(due_at=None), slot is not None
