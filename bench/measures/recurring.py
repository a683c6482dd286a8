"""Many recurring jobs that are not due: what it takes to add them, to start beside them, and to keep them."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from bench.contenders import APSCHEDULER3, HUEY, WAKEFUL, Contender
from bench.figures import Run
from bench.measures import Column, Entry, Plan, Table, interleave
from bench.serving import Serving

CALM_S = 3.0  # after the first start, before idling is measured


def recurring(contender: Contender, count: int, idle_s: float, folder: Path) -> Run:
    """Add `count` hourly jobs, start with one more that is due, then watch the process do nothing."""
    run: Run = {"count": count}
    options = {}
    if contender is HUEY:
        options["recurring"] = count  # they live in its code, and are declared at every start
    else:
        run["add_per_s"] = count / contender.ask("recur", folder=str(folder), count=count)["seconds"]
        contender.ask("store", folder=str(folder), count=1, first=time.time())
    with Serving(contender, folder, **options) as serving:
        serving.wait_for(1, 300)
        run["ready_s"] = min(mark.started for mark in serving.marks()) - serving.spawned_at
        time.sleep(CALM_S)
        before, began = serving.cpu_s(), time.time()
        time.sleep(idle_s)
        run["idle_cpu_percent"] = 100 * (serving.cpu_s() - before) / (time.time() - began)
        run["rss_mib"] = serving.rss_mib()
    return run


def measure(plan: Plan) -> list[Table]:
    if plan.quick:
        return [_table(plan, 20_000, 3.0)]
    return [_table(plan, 10_000, 10.0), _table(plan, 100_000, 20.0)]


def _table(plan: Plan, count: int, idle_s: float) -> Table:
    table = Table(
        f"recurring-{count}",
        f"{count:,} hourly jobs, none due",
        [
            Column("add_per_s", "added /s", "more"),
            Column("ready_s", "restart to first start s", "less"),
            Column("rss_mib", "memory MiB", "less"),
            Column("idle_cpu_percent", "idle CPU %", "less"),
        ],
        notes=[
            "Restart to first start: from the spawn of the process, all jobs stored, to the start of one that is due.",
            f"Idle CPU over {idle_s:.0f} s.",
        ],
    )
    who = [WAKEFUL, *(peer for peer in plan.peers if peer in (HUEY, APSCHEDULER3))]
    entries: list[Entry] = [(contender.name, partial(recurring, contender, count, idle_s)) for contender in who]
    interleave(plan, table, entries)
    if plan.peers:
        table.notes += [
            "Huey's periodic tasks live in its code, declared at every start, never stored: no rate of adding.",
            "APScheduler 4 adds a few hundred a second and is left out.",
        ]
    return table
