"""How wide lanes are: as wide as the smallest size any of their jobs gives, from the moment that job is stored.

Jobs without lanes pay nothing here. Called last in a transaction that locks jobs: no transaction waits for a job while
it holds the lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.kernel.rules.option_reading import RESERVED_LANES
from wakeful.kernel.rules.options import from_text
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef

FACT = "lane_sizes"  # remembered once the sizes of all jobs are on record
BATCH = 1_000


def enter_lanes(tx: Transaction, jobs: Sequence[JobDef]) -> None:
    """These jobs are new in their lanes."""
    wanted = {job.id: dict(lanes) for job in jobs if (lanes := from_text(job.options).lanes)}
    if wanted:
        tx.lanes.enter({job_id: _bounded(lanes) for job_id, lanes in wanted.items()})


def leave_lanes(tx: Transaction, job_ids: Sequence[int], instead: Sequence[JobDef] = ()) -> None:
    """These jobs leave their lanes for those in their new definitions; who waited for a wider lane is requeued."""
    wider = tx.lanes.leave(job_ids) if job_ids else {}
    enter_lanes(tx, instead)
    for lane, free in sorted(wider.items()):
        tx.jobs.requeue_parked(lane, tx.now, free)


def size_all(tx: Transaction) -> None:
    """Put the sizes on record of jobs that were stored before sizes were: once, at the first start after that."""
    if tx.facts.of([FACT]):
        return
    cursor = 0
    while found := tx.jobs.laned(cursor, BATCH):
        cursor = found[-1].id
        tx.lanes.leave([job.id for job in found])
        enter_lanes(tx, found)
    tx.facts.put({FACT: 1})


def _bounded(lanes: dict[str, int]) -> dict[str, int]:
    return {lane: size for lane, size in lanes.items() if lane not in RESERVED_LANES}
