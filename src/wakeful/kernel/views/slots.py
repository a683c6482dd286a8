"""One slot of a job: what became of it, in one sentence, with its runs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.errors import SlotNotFound
from wakeful.kernel.model.run import run_views
from wakeful.kernel.rules.ledger import (
    NOT_DUE,
    UNACCOUNTED,
    Account,
    SlotDisposition,
    fate_of,
    fate_of_runs,
    open_parts,
)
from wakeful.kernel.rules.passing import has_grid
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.rules.trigger_history import has_slot
from wakeful.kernel.views.ledger import account_of, kept_from, slot_run
from wakeful.kernel.views.reasons import REASONS
from wakeful.store.stretches import RAN, SlotSpan
from wakeful.triggers.moments import from_ms, iso, to_ms

if TYPE_CHECKING:
    from wakeful.kernel.model.run import Run
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

WHY = {
    "removed": "the job had been removed",
    "replaced": "the job was given other times before it could start",
    "clock_set": "the clock was set back while it waited",
    "below_floor": "it lay within 10 seconds of the start before",
    "at_capacity": "a lane it needs is full",
    "held": "everything is paused",
    "no_handler": "no node handles its kind",
    "no_node": "no node has the labels it asks for",
    "delayed": "its jitter or stagger puts it off",
    "due": "nothing has started it yet",
    "schedule": "it was released before it began",
    "catch_up": "it was released before it began",
    "retry": "another attempt will follow",
    "recovery": "it was cut off and will run again",
    "approval": "it was approved and will run",
    "manual": "another attempt was requested",
}


class Slot(NamedTuple):
    """What became of one slot."""

    job: str
    slot: datetime
    fate: str
    """`ran`, `running`, `waiting`, `passed_over`, `merged`, `missing`, `ahead`, `over` or `unaccounted`."""
    why: str | None
    """The reason, of one that waits or was passed over."""
    sentence: str
    merged_into: datetime | None
    """The slot into whose run it was merged."""
    runs: list[Run]
    """All attempts at it that are on record, the first one first."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC."""
        merged = None if self.merged_into is None else iso(to_ms(self.merged_into))
        runs = [run.to_dict() for run in self.runs]
        return {**self._asdict(), "slot": iso(to_ms(self.slot)), "merged_into": merged, "runs": runs}


def find_slot(tx: Transaction, job: JobDef, state: JobState, slot: int) -> Slot:
    """What became of that slot; SlotNotFound where the job has none there."""
    account = account_of(tx, job, state, SlotSpan(slot - 1, tx.now))
    rows = tx.slots.runs(job.id, SlotSpan(slot - 1, slot))
    runs = run_views(tx, rows)
    kept = _without_run(tx, account, slot) if not rows or rows[0].attempt > 1 else None
    fate = fate_of_runs([slot_run(run) for run in rows], kept) if rows else kept
    if fate is None:
        raise _unknown(tx, job, account, slot)
    merged = _merged_into(tx, job.id, slot) if fate.what == "merged" else None
    return Slot(
        job.name,
        from_ms(slot),
        fate.what,
        fate.why or None,
        _sentence(job.name, slot, fate, runs, merged),
        None if merged is None else from_ms(merged),
        runs,
    )


def _without_run(tx: Transaction, account: Account, slot: int) -> SlotDisposition | None:
    """What became of a slot that has no run on record; None where it is no slot of the job."""
    found = [
        item for item in tx.stretches.covering(account.state.job_id, slot) if has_slot(item, slot, account.history)
    ]
    kept = fate_of(max(found, key=lambda item: item.fate == RAN).fate) if found else None
    trigger = trigger_of(account.history.trigger_at(slot))
    is_slot = has_grid(trigger) and slot > account.created_at and trigger.next_slot(slot - 1) == slot
    for part in open_parts(account):
        is_part = part.slot == slot or (part.slot is None and is_slot and part.span.after < slot <= part.span.until)
        if is_part and part.overrides(kept):
            return part.fate
    if kept is not None:
        return kept
    if slot > account.now and (is_slot or slot == account.state.slot):
        return SlotDisposition("ahead")
    return UNACCOUNTED if is_slot else None


def _merged_into(tx: Transaction, job_id: int, slot: int) -> int | None:
    """The slot whose run covers this one: one before it that was run again after its time, else the next one run."""
    before = tx.slots.last_run(job_id, slot)
    again = before is not None and before.attempt > 1 and (before.started_at or 0) >= slot
    return before.slot if before is not None and again else tx.slots.next_run(job_id, slot)


def _unknown(tx: Transaction, job: JobDef, account: Account, slot: int) -> SlotNotFound:
    if slot <= kept_from(tx):
        message = f"What became of the slots of {job.name} before {iso(kept_from(tx))} is not on record."
        return SlotNotFound(message)
    trigger = trigger_of(account.history.trigger_at(slot))
    following = trigger.next_slot(max(slot, account.created_at)) if has_grid(trigger) else None
    hint = f" The next one after that is {iso(following)}." if following is not None else ""
    message = f"{job.name} has no slot at {iso(slot)}.{hint}"
    return SlotNotFound(message)


def _sentence(name: str, slot: int, fate: SlotDisposition, runs: list[Run], merged: int | None) -> str:
    what, why = fate
    which = f"The slot {iso(slot)} of {name}"
    if what == "ran" and runs:
        times = f"in {len(runs)} attempts" if len(runs) > 1 else "once"
        return f"{which} ran {times}; the last ended as {runs[-1].outcome}."
    reason = WHY.get(why) or REASONS.get(why, why)
    into = f" of {iso(merged)}" if merged is not None else ""
    return {
        "ran": f"{which} ran; its runs are no longer kept.",
        "running": f"{which} is running.",
        "waiting": f"{which} waits: {reason}.",
        "passed_over": f"{which} was passed over: {reason}.",
        "merged": f"{which} was merged: the run{into} covers it.",
        "missing": f"{which} is missing: its time passed while nothing could run, and it was not caught up.",
        "ahead": f"{which} has not come yet.",
        NOT_DUE.what: f"{which} was not due: the job had come to its end.",
    }.get(what, f"{which} has no record. This should not happen.")
