"""What became of slots whose runs are gone: pruned runs live on as stretches of consecutive slots.

A stretch costs one row however many slots it spans. As long as a job's slots run one after the other its whole history
is one stretch; a slot that had no run begins a new one. A job that leaves out slots all the time would make a stretch
for each: beyond a few a day they are joined all the same, and then `slots` is less than the trigger's own count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from wakeful.kernel.rules.policy import FLOOR_MS, trigger_of
from wakeful.store.stretches import RAN, PastTrigger, Stretch

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow

DAY_MS = 86_400_000
PER_DAY = 8  # stretches of one job that begin on one day; further ones are joined to the last

Adjacent = Callable[[Stretch, Stretch], bool]


def join(stretches: Sequence[Stretch], adjacent: Adjacent) -> list[Stretch]:
    """As few stretches as say the same: `stretches` of one job and fate, in any order."""
    joined: list[Stretch] = []
    begun: dict[int, int] = defaultdict(int)  # how many stretches begin on a day
    for stretch in sorted(stretches, key=lambda item: (item.since, item.first_slot, -item.last_slot)):
        last = joined[-1] if joined else None
        if last is not None and last.since == stretch.since:
            if stretch.first_slot <= last.last_slot:
                inside = True  # of one that was joined over gaps
            else:
                inside = begun[stretch.first_slot // DAY_MS] >= PER_DAY or adjacent(last, stretch)
            if inside:
                end = max(last.last_slot, stretch.last_slot)
                joined[-1] = last._replace(last_slot=end, slots=last.slots + stretch.slots)
                continue
        begun[stretch.first_slot // DAY_MS] += 1
        joined.append(stretch)
    return joined


def keep_slots(tx: Transaction, runs: Sequence[RunRow]) -> None:
    """Keep the slots of runs that are about to be deleted."""
    by_job: dict[int, list[RunRow]] = defaultdict(list)
    for run in runs:
        if run.slot is not None and run.attempt == 1:  # a slot is counted once, with all its attempts
            by_job[run.job_id].append(run)
    if not by_job:
        return
    job_ids = sorted(by_job)
    tx.jobs.states(job_ids)  # locks what is known of these jobs' slots
    jobs = tx.jobs.definitions(job_ids)
    past = tx.stretches.past_triggers_of(job_ids)
    old, new = list[Stretch](), list[Stretch]()
    for job_id in job_ids:
        if job_id in jobs:
            before, after = _joined(tx, jobs[job_id], past.get(job_id, []), by_job[job_id])
            old += before
            new += after
    tx.stretches.replace(old, new)


def _joined(
    tx: Transaction, job: JobDef, past: Sequence[PastTrigger], runs: Sequence[RunRow]
) -> tuple[list[Stretch], list[Stretch]]:
    """The job's stretches that change, as they are and as they are to be."""
    job_id, current = job.id, job.trigger
    if not past and trigger_of(current).type == "once":
        return [], []  # its one slot is its state's last
    triggers = {item.since: item.trigger for item in past}
    triggers[past[-1].until if past else 0] = current
    slots = [(run.slot or 0, _since(past, run)) for run in runs]
    first = min(slot for slot, _ in slots)
    known = tx.stretches.from_slot(job_id, RAN, first - first % DAY_MS)
    new = [Stretch(job_id, RAN, slot, slot, 1, since) for slot, since in slots]

    def adjacent(before: Stretch, after: Stretch) -> bool:
        trigger = trigger_of(triggers[before.since])
        if trigger.relative:  # it has no grid: what lies between two of its slots is not a slot
            return True
        following = trigger.next_slot(before.last_slot + FLOOR_MS - 1)
        return following is None or following >= after.first_slot

    joined = join([*known, *new], adjacent)
    before = set(known)
    return [item for item in known if item not in joined], [item for item in joined if item not in before]


def _since(past: Sequence[PastTrigger], run: RunRow) -> int:
    """Which trigger a run belongs to, by when that came into force."""
    began = run.started_at if run.started_at is not None else run.due_at
    for trigger in past:
        if began < trigger.until:
            return trigger.since
    return past[-1].until if past else 0


def was_run(tx: Transaction, job: JobDef, slot: int) -> bool:
    """Whether that slot of the job was run, as far back as stretches are kept."""
    if tx.runs.has_slot(job.id, slot):
        return True
    found = tx.stretches.covering(job.id, RAN, slot)
    if not found:
        return False
    past = {item.since: item.trigger for item in tx.stretches.past_triggers(job.id)}
    return any(_had_slot(past.get(stretch.since, job.trigger), slot) for stretch in found)


def _had_slot(trigger: str, slot: int) -> bool:
    """Whether a trigger whose slots around this one were run has this slot; `interval` has no fixed ones."""
    known = trigger_of(trigger)
    return not known.relative and known.next_slot(slot - 1) == slot
