"""One job after the other: how long after its due time each of them starts, and whether ever before it."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from bench.contenders import APSCHEDULER4, WAKEFUL, Contender
from bench.figures import Run, spread
from bench.measures import Column, Entry, Plan, Table, interleave
from bench.serving import Serving

COUNT, SPAN_S = 1000, 20.0
LEAD_S = {APSCHEDULER4.name: 14.0}  # between the call that stores and the first due time
IDLE = 100_000


def lateness(contender: Contender, count: int, span: float, idle: int, folder: Path) -> Run:
    """Store jobs due one after the other, serve, and compare start with due."""
    if idle:
        contender.ask("recur", folder=str(folder), count=idle)
    lead = LEAD_S.get(contender.name, 5.0 if count >= COUNT else 2.0)
    contender.ask("store", folder=str(folder), count=count, first=time.time() + lead, span=span)
    with Serving(contender, folder) as serving:
        serving.wait_for(count, lead + span + 60)
    late = [(mark.started - mark.due) * 1000 for mark in serving.marks()]
    assert len(late) == count, f"{len(late)} starts of {count} jobs"
    return {**spread(late), "early": sum(1 for ms in late if ms < 0)}


def measure(plan: Plan) -> list[Table]:
    count, span = (250, 5.0) if plan.quick else (COUNT, SPAN_S)
    table = Table(
        "lateness",
        f"Lateness of {count:,} one-shot jobs over {span:.0f} s (milliseconds after the due time)",
        [
            Column("p50_ms", "p50", "less"),
            Column("p95_ms", "p95", "less"),
            Column("p99_ms", "p99", "less"),
            Column("max_ms", "max", "less"),
            Column("min_ms", "min"),
            Column("early", "started early"),
        ],
        notes=["A negative minimum is a job that ran before it was due; such a contender is left out of the ratios."],
    )
    crowd = f"Wakeful, {IDLE:,} idle jobs"
    entries: list[Entry] = [(who.name, partial(lateness, who, count, span, 0)) for who in (WAKEFUL, *plan.peers)]
    if not plan.quick:
        entries.insert(1, (crowd, partial(lateness, WAKEFUL, count, span, IDLE)))
    interleave(plan, table, entries)
    table.peers_in = tuple(
        peer.name for peer in plan.peers if all(not run["early"] for run in table.runs.get(peer.name, ()))
    )
    return [table]
