"""Steps: events per second through a handler with three steps, by keys, beside workflows of three steps elsewhere."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

from bench.contenders import DBOS_STEPS
from bench.figures import Run
from bench.measures import Column, Entry, Plan, Table, interleave
from bench.server import Server, running
from wakeful import Scheduler, Workflow
from wakeful.domains.workflows.publishing import NewEvent, publish

BATCH = 1_000
PATIENCE_S = 3_600.0
PLACES = 50
NAMES = ("prepare", "mutate", "following")


class Shop:
    """A workflow whose handler does three steps for each event, and the order in which the events of each key ended."""

    def __init__(self, count: int, places: int) -> None:
        self.workflow = Workflow("shop")
        self.ended: dict[int, list[int]] = {}
        self.over = asyncio.Event()
        self._left = count

        @self.workflow.on("events", key=lambda event: event.payload["key"], concurrency=places, publishes=[])
        async def work(ctx: Any, event: Any) -> None:
            value = event.payload["number"]
            for name in NAMES:
                value = await ctx.step(name, following, value)
            self.ended.setdefault(event.payload["key"], []).append(event.payload["number"])
            self._left -= 1
            if not self._left:
                self.over.set()

    def disordered(self) -> int:
        """Keys whose events were not worked on in the order in which they were published."""
        return sum(numbers != sorted(numbers) for numbers in self.ended.values())


async def following(number: int) -> int:
    """What each step does."""
    return number + 1


def through(url: str, count: int, keys: int, places: int) -> Run:
    """Events that are all published before the start, worked through by one handler."""

    async def main() -> Run:
        shop = Shop(count, places)
        async with Scheduler(url) as scheduler:
            scheduler.add_workflow(shop.workflow)
            await scheduler.start()
            await scheduler.stop()
            for first in range(0, count, BATCH):
                messages = [
                    NewEvent("events", f"e{number}", json.dumps({"key": number % keys, "number": number}))
                    for number in range(first, min(first + BATCH, count))
                ]
                await scheduler.transact(lambda tx, context, given=messages: publish(tx, context, "shop", given))
            cpu, began = time.process_time(), time.perf_counter()
            await scheduler.start()
            async with asyncio.timeout(PATIENCE_S):
                await shop.over.wait()
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
            await scheduler.stop()
        assert shop.disordered() == 0, "the order of a key"
        assert sum(map(len, shop.ended.values())) == count, "each event once"
        return {"events_per_s": count / took, "cpu_ms": 1000 * cpu / count, "count": count}

    return asyncio.run(main())


def theirs(server: Server, count: int, folder: Path) -> Run:
    """The same number of events as DBOS workflows of three steps."""
    server.database(folder)
    took = DBOS_STEPS.ask("steps", folder=str(folder), count=count)["seconds"]
    return {"events_per_s": count / took, "runs_per_s": count / took, "count": count}


def measure(plan: Plan) -> list[Table]:
    """One key, where events go one after the other, and a thousand, on both stores."""
    with running() as server:
        return _tables(plan, server)


def _tables(plan: Plan, server: Server) -> list[Table]:
    one, many, peers = (100, 2_000, 200) if plan.quick else (1_000, 100_000, 1_000)
    shapes = [
        (f"Wakeful, a thousand keys, {PLACES} at a time, {many:,} events", many, 1_000, PLACES),
        (f"Wakeful, one key, {one:,} events", one, 1, PLACES),
    ]
    tables = []
    for name, where in (("SQLite", None), ("PostgreSQL", server)):
        table = Table(
            f"steps-{name.lower()}",
            f"Events through a handler with three steps, each stored before and after it is called, on {name}",
            [
                Column("events_per_s", "events /s", "more"), Column("cpu_ms", "CPU ms an event"),
                Column("count", "events"),
            ],
            ours=shapes[0][0], section="workflows",
        )  # fmt: skip
        entries: list[Entry] = [
            (title, partial(_on, where, count, keys, places)) for title, count, keys, places in shapes
        ]
        if where is not None and plan.peers_postgres:
            entries.append(("DBOS, a workflow of three steps an event", partial(theirs, where, peers)))
        interleave(plan, table, entries, None if plan.quick else 1)
        tables.append(table)
    return tables


def _on(server: Server | None, count: int, keys: int, places: int, folder: Path) -> Run:
    url = f"sqlite:///{folder}/wakeful.db" if server is None else server.database(folder)
    return through(url, count, keys, places)
