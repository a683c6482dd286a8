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

BATCH = 1_000  # published in one transaction
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


def through(url: str, count: int, keys: int, places: int, server: Server | None = None) -> Run:
    """Events that are all published before the start, worked through by one handler; on a server, or on a file."""

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
            served = server.cpu_s() if server is not None else 0.0
            cpu, began = time.process_time(), time.perf_counter()
            await scheduler.start()
            async with asyncio.timeout(PATIENCE_S):
                await shop.over.wait()
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
            cpu += server.cpu_s() - served if server is not None else 0.0
            await scheduler.stop()
        assert shop.disordered() == 0, "the order of a key"
        assert sum(map(len, shop.ended.values())) == count, "each event once"
        return {"events_per_s": count / took, "cpu_ms": 1000 * cpu / count, "count": count}

    return asyncio.run(main())


def theirs(server: Server, count: int, at_once: int | None, folder: Path) -> Run:
    """The same number of events as DBOS workflows of three steps."""
    server.database(folder)
    DBOS_STEPS.ask("enqueue", folder=str(folder), count=count, at_once=at_once)
    served = server.cpu_s()
    found = DBOS_STEPS.ask("steps", folder=str(folder), count=count, at_once=at_once)
    cpu = found["cpu_s"] + server.cpu_s() - served
    rate = count / found["seconds"]
    return {"events_per_s": rate, "runs_per_s": rate, "cpu_ms": 1000 * cpu / count, "count": count}


def measure(plan: Plan) -> list[Table]:
    """One key, where events go one after the other, and a thousand, on both stores."""
    with running() as server:
        return [
            table
            for name, where in (("SQLite", None), ("PostgreSQL", server))
            for table in (_thousand_keys(plan, name, where), _one_key(plan, name, where))
        ]


def _thousand_keys(plan: Plan, name: str, server: Server | None) -> Table:
    """DBOS is given no keys: so it does what it can, beside each other and in any order."""
    count, peers = (2_000, 200) if plan.quick else (100_000, 2_000)
    entries = [(f"Wakeful, {PLACES} at a time", partial(_on, server, count, 1_000, PLACES))]
    if server is not None and plan.peers_postgres:
        entries.append(("DBOS, without keys", partial(theirs, server, peers, None)))
    return _measured(plan, f"steps-many-{name.lower()}", f"a thousand keys, on {name}", entries)


def _one_key(plan: Plan, name: str, server: Server | None) -> Table:
    """One after the other, by both."""
    count, peers = (100, 50) if plan.quick else (1_000, 500)
    entries = [("Wakeful", partial(_on, server, count, 1, PLACES))]
    if server is not None and plan.peers_postgres:
        entries.append(("DBOS, one at a time", partial(theirs, server, peers, 1)))
    return _measured(plan, f"steps-one-{name.lower()}", f"one key, on {name}", entries)


def _measured(plan: Plan, key: str, shape: str, entries: list[Entry]) -> Table:
    table = Table(
        key, f"Events through a handler with three steps, each stored before and after it is called: {shape}",
        [
            Column("events_per_s", "events /s", "more"),
            Column("cpu_ms", "CPU ms an event, with the server", "less"),
            Column("count", "events"),
        ],
        ours=entries[0][0], section="workflows",
    )  # fmt: skip
    interleave(plan, table, entries)
    return table


def _on(server: Server | None, count: int, keys: int, places: int, folder: Path) -> Run:
    url = f"sqlite:///{folder}/wakeful.db" if server is None else server.database(folder)
    return through(url, count, keys, places, server)
