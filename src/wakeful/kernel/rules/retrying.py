"""Retries that the schedule leaves no room for: a retry that is due at or after the next slot is left out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from wakeful.kernel.rules.options import OptionValues
from wakeful.kernel.rules.outcome import FAILURES
from wakeful.store.records import RunRow
from wakeful.triggers import TimedTrigger, Trigger
from wakeful.triggers.durations import format_interval


def crowded_note(trigger: Trigger, delays: Sequence[int]) -> str | None:
    """What to say about a job whose retries may come no earlier than its next slot; None where all have room."""
    gap = trigger.min_gap_ms() if isinstance(trigger, TimedTrigger) and not trigger.relative else None
    late = [delay for delay, after in zip(delays, accumulate(delays), strict=True) if gap is not None and after >= gap]
    if gap is None or not late:
        return None
    which = f"the retry after {format_interval(late[0])}"
    return f"leaves out {which} where the next scheduled time comes first: its times are {format_interval(gap)} apart"


def overtaken_retry(trigger: Trigger, options: OptionValues, run: RunRow) -> tuple[int, int] | None:
    """When a failed run would have been tried again, and the slot that came no later; None where that is not so."""
    delays, tries = options.retry_delays(trigger.type), run.attempt - 1
    ended = run.finished_at
    if run.outcome not in FAILURES or run.slot is None or ended is None or tries >= len(delays):
        return None
    if options.retry_on != "any" or trigger.relative or not trigger.timed:
        return None
    at, slot = ended + delays[tries], trigger.next_slot(ended)
    return None if slot is None or at < slot else (at, slot)
