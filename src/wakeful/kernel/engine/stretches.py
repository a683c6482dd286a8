"""Slots that have no run on record: those that passed without one, and those whose runs were pruned.

A stretch costs one row however many slots it spans. As long as a job's slots meet one fate one after the other, one
stretch covers them; a slot with another fate begins a new one. A job whose slots differ all the time would make a
stretch for each: beyond a few a day they share a row, and its pattern says which slots they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.kernel.rules.passing import MISSED, Passed, has_grid
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.rules.reigns import Reigns, has_slot, members_of
from wakeful.store.stretches import RAN, Span, Stretch

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow

DAY_MS = 86_400_000
LATEST = 2**62
PER_DAY = 8  # stretches of one job and fate that begin on one day; further ones share the last one's row

Adjacent = Callable[[Stretch, Stretch], bool]
Members = Callable[[Stretch], list[int] | None]


def join(
    stretches: Sequence[Stretch], adjacent: Adjacent, members: Members = Stretch.listed, per_day: int = PER_DAY
) -> list[Stretch]:
    """As few stretches as say the same: `stretches` of one job and fate, in any order.

    `members`: the slots of a stretch, where they can be known.
    """
    joined: list[Stretch] = []
    begun: dict[int, int] = defaultdict(int)  # how many stretches begin on a day
    for stretch in sorted(stretches, key=lambda item: (item.since, item.first_slot, -item.last_slot)):
        last = joined[-1] if joined else None
        if last is not None and last.since == stretch.since:
            day = stretch.first_slot // DAY_MS
            whole = last.pattern is None and stretch.pattern is None
            if stretch.first_slot > last.last_slot and whole and adjacent(last, stretch):
                joined[-1] = last._replace(last_slot=stretch.last_slot, slots=last.slots + stretch.slots)
                continue
            crowded = begun[day] >= per_day and stretch.last_slot // DAY_MS == day == last.first_slot // DAY_MS
            if stretch.first_slot <= last.last_slot or crowded:
                joined[-1] = _united(last, stretch, members)
                continue
        begun[stretch.first_slot // DAY_MS] += 1
        joined.append(stretch)
    return joined


def _united(last: Stretch, stretch: Stretch, members: Members) -> Stretch:
    """Both in one row; where it cannot be known which slots they have, only how many."""
    one, other = members(last), members(stretch)
    if one is None or other is None:
        end = max(last.last_slot, stretch.last_slot)
        return last._replace(last_slot=end, slots=last.slots + stretch.slots, pattern=None)
    slots = sorted({*one, *other})
    return last if len(slots) == last.slots else last.of_slots(slots)


class _Fated(NamedTuple):
    """Some slots of a job with one fate, under one trigger."""

    job_id: int
    fate: str
    trigger: str


def keep_passed(tx: Transaction, passes: Sequence[Passed]) -> None:
    """Keep what became of slots that have no run; the caller holds their jobs."""
    passes = [item for item in passes if not (item.again and was_run(tx, item.job_id, item.trigger, item.first_slot))]
    if not passes:
        return
    past = tx.stretches.past_triggers_of(sorted({item.job_id for item in passes}))
    new: dict[_Fated, list[Stretch]] = defaultdict(list)
    for item in passes:
        reigns = Reigns(past.get(item.job_id, ()), item.trigger)
        span = (item.first_slot, item.last_slot, item.slots)
        stretch = Stretch(item.job_id, item.fate, *span, reigns.key_at(item.first_slot))
        new[_Fated(item.job_id, item.fate, reigns.trigger_at(item.first_slot))].append(stretch)
    known: dict[tuple[int, str], list[Stretch]] = defaultdict(list)
    for stretch in tx.stretches.near(_from_when(passes)):
        known[stretch.job_id, stretch.fate].append(stretch)
    old, made = list[Stretch](), dict[tuple[object, ...], Stretch]()
    for key, items in new.items():
        before = known[key.job_id, key.fate]
        gone, changed = _changed(before, items, key.trigger)
        for stretch in gone:
            made.pop(_row_key(stretch), None)
        made |= {_row_key(stretch): stretch for stretch in changed}
        old += gone
        known[key.job_id, key.fate] = [*(item for item in before if item not in gone), *changed]
    tx.stretches.replace(old, list(made.values()))


def _from_when(passes: Sequence[Passed]) -> list[tuple[int, str, int]]:
    """For each job and fate, from which day on its stretches may change."""
    days: dict[tuple[int, str], int] = {}
    for item in passes:
        key, day = (item.job_id, item.fate), item.first_slot - item.first_slot % DAY_MS
        days[key] = min(day, days.get(key, day))
    return [(job_id, fate, day) for (job_id, fate), day in days.items()]


def _row_key(stretch: Stretch) -> tuple[object, ...]:
    return stretch.job_id, stretch.fate, stretch.first_slot, stretch.since


def _changed(known: Sequence[Stretch], new: Sequence[Stretch], trigger: str) -> tuple[list[Stretch], list[Stretch]]:
    """The stretches of one job and fate that change, as they are and as they are to be."""
    since = {item.since for item in new}
    before = [item for item in known if item.since in since]
    grid = trigger_of(trigger)

    def adjacent(one: Stretch, other: Stretch) -> bool:
        return has_grid(grid) and grid.next_slot(one.last_slot) == other.first_slot

    per_day = PER_DAY if has_grid(grid) else 1
    joined = join([*before, *new], adjacent, lambda item: members_of(item, trigger), per_day)
    kept = set(before)
    return [item for item in before if item not in joined], [item for item in joined if item not in kept]


def take_back(tx: Transaction, job: JobDef, slot: int) -> int:
    """Take back that this slot and later ones have passed; returns the time up to which all others have."""
    reigns = Reigns(tx.stretches.past_triggers(job.id), job.trigger)
    begin = reigns.key_at(LATEST)
    old, new = list[Stretch](), list[Stretch]()
    for stretch in tx.stretches.within(job.id, Span(slot - 1, LATEST)):
        earlier = stretch.since != begin  # its trigger was replaced: what passed then has passed
        if stretch.fate == RAN or (earlier and not has_slot(stretch, slot, reigns)):
            continue
        slots = members_of(stretch, reigns.trigger_at(stretch.first_slot)) or []
        left = [member for member in slots if member < slot or (earlier and member > slot)]
        old.append(stretch)
        if left:
            whole = stretch._replace(last_slot=left[-1], slots=len(left))
            new.append(whole if stretch.pattern is None and left[-1] < slot else stretch.of_slots(left))
    tx.stretches.replace(old, new)
    return max(slot - 1, begin)


def keep_slots(tx: Transaction, runs: Sequence[RunRow]) -> None:
    """Keep the slots of runs that are about to be deleted; `runs` that never started were missed."""
    firsts = [run for run in runs if run.slot is not None and run.attempt == 1]  # a slot counts once, with all attempts
    if not firsts:
        return
    job_ids = sorted({run.job_id for run in firsts})
    tx.jobs.states(job_ids)  # locks what is known of these jobs' slots
    jobs = tx.jobs.definitions(job_ids)
    past = tx.stretches.past_triggers_of(job_ids)
    reigns = {job_id: Reigns(past.get(job_id, ()), job.trigger) for job_id, job in jobs.items()}
    keep_passed(tx, [_pruned(run, reigns[run.job_id]) for run in firsts if run.job_id in reigns])


def _pruned(run: RunRow, reigns: Reigns) -> Passed:
    slot = run.slot or 0
    return Passed(run.job_id, RAN if run.started_at is not None else MISSED, slot, slot, 1, reigns.trigger_at(slot))


def was_run(tx: Transaction, job_id: int, trigger: str, slot: int) -> bool:
    """Whether that slot of a job with this trigger was run, as far back as stretches are kept."""
    if tx.runs.has_slot(job_id, slot):
        return True
    found = tx.stretches.covering(job_id, slot, RAN)
    if not found:
        return False
    reigns = Reigns(tx.stretches.past_triggers(job_id), trigger)
    return any(has_slot(stretch, slot, reigns) for stretch in found)
