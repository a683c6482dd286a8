"""How long the record takes: the ledger of a month, and pausing many jobs at once, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.figures import Run
from bench.measures import Column, Plan, Table
from bench.measures.million import timed
from bench.server import running
from wakeful import Cron, NewJob, Scheduler, ids
from wakeful.kernel.actions.selections import JobSelection
from wakeful.kernel.context import Context, Rights
from wakeful.store.interface import Transaction
from wakeful.store.records import RunRow

DAYS, DAY_MS = 30, 86_400_000
JOBS, FEWER = 10_000, 2_000
MANY, SOME = 20_000, 4_000  # jobs that are paused together
TOGETHER = 200
WHO = Rights("bench", admin_kinds=True, via="code")


def measure(plan: Plan) -> list[Table]:
    tables = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, running() as server:
        for name in ("SQLite", "PostgreSQL"):
            place = Path(folder) / name
            place.mkdir()
            url = f"sqlite:///{place}/jobs.db" if name == "SQLite" else server.database(place)
            tables += asyncio.run(_tables(plan, name, url, folder))
    return tables


async def _tables(plan: Plan, name: str, url: str, folder: str) -> list[Table]:
    jobs, many = (FEWER, SOME) if plan.quick else (JOBS, MANY)
    columns = [Column("seconds", "seconds", "less"), Column("cpu_s", "its CPU s", "less")]
    read = Table(
        f"ledger-{name.lower()}", f"{DAYS} days of {jobs:,} daily jobs on {name}", columns, ours="", section="record"
    )
    acts = Table(f"bulk-{name.lower()}", f"{many:,} jobs in one action on {name}", columns, ours="", section="record")
    async with Scheduler(url) as scheduler:
        await _fill(scheduler, jobs)
        for _ in range(plan.rounds):
            run = await _timed(lambda: scheduler.get_ledger(since=f"{DAYS}d"))
            read.add("in a program", run)
        for title, more in (("wakeful ledger", ()), ("wakeful ledger --json", ("--json",))):
            for _ in range(plan.rounds):
                words = ["ledger", "--since", f"{DAYS}d", *more, "--db", url]
                read.add(title, await asyncio.to_thread(timed, words, folder))
        await scheduler.add_jobs([NewJob(f"more-{number}", Cron("@yearly")) for number in range(many - jobs)])
        await _act(plan, scheduler, acts)
    for table in (read, acts):
        for title, run in table.medians().items():
            plan.say(f"  {name} {title}: {run['seconds']:.2f} s")
    return [read, acts]


async def _act(plan: Plan, scheduler: Scheduler, table: Table) -> None:
    everything, server = JobSelection(), scheduler.server_side
    for _ in range(plan.rounds):
        table.add("pause", await _timed(lambda: server.pause_jobs(everything, None, WHO)))
        table.add("resume", await _timed(lambda: server.resume_jobs(everything, WHO)))
        latest = await server.latest_action(WHO)
        table.add("undo of the resume", await _timed(partial(server.undo, latest, WHO)))
        await server.resume_jobs(everything, WHO)


async def _timed(work: Callable[[], Awaitable[Any]]) -> Run:
    began, used = time.perf_counter(), time.process_time()
    await work()
    return {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - used}


async def _fill(scheduler: Scheduler, jobs: int) -> None:
    """Daily jobs, each at a time of its own, whose slots all ran."""
    now = scheduler.clock.now()
    made = [Cron(f"{number % 60} {number // 60 % 24} * * *") for number in range(jobs)]
    for begin in range(0, jobs, TOGETHER):
        part = made[begin : begin + TOGETHER]
        added = await scheduler.add_jobs([NewJob(f"job-{begin + n}", cron) for n, cron in enumerate(part)])
        numbers = [int(found[1]) for text in added if (found := ids.decode(text)) is not None]
        await scheduler.transact(partial(_past, now, begin, numbers, part))


def _past(now: int, begin: int, numbers: list[int], triggers: list[Cron], tx: Transaction, _: Context) -> None:
    runs, first, since = [], ids.first_id_at(now - DAYS * DAY_MS), now - DAYS * DAY_MS
    states, definitions = tx.jobs.states(numbers), tx.jobs.definitions(numbers)
    for place, (number, trigger) in enumerate(zip(numbers, triggers, strict=True)):
        slots = [slot for slot in trigger.resolved(now, "UTC").upcoming_slots(since, DAYS + 1) if slot <= now]
        for day, slot in enumerate(slots):
            run_id = first + (begin + place) * 2 * DAYS + day
            runs.append(
                RunRow(
                    run_id,
                    number,
                    "job",
                    "schedule",
                    slot,
                    1,
                    None,
                    None,
                    None,
                    "done",
                    "success",
                    slot,
                    slot,
                    slot + 9,
                )
            )
        tx.jobs.save([states[number]._replace(last_slot=slots[-1], counted_to=slots[-1])])
        tx.jobs.define(definitions[number]._replace(created_at=since))
    tx.runs.add(runs)
