"""The same questions on one PostgreSQL server: a burst on one node and on several, lateness, pickup, idle jobs."""

from __future__ import annotations

import subprocess
import time
from functools import partial
from pathlib import Path

from bench.contenders import (
    APSCHEDULER4_POSTGRES,
    DBOS,
    PROCRASTINATE,
    ROOT,
    WAKEFUL_POSTGRES,
    Contender,
    environment,
)
from bench.figures import Run, spread
from bench.measures import Column, Entry, Plan, Table, interleave
from bench.server import Server, running
from bench.serving import Serving, Watcher

US = WAKEFUL_POSTGRES
FEWER = 5000
SLOW_COUNT = 1000  # for a peer that does tens of jobs a second; it is not helped by a shorter queue
LEAD_S = {APSCHEDULER4_POSTGRES.name: 12.0, DBOS.name: 8.0}  # between the call that stores and the first due time
NODES = (1, 2, 4)
IDLE = 100_000
CALM_S = 3.0
OBAN = "Oban for Python needs Python 3.12 or later, and is left out where this is older."


def measure(plan: Plan) -> list[Table]:
    with running() as server:
        tables = [_burst(plan, server, 1000 if plan.quick else FEWER)]
        if not plan.quick:
            tables.append(_larger_burst(plan, server, 20_000, tables[0]))
        tables += [_nodes(plan, server), _lateness(plan, server), _pickup(plan, server), _idle(plan, server)]
        version = server.version()
    for table in tables:
        table.section = "postgres"
        table.about = f"PostgreSQL {version}"
    return tables


def _fresh(contender: Contender, server: Server, folder: Path) -> None:
    server.database(folder)
    contender.ask("prepare", folder=str(folder))


# -- many jobs due at once --------------------------------------------------------------------------------------------


def burst(contender: Contender, server: Server, count: int, nodes: int, folder: Path) -> Run:
    """Store `count` jobs that are all due, then start the scheduler and look."""
    _fresh(contender, server, folder)
    stored = contender.ask("store", folder=str(folder), count=count, first=time.time())
    watcher = Watcher(contender, folder)
    try:
        database_s = server.cpu_s()
        with Serving(contender, folder, nodes=nodes) as serving:
            serving.wait_for(count, 300)
            cpu, database_s = serving.cpu_s(), server.cpu_s() - database_s
            settled_at = watcher.settled_at()
        starts = [mark.started for mark in serving.marks()]
        assert len(starts) == count, f"{len(starts)} starts of {count} jobs"
        first, last = min(starts), max(starts)
        return {
            "jobs_per_s": count / (last - serving.spawned_at),
            "settled_per_s": count / (settled_at - serving.spawned_at),
            "drain_per_s": (count - 1) / (last - first),
            "store_per_s": count / stored["seconds"],
            "cpu_us_per_job": 1e6 * cpu / count,
            "database_us_per_job": 1e6 * database_s / count,
            "count": count,
        }
    finally:
        watcher.end()


def _burst_table(count: int) -> Table:
    return Table(
        f"burst-{count}",
        f"{count:,} one-shot jobs, all due",
        [
            Column("jobs_per_s", "end to end /s", "more"),
            Column("settled_per_s", "settled /s", "more"),
            Column("drain_per_s", "drain /s", "more"),
            Column("store_per_s", "stored /s", "more"),
            Column("cpu_us_per_job", "CPU µs a job", "less"),
            Column("database_us_per_job", "server CPU µs a job", "less"),
            Column("count", "jobs"),
        ],
        notes=[
            "End to end: from the spawn of the process to the start of the last job, imports included.",
            "Settled: until the contender's own tables show nothing left to do. Drain: from first start to last.",
            "CPU: of the scheduler's process and of the database server, from the spawn to the last start.",
        ],
    )


def _burst(plan: Plan, server: Server, count: int) -> Table:
    table = _burst_table(count)
    interleave(plan, table, [(US.name, partial(burst, US, server, count, 1))])
    entries: list[Entry] = [
        (peer.name, partial(burst, peer, server, SLOW_COUNT if peer is APSCHEDULER4_POSTGRES else count, 1))
        for peer in plan.peers_postgres
    ]
    interleave(plan, table, entries, 1)
    if entries:
        table.notes += [f"APScheduler 4 is given {SLOW_COUNT:,} jobs: at its rate {count:,} would take minutes.", OBAN]
    return table


def _larger_burst(plan: Plan, server: Server, count: int, smaller: Table) -> Table:
    table = _burst_table(count)
    interleave(plan, table, [(US.name, partial(burst, US, server, count, 1))])
    theirs = {name: runs for name, runs in smaller.runs.items() if name != US.name}
    if theirs:
        table.runs.update(theirs)
        table.notes.append("The peers' rows are those from above: at their rates this many would take minutes.")
    return table


def together(server: Server, count: int, nodes: int, folder: Path) -> Run:
    """Nodes that are up and idle when `count` jobs become due; everything counts from that moment."""
    _fresh(US, server, folder)
    due = time.time() + 2.5 + nodes / 2 + count / 10_000
    US.ask("store", folder=str(folder), count=count, first=due)
    watcher = Watcher(US, folder)
    try:
        with Serving(US, folder, nodes=nodes) as serving:
            serving.wait_for(count, 120)
            settled_at = watcher.settled_at()
        marks = serving.marks()
        assert len(marks) == count, f"{len(marks)} starts of {count} jobs"
        last = max(mark.started for mark in marks)
        return {"drain_per_s": count / (last - due), "settled_per_s": count / (settled_at - due)}
    finally:
        watcher.end()


def _nodes(plan: Plan, server: Server) -> Table:
    count = 2000 if plan.quick else 20_000
    table = Table(
        "nodes",
        f"{count:,} one-shot jobs that become due at once, with the nodes already there",
        [Column("drain_per_s", "drain /s"), Column("settled_per_s", "settled /s")],
        notes=["From the moment they become due. All nodes and the server share the machine's cores."],
    )
    entries: list[Entry] = [
        (f"Wakeful, {nodes} node{'s' if nodes > 1 else ''}", partial(together, server, count, nodes)) for nodes in NODES
    ]
    interleave(plan, table, entries, min(plan.rounds, 2))
    return table


# -- one after the other ----------------------------------------------------------------------------------------------


def lateness(contender: Contender, server: Server, count: int, span: float, folder: Path, *, idle: int = 0) -> Run:
    """Store jobs due one after the other, serve, and compare start with due."""
    _fresh(contender, server, folder)
    if idle:
        contender.ask("recur", folder=str(folder), count=idle)
    lead = LEAD_S.get(contender.name, 5.0)
    contender.ask("store", folder=str(folder), count=count, first=time.time() + lead, span=span)
    with Serving(contender, folder) as serving:
        serving.wait_for(count, lead + span + 60)
    late = [(mark.started - mark.due) * 1000 for mark in serving.marks()]
    assert len(late) == count, f"{len(late)} starts of {count} jobs"
    return {**spread(late), "early": sum(1 for ms in late if ms < 0)}


def _lateness(plan: Plan, server: Server) -> Table:
    count, span = (250, 5.0) if plan.quick else (1000, 20.0)
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
    )
    entries: list[Entry] = [
        (who.name, partial(lateness, who, server, count, span)) for who in (US, *plan.peers_postgres)
    ]
    if not plan.quick:
        entries.insert(1, (f"Wakeful, {IDLE:,} idle jobs", partial(lateness, US, server, count, span, idle=IDLE)))
    interleave(plan, table, entries, 1)
    runs = {peer.name: table.runs.get(peer.name, ()) for peer in plan.peers_postgres}
    table.peers_in = tuple(name for name, found in runs.items() if not any(run["early"] for run in found))
    return table


def pickup(contender: Contender, server: Server, samples: int, folder: Path) -> Run:
    """Added by another process, one at a time, to an idle scheduler; from before the call to the job's start."""
    _fresh(contender, server, folder)
    with Serving(contender, folder) as serving:
        time.sleep(2.0)  # until it is there, and idle
        if contender is US:
            options = {"far": False, "samples": samples, "every": 0.09, "seconds": 120, "stop": str(folder / "stop")}
            command = US.command("write", folder=str(folder), **options)
            subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, check=True)
        else:
            contender.ask("pickup", folder=str(folder), samples=samples, every=0.09)
        serving.wait_for(samples, 60)
    return spread([(mark.started - mark.due) * 1000 for mark in serving.marks()])


def _pickup(plan: Plan, server: Server) -> Table:
    samples = 30 if plan.quick else 100
    table = Table(
        "pickup",
        "Pickup of one immediate job by an idle scheduler in another process (milliseconds)",
        [
            Column("p50_ms", "p50", "less"),
            Column("p95_ms", "p95", "less"),
            Column("p99_ms", "p99", "less"),
            Column("max_ms", "max", "less"),
        ],
        notes=["From before the call that adds the job to the job's start."],
    )
    entries: list[Entry] = [(who.name, partial(pickup, who, server, samples)) for who in (US, *plan.peers_postgres)]
    interleave(plan, table, entries, 1)
    return table


# -- jobs that are not due --------------------------------------------------------------------------------------------


def idle(contender: Contender, server: Server, count: int, idle_s: float, folder: Path) -> Run:
    """Add `count` hourly jobs, start with one more that is due, then watch the process and the server do nothing."""
    _fresh(contender, server, folder)
    run: Run = {}
    options = {}
    if contender is PROCRASTINATE:
        options["recurring"] = count  # they live in its code, and are declared at every start
    else:
        run["add_per_s"] = count / contender.ask("recur", folder=str(folder), count=count)["seconds"]
    contender.ask("store", folder=str(folder), count=1, first=time.time())
    with Serving(contender, folder, **options) as serving:
        serving.wait_for(1, 300)
        run["ready_s"] = min(mark.started for mark in serving.marks()) - serving.spawned_at
        time.sleep(CALM_S)
        cpu, database_s, began = serving.cpu_s(), server.cpu_s(), time.time()
        time.sleep(idle_s)
        seconds = time.time() - began
        run["idle_cpu_percent"] = 100 * (serving.cpu_s() - cpu) / seconds
        run["idle_database_percent"] = 100 * (server.cpu_s() - database_s) / seconds
        run["rss_mib"] = serving.rss_mib()
    return run


def _idle(plan: Plan, server: Server) -> Table:
    count, idle_s = (10_000, 3.0) if plan.quick else (IDLE, 15.0)
    table = Table(
        "idle",
        f"{count:,} hourly jobs, none due",
        [
            Column("add_per_s", "added /s", "more"),
            Column("ready_s", "restart to first start s", "less"),
            Column("rss_mib", "memory MiB", "less"),
            Column("idle_cpu_percent", "idle CPU %", "less"),
            Column("idle_database_percent", "idle server CPU %", "less"),
        ],
        notes=[
            "Restart to first start: from the spawn of the process, all jobs there, to the start of one that is due.",
            f"Idle CPU over {idle_s:.0f} s, of the scheduler's process and of the database server.",
        ],
    )
    who = [US, *(peer for peer in plan.peers_postgres if peer is PROCRASTINATE)]
    interleave(plan, table, [(peer.name, partial(idle, peer, server, count, idle_s)) for peer in who], 1)
    if plan.peers_postgres:
        table.notes += [
            "Procrastinate's periodic tasks live in its code, declared at every start, not stored: no rate of adding.",
            "APScheduler 4 adds a few hundred a second and DBOS has a thread for each schedule: both are left out.",
        ]
    return table
