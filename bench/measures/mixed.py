"""Everything at once for half an hour: agents, workflows, webhooks, work, monitors, jobs, deliveries, readers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.contenders import environment
from bench.figures import Run, percentile
from bench.machine import busy_s
from bench.measures import Column, Plan, Table, interleave
from bench.mixed_fleet import AGENTS, EVENTS_PER_S, JOBS, KEPT, READERS, WORKFLOWS, Outside, Target, write

LOOK_S = 5.0  # how long the last look may take
SETTLE_S = 90.0  # after the last write, until all of it is done
WARM_MIN = 5  # minutes after which nothing may grow
AWAY_S = 30.0  # from the server's own minute, in which it sweeps and starts to prune
READY_S = 60.0


class Minute(NamedTuple):
    """The server in one minute."""

    cpu_percent: float
    others_percent: float  # of one processor, used by everything else on the machine
    rss_mib: float
    late_p99_ms: float
    rows: int
    pruned: int


class Server:
    """`wakeful serve` on the folder's configuration, with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self._said = folder / "serve.log"
        environ = {**environment(), "HOME": str(folder)}
        command = [
            sys.executable,
            "-m",
            "wakeful.cli",
            "serve",
            "--port",
            "0",
            "--config",
            str(folder / "wakeful.yaml"),
        ]
        with self._said.open("wb") as out:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environ, stdout=out, stderr=out, start_new_session=True
            )

    async def url(self) -> str:
        end = time.time() + READY_S
        while (found := re.search(r"http://127\.0\.0\.1:\d+", self._said.read_text(encoding="utf-8"))) is None:
            assert self.process.poll() is None and time.time() < end, self._said.read_text(encoding="utf-8")[-800:]  # noqa: PT018
            await asyncio.sleep(0.05)
        return found[0]

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self) -> float:
        """Seconds from SIGTERM to its end."""
        began = time.time()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        return time.time() - began


async def soak(plan: Plan, minutes: int, folder: Path) -> Run:
    """Serve the fleet, write to it from outside, look at it each minute, and count in the end."""
    target = Target()
    write(folder, await target.start())
    server = Server(folder)
    try:
        base = await server.url()
        outside = Outside(base, (folder / "wakeful.db.token").read_text(encoding="ascii").strip())
        looking = _look(plan, server, folder, minutes, outside.ended)
        seen = (await asyncio.gather(looking, outside.run(time.time() + AWAY_S + 60 * minutes + LOOK_S)))[0]
        await _settled(folder)
        stop_s = server.stop()
    finally:
        if server.process.poll() is None:
            server.stop()
        target.close()
    plan.say(f"    accepted {dict(outside.accepted)}, refused {dict(outside.refused)}")
    return {**_growth(seen), **_counts(folder, target, outside), "stop_s": stop_s}


async def _look(
    plan: Plan, server: Server, folder: Path, minutes: int, ended: Callable[[], Awaitable[int]]
) -> list[Minute]:
    """Each minute, half a minute away from the server's own; `ended`: how many runs have ended."""
    seen: list[Minute] = []
    await asyncio.sleep(AWAY_S)
    cpu, machine, began, gone = server.cpu_s(), busy_s(), time.time(), 0
    for number in range(1, minutes + 1):
        await asyncio.sleep(max(0.0, began + 60 * number - time.time()))
        now, busy = server.cpu_s(), busy_s()
        late = await asyncio.to_thread(_lateness, folder, (time.time() - 60) * 1000)
        stored = (await asyncio.to_thread(_ask, folder, "SELECT count(*) FROM runs WHERE status = 'done'"))[0][0]
        before, gone = gone, max(gone, await ended() - stored)
        percent, others = (now - cpu) / 60 * 100, (busy - machine - (now - cpu)) / 60 * 100
        seen.append(Minute(percent, others, server.rss_mib(), percentile(late, 0.99), stored, gone - before))
        cpu, machine = now, busy
        plan.say(
            f"    minute {number}: CPU {percent:.0f} %, others {others:.0f} %, {seen[-1].rss_mib:.1f} MiB, "
            f"late p99 {seen[-1].late_p99_ms:.0f} ms, {seen[-1].rows:,} runs stored, {seen[-1].pruned:,} pruned"
        )
    return seen


def _lateness(folder: Path, since: float) -> list[float]:
    """How late the jobs that are due together were, each from its slot to its start."""
    rows = _ask(
        folder,
        "SELECT started_at - slot FROM runs JOIN jobs ON jobs.id = runs.job_id "
        "WHERE jobs.kind = 'command' AND slot >= ? AND started_at IS NOT NULL",
        since,
    )
    return [float(row[0]) for row in rows] or [0.0]


WAITING = (
    "SELECT (SELECT count(*) FROM workflow_events WHERE status IN ('pending', 'reserved')) "
    "+ (SELECT count(*) FROM agent_work WHERE status IN ('ready', 'claimed')) "
    "+ (SELECT count(*) FROM deliveries WHERE status IN ('pending', 'sending'))"
)


async def _settled(folder: Path) -> None:
    end = time.time() + SETTLE_S
    while (await asyncio.to_thread(_ask, folder, WAITING))[0][0] and time.time() < end:  # noqa: ASYNC110 - another process works
        await asyncio.sleep(0.5)


def _counts(folder: Path, target: Target, outside: Outside) -> Run:
    """What was accepted and is not done, what was done twice, and slots without a record."""
    waiting = _ask(folder, WAITING)[0][0]
    events = _ask(folder, "SELECT count(*) FROM workflow_messages")[0][0]
    sent = _ask(folder, "SELECT count(*) FROM deliveries WHERE status = 'sent'")[0][0]
    command = [sys.executable, "-m", "wakeful.cli", "ledger", "--json", "--db", str(folder / "wakeful.db")]
    said = subprocess.run(
        command, cwd=folder, env={**environment(), "HOME": str(folder)}, capture_output=True, text=True, check=False
    )
    ledger = json.loads(said.stdout)
    return {
        "waiting": waiting,
        "lost": outside.accepted["event"] - events + max(0, sent - len(target.received)),
        "doubled": sum(number - 1 for number in target.received.values()),
        "unaccounted": _unaccounted(ledger),
        "events": outside.accepted["event"],
        "deliveries": len(target.received),
    }


def _unaccounted(ledger: Any) -> int:
    if isinstance(ledger, dict):
        own = ledger.get("unaccounted")
        if isinstance(own, int):
            return own
        return sum(_unaccounted(value) for value in ledger.values())
    return sum(_unaccounted(value) for value in ledger) if isinstance(ledger, list) else 0


def _growth(seen: Sequence[Minute]) -> Run:
    """The first minutes after it is warm beside the last ones."""
    warm = seen[min(WARM_MIN, len(seen) - 1) :]
    third = max(1, len(warm) // 3)
    first, last = warm[:third], warm[-third:]
    return {
        "cpu_first": statistics.mean(one.cpu_percent for one in first),
        "cpu_last": statistics.mean(one.cpu_percent for one in last),
        "others_first": statistics.mean(one.others_percent for one in first),
        "others_last": statistics.mean(one.others_percent for one in last),
        "rss_first_mib": statistics.mean(one.rss_mib for one in first),
        "rss_last_mib": statistics.mean(one.rss_mib for one in last),
        "late_first_ms": max(one.late_p99_ms for one in first),
        "late_last_ms": max(one.late_p99_ms for one in last),
        "pruned_first": statistics.mean(one.pruned for one in first),
        "pruned_last": statistics.mean(one.pruned for one in last),
    }


def _ask(folder: Path, query: str, *values: float) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{folder / 'wakeful.db'}?mode=ro", uri=True, timeout=30)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def measure(plan: Plan) -> list[Table]:
    minutes = round(plan.minutes) if plan.minutes is not None else 3 if plan.quick else 30
    table = Table(
        "mixed",
        f"{minutes} minutes of all domains at once",
        [
            Column("cpu_first", "CPU %, first third"),
            Column("cpu_last", "last third"),
            Column("others_first", "CPU % of all else, first third"),
            Column("others_last", "last third"),
            Column("rss_first_mib", "memory MiB, first third"),
            Column("rss_last_mib", "last third"),
            Column("late_first_ms", "late p99 ms, first third"),
            Column("late_last_ms", "last third"),
            Column("pruned_first", "runs pruned a minute, first third"),
            Column("pruned_last", "last third"),
            Column("events", "events"),
            Column("deliveries", "deliveries"),
            Column("waiting", "not done"),
            Column("lost", "lost"),
            Column("doubled", "doubled"),
            Column("unaccounted", "unaccounted slots"),
            Column("stop_s", "SIGTERM to end s"),
        ],
        notes=[
            (
                f"{AGENTS} agents with a heartbeat every minute, {len(WORKFLOWS)} workflows with {EVENTS_PER_S} "
                f"events/s, webhooks, work items, monitors, {JOBS} commands on one second, deliveries to a target that "
                f"is away for 5 to 25 s after each minute, {READERS} readers of events; of each job "
                f"{KEPT} runs are kept."
            ),
            (
                f"Thirds of the time after minute {WARM_MIN}; late: the worst minute's p99 from slot to start; "
                "all else: the target, writers and readers of this measure, and whatever else the machine was doing."
            ),
        ],
        ours="",
    )
    interleave(plan, table, [("SQLite", partial(_soak, plan, minutes))], rounds=1)
    return [table]


def _soak(plan: Plan, minutes: int, folder: Path) -> Run:
    return asyncio.run(soak(plan, minutes, folder))
