"""How long pages of the dashboard take in a store with many jobs and runs, while others of them run."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import psycopg

from bench.figures import Run, spread
from bench.http_side import ask
from bench.measures import Column, Plan, Table
from bench.measures.http import Answering, serving
from bench.server import running
from wakeful import Cron, Every, NewJob, Scheduler, ids
from wakeful.kernel.context import Context
from wakeful.store.interface import Transaction
from wakeful.store.records import RunRow

JOBS, RUNS, FEWER_JOBS, FEWER_RUNS = 100_000, 1_000_000, 2_000, 20_000
DAY_MS, WEEK_MS = 86_400_000, 7 * 86_400_000
TOGETHER = 1_000
PULSES = 50  # runs that start every second meanwhile, of jobs that run every ten: as often as a job may
SECONDS, QUICK_SECONDS = 6.0, 2.0
APART_S = 0.5  # from one change to the next, where it is measured when pages are told of one
PAGES = {
    "Now": "/",
    "Jobs": "/jobs",
    "Jobs, by a part of the name": "/jobs?q=job-77",
    "Jobs that are off": "/jobs?state=disabled",
    "Runs": "/runs",
    "Job": "/jobs/job-777",
    "explain": "/ui/job/why?_name=job-777",
    "region: the verdict": "/ui/now/verdict",
    "region: what needs you": "/ui/now/needs",
    "region: what runs": "/ui/now/going",
    "region: the timeline": "/ui/now/timeline",
    "region: what was said": "/ui/now/said",
    "region: what was spent": "/ui/now/spend",
    "region: on record": "/ui/now/record",
}


def measure(plan: Plan) -> list[Table]:
    jobs, runs = (FEWER_JOBS, FEWER_RUNS) if plan.quick else (JOBS, RUNS)
    seconds = QUICK_SECONDS if plan.quick else SECONDS
    with tempfile.TemporaryDirectory(prefix="bench-") as name, running() as server:
        places = {one: Path(name) / one for one in ("SQLite", "PostgreSQL")}
        for place in places.values():
            place.mkdir()
        urls = {
            "SQLite": f"sqlite:///{places['SQLite']}/wakeful.db",
            "PostgreSQL": server.database(places["PostgreSQL"]),
        }
        return [_table(plan, store, urls[store], places[store], (jobs, runs, seconds)) for store in places]


def _table(plan: Plan, store: str, url: str, folder: Path, size: tuple[int, int, float]) -> Table:
    """One store: filled, then served while jobs run in it."""
    jobs, runs, seconds = size
    columns = [Column("p50", "p50 ms", "less"), Column("p95", "p95 ms", "less")]
    columns += [Column("cpu", "server's CPU ms a page", "less"), Column("count", "answers")]
    title = f"Pages with {jobs:,} jobs and {runs:,} runs on {store}, {PULSES} of them a second"
    table = Table(f"pages-{store.lower()}", title, columns, ours="", section="record")
    with serving(folder) as server:
        table.add("a change, until open pages are told, in an empty store", told(server, seconds))
    asyncio.run(fill(url, jobs, runs))
    if store == "PostgreSQL":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
    with serving(folder) as server:
        idle = idle_share(server.pid, seconds)
        for page, path in PAGES.items():
            table.add(page, asked(server, path, folder, seconds, idle))
            plan.say(f"  {store}, {page}: p95 {table.runs[page][0]['p95']:.1f} ms")
    return table


def idle_share(pid: int, seconds: float) -> float:
    """The processor time of each second that the runs take, without any request."""
    time.sleep(seconds)  # until it is warm
    before, began = cpu_s(pid), time.time()
    time.sleep(seconds)
    return (cpu_s(pid) - before) / (time.time() - began)


def asked(server: Answering, path: str, folder: Path, seconds: float, idle: float) -> Run:
    """How long a page takes, one request after the other; the first ones warm up."""
    ask(server.port, server.token, path, time.time() + 0.5, folder / "stop", accept="text/html")
    before, began = cpu_s(server.pid), time.time()
    seen = ask(server.port, server.token, path, time.time() + seconds, folder / "stop", accept="text/html")
    spent = max(0.0, cpu_s(server.pid) - before - idle * (time.time() - began))
    took = [one * 1000 for _, one in seen]
    found = spread(took)
    return {"p50": found["p50_ms"], "p95": found["p95_ms"], "cpu": 1000 * spent / len(took), "count": len(took)}


def told(server: Answering, seconds: float) -> Run:
    """How long after a person acted the stream that pages listen to says that something changed."""
    who = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    stream, acting = (http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in range(2))
    took, before, end = [], cpu_s(server.pid), time.time() + seconds

    def act(path: str, **body: object) -> None:
        acting.request("POST", path, json.dumps(body), who)
        answer = acting.getresponse()
        assert answer.status < 300, answer.read()
        answer.read()

    act("/api/jobs", name="live", every="6h", kind="mark")
    stream.request("GET", "/ui/stream", headers=who)
    lines = stream.getresponse()
    while b"event: hello" not in lines.readline():
        pass
    while time.time() < end:
        for what in ("pause", "resume"):
            time.sleep(APART_S)
            began = time.time()
            act(f"/api/jobs/live/{what}")
            while b"event: changed" not in lines.readline():
                pass
            took.append(1000 * (time.time() - began))
    act("/api/jobs/live/pause")
    stream.close()
    acting.close()
    spent, found = cpu_s(server.pid) - before, spread(took)
    return {"p50": found["p50_ms"], "p95": found["p95_ms"], "cpu": 1000 * spent / len(took), "count": len(took)}


def cpu_s(pid: int) -> float:
    """Processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


async def fill(url: str, jobs: int, runs: int) -> None:
    """Daily jobs, each at a time of its own, with a week of runs, a few of which failed."""
    async with Scheduler(url) as scheduler:
        now, each = scheduler.clock.now(), runs // jobs
        for begin in range(0, jobs, TOGETHER):
            crons = [Cron(f"{n % 60} {n // 60 % 24} * * *") for n in range(begin, min(jobs, begin + TOGETHER))]
            added = await scheduler.add_jobs(
                [NewJob(f"job-{begin + n}", cron, kind="mark") for n, cron in enumerate(crons)]
            )
            numbers = [found[1] for text in added if (found := ids.decode(text)) is not None]
            await scheduler.transact(partial(_past, now, each, begin, numbers), wakes=False)
        await scheduler.add_jobs(
            [NewJob(f"pulse-{n}", Every("10s"), kind="mark", payload=[n, 0.0]) for n in range(10 * PULSES)]
        )


def _past(now: int, each: int, begin: int, numbers: list[int], tx: Transaction, _: Context) -> None:
    rows = []
    for place, number in enumerate(numbers):
        for turn in range(each):
            at = now - WEEK_MS + WEEK_MS * turn // each + (begin + place) * 40 % (WEEK_MS // each)
            outcome = "error" if (number + turn) % 997 == 0 else "success"
            run_id = ids.first_id_at(at) + (begin + place) % 4096
            rows.append(
                RunRow(run_id, number, "mark", "schedule", at, 1, None, None, None, "done", outcome, at, at, at + 900)
            )
    tx.runs.add(rows)
