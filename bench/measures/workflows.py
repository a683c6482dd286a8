"""Workflows: events per second with every phase stored, how soon a consumer starts, and what pending events cost."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.figures import Run
from bench.measures import Column, Entry, Plan, Table, interleave, steps
from bench.server import Server, running
from wakeful import Prepared, Scheduler, Workflow
from wakeful.domains.workflows.publishing import NewEvent, publish

if TYPE_CHECKING:
    from pathlib import Path

STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
BATCH = 1_000
PATIENCE_S = 300.0


class Flow:
    """A workflow whose one consumer takes so many events a run, with a mutation and a message that follows."""

    def __init__(self, name: str, batch: int, *, takes: bool = True) -> None:
        self.workflow = Workflow(name)
        self.done = 0
        self.started: list[float] = []
        self.changed = asyncio.Event()
        consumer = self.workflow.consumer("work", subscribes=["events"], publishes=["results"])

        @consumer.prepare
        async def prepare(ctx: Any, _: Any) -> Prepared:
            self.started.append(time.perf_counter())
            self.changed.set()
            found = await ctx.peek("events", limit=batch) if takes else []
            return Prepared({"events": [event.id for event in found]}, [event.message_id for event in found])

        @consumer.mutate
        async def mutate(_: Any, prepared: Prepared) -> int:
            return len(prepared.data)

        @consumer.next
        async def next_(ctx: Any, prepared: Prepared, result: Any) -> dict[str, int]:
            if prepared.data:
                await ctx.publish("results", message_id=prepared.data[-1], payload=result.value)
            self.done += len(prepared.data)
            self.changed.set()
            return {"done": self.done}


async def _fill(scheduler: Scheduler, name: str, count: int, prefix: str = "e") -> None:
    for first in range(0, count, BATCH):
        messages = [NewEvent("events", f"{prefix}{first + n}", "{}") for n in range(min(BATCH, count - first))]
        await scheduler.transact(lambda tx, context, messages=messages: publish(tx, context, name, messages))


def through(url: str, flows: int, count: int, batch: int) -> Run:
    """Events that are all published before the start, worked through by `flows` workflows."""

    async def main() -> Run:
        made = [Flow(f"flow-{number}", batch) for number in range(flows)]
        async with Scheduler(url) as scheduler:
            for flow in made:
                scheduler.add_workflow(flow.workflow)
            await scheduler.start()
            await scheduler.stop()
            for flow in made:
                await _fill(scheduler, flow.workflow.name, count // flows)
            cpu, began = time.process_time(), time.perf_counter()
            await scheduler.start()
            async with asyncio.timeout(PATIENCE_S):
                for flow in made:
                    while flow.done < count // flows:
                        flow.changed.clear()
                        await flow.changed.wait()
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
            await scheduler.stop()
        runs = sum(len(flow.started) for flow in made)
        return {"events_per_s": count / took, "runs_per_s": runs / took, "cpu_ms": 1000 * cpu / count, "count": count}

    return asyncio.run(main())


def _events(plan: Plan, server: Server) -> list[Table]:
    each, many, theirs = (50, 1_000, 200) if plan.quick else (90, 5_000, 1_000)
    shapes = [
        (f"Wakeful, one workflow, {each} events one by one", 1, each, 1),
        (f"Wakeful, one workflow, {many:,} events, 100 a run", 1, many, 100),
        (f"Wakeful, 100 workflows, {many:,} events one by one", 100, many, 1),
    ]
    tables = []
    for name, where in STORES.items():
        table = Table(
            f"events-{name}",
            f"Events through publish, prepare, mutate, next and commit, each phase stored, on {where}",
            [
                Column("events_per_s", "events /s", "more"), Column("runs_per_s", "runs /s"),
                Column("cpu_ms", "CPU ms an event"), Column("count", "events"),
            ],
            ours=shapes[2][0], section="workflows",
        )  # fmt: skip
        entries: list[Entry] = [
            (title, partial(_through_on, server if name == "postgres" else None, flows, count, batch))
            for title, flows, count, batch in shapes
        ]
        if name == "postgres" and plan.peers_postgres:
            entries.append(("DBOS, a workflow of three steps an event", partial(steps.theirs, server, theirs, None)))
            table.notes.append(
                "DBOS polls its queue every 50 ms and stores each step; it has no reservations or topics."
            )
        interleave(plan, table, entries)
        tables.append(table)
    return tables


def _through_on(server: Server | None, flows: int, count: int, batch: int, folder: Path) -> Run:
    url = f"sqlite:///{folder}/wakeful.db" if server is None else server.database(folder)
    return through(url, flows, count, batch)


# -- one event ---------------------------------------------------------------------------------------------------------


def start_of_one(server: Server | None, samples: int, pending: int, folder: Path) -> Run:
    """How long after a publish began its consumer starts, with so many events pending elsewhere; and idle CPU."""
    url = f"sqlite:///{folder}/wakeful.db" if server is None else server.database(folder)

    async def main() -> Run:
        flow, full = Flow("flow", 10), Flow("full", 0, takes=False)
        async with Scheduler(url) as scheduler:
            scheduler.add_workflow(flow.workflow)
            scheduler.add_workflow(full.workflow)
            await scheduler.start()
            await _fill(scheduler, "full", pending)
            await asyncio.sleep(1)
            waits = []
            for number in range(samples):
                await asyncio.sleep(0.02)
                before, began = len(flow.started), time.perf_counter()
                await _fill(scheduler, "flow", 1, f"s{number}-")
                async with asyncio.timeout(PATIENCE_S):
                    while len(flow.started) == before:
                        flow.changed.clear()
                        await flow.changed.wait()
                waits.append(1000 * (flow.started[before] - began))
                async with asyncio.timeout(PATIENCE_S):
                    while flow.done < number + 1:
                        flow.changed.clear()
                        await flow.changed.wait()
            runs, cpu, began = len(full.started), time.process_time(), time.perf_counter()
            await asyncio.sleep(5)
            idle = 100 * (time.process_time() - cpu) / (time.perf_counter() - began)
            assert len(full.started) == runs, "pending events that are not consumed start nothing"
            await scheduler.stop()
        ordered = sorted(waits)
        return {
            "p50_ms": statistics.median(ordered),
            "p99_ms": ordered[int(len(ordered) * 0.99) - 1],
            "idle_percent": idle,
        }

    return asyncio.run(main())


def _start(plan: Plan, server: Server) -> list[Table]:
    samples, pending = (50, 10_000) if plan.quick else (300, 100_000)
    tables = []
    for name, store in STORES.items():
        where = server if name == "postgres" else None
        table = Table(
            f"start-{name}",
            f"From publish to the start of the consumer, on {store} (milliseconds)",
            [Column("p50_ms", "p50"), Column("p99_ms", "p99"), Column("idle_percent", "CPU % when idle")],
            notes=["From the call that publishes, its commit included, to the first line of prepare."],
            peers_in=(), section="workflows",
        )  # fmt: skip
        entries: list[Entry] = [
            ("Wakeful", partial(start_of_one, where, samples, 0)),
            (f"Wakeful, {pending:,} events pending", partial(start_of_one, where, samples, pending)),
        ]
        interleave(plan, table, entries, 1 if plan.quick else None)
        tables.append(table)
    return tables


def measure(plan: Plan) -> list[Table]:
    with running() as server:
        tables = [*_events(plan, server), *_start(plan, server)]
        tables[0].about = f"SQLite {sqlite3.sqlite_version}, PostgreSQL {server.version()}"
    return tables
