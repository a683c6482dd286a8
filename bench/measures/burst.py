"""Many one-shot jobs due at once: how fast they are started, and how fast they are on record as done."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.contenders import APSCHEDULER4, WAKEFUL, Contender
from bench.figures import Run
from bench.measures import Column, Plan, Table, interleave
from bench.serving import Serving, Watcher

SLOW_COUNT = 1000  # for a peer that does tens of jobs a second; it is not helped by a shorter queue


def burst(contender: Contender, count: int, folder: Path) -> Run:
    """Store `count` jobs that are all due, then start the scheduler and look."""
    stored = contender.ask("store", folder=str(folder), count=count, first=time.time())
    watcher = Watcher(contender, folder)
    try:
        with Serving(contender, folder) as serving:
            serving.wait_for(count, 300)
            settled_at = watcher.settled_at()
            cpu = serving.cpu_s()
        starts = [mark.started for mark in serving.marks()]
        assert len(starts) == count, f"{len(starts)} starts of {count} jobs"
        first, last = min(starts), max(starts)
        return {
            "jobs_per_s": count / (last - serving.spawned_at),
            "settled_per_s": count / (settled_at - serving.spawned_at),
            "drain_per_s": (count - 1) / (last - first),
            "startup_s": first - serving.spawned_at,
            "store_per_s": count / stored["seconds"],
            "cpu_us_per_job": 1e6 * cpu / count,
            "count": count,
        }
    finally:
        watcher.end()


def measure(plan: Plan) -> list[Table]:
    return [_table(plan, count) for count in ([2000] if plan.quick else [5000, 20_000])]


def _table(plan: Plan, count: int) -> Table:
    table = Table(
        f"burst-{count}",
        f"{count:,} one-shot jobs, all due",
        [
            Column("jobs_per_s", "end to end /s", "more"),
            Column("settled_per_s", "settled /s", "more"),
            Column("drain_per_s", "drain /s", "more"),
            Column("store_per_s", "stored /s", "more"),
            Column("cpu_us_per_job", "CPU µs a job", "less"),
            Column("startup_s", "start-up s"),
            Column("count", "jobs"),
        ],
        notes=[
            "End to end: from the spawn of the process to the start of the last job, imports included.",
            "Settled: until the contender's own store shows nothing left to do. Drain: from first start to last.",
            "CPU: all the serving process used from its spawn until settled; the figure a busy machine disturbs least.",
        ],
    )
    fast = [peer for peer in plan.peers if peer is not APSCHEDULER4]
    interleave(plan, table, [_entry(contender, count) for contender in (WAKEFUL, *fast)])
    if APSCHEDULER4 in plan.peers and count == 5000:
        interleave(plan, table, [_entry(APSCHEDULER4, SLOW_COUNT)])
        table.notes.append(f"APScheduler 4 is given {SLOW_COUNT:,} jobs: at its rate {count:,} would take minutes.")
    return table


def _entry(contender: Contender, count: int) -> tuple[str, Callable[[Path], Run]]:
    return contender.name, partial(burst, contender, count)
