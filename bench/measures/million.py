"""How long commands take with a million jobs stored, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from bench.figures import Run
from bench.measures import Column, Plan, Table
from bench.server import running

JOBS = 1_000_000
FEWER = 20_000
PROGRAM = (sys.executable, "-m", "wakeful.cli")

#: Every job is a copy of one that was added in the usual way, with a name and an alarm of its own. Some are paused,
#: disabled or of another kind or owner, at one in some thousands, as they are in a store that has grown.
_JOBS = """
INSERT INTO jobs (id, name, kind, owner, source, trigger, payload, options, created_at, updated_at, removed_at)
SELECT j.id + n.n, 'job-' || n.n, CASE WHEN n.n % 5000 = 1 THEN 'report' ELSE j.kind END,
    CASE WHEN n.n % 10000 = 2 THEN 'alice' END, CASE WHEN n.n % 10000 = 3 THEN 'api' ELSE j.source END,
    j.trigger, j.payload, j.options, j.created_at, j.updated_at, j.removed_at
FROM jobs j CROSS JOIN ({numbers}) n WHERE j.name = 'template'
"""
_STATES = """
INSERT INTO job_state (job_id, revision, enabled, paused, due_at, next_at, slot, queued, errors, crashes, missed,
    slot_runs)
SELECT s.job_id + n.n, s.revision, CASE WHEN n.n % 100 = 4 THEN 0 ELSE 1 END,
    CASE WHEN n.n % 1000 = 5 THEN 1 ELSE 0 END,
    CASE WHEN n.n % 100 = 4 OR n.n % 1000 = 5 THEN NULL ELSE s.due_at + n.n * 10 END,
    CASE WHEN n.n % 100 = 4 OR n.n % 1000 = 5 THEN NULL ELSE s.next_at + n.n * 10 END,
    s.slot, 0, 0, 0, 0, 0
FROM job_state s JOIN jobs j ON j.id = s.job_id CROSS JOIN ({numbers}) n WHERE j.name = 'template'
"""
_SQLITE_NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count}) SELECT n FROM c"
_POSTGRES_NUMBERS = "SELECT n FROM generate_series(1, {count}) n"

COMMANDS: dict[str, tuple[str, ...]] = {
    "version": ("--version",),
    "status": ("status",),
    "status --json": ("status", "--json"),
    "next -n 3": ("next", "-n", "3"),
    "doctor": ("doctor",),
    "list": ("list",),
    "list --status paused": ("list", "--status", "paused"),
    "list --status disabled": ("list", "--status", "disabled"),
    "list --status running": ("list", "--status", "running"),
    "list --kind report": ("list", "--kind", "report"),
    "list --owner alice": ("list", "--owner", "alice"),
    "list --match 99999": ("list", "--match", "99999"),
    "show": ("show", "job-7777"),
    "explain": ("explain", "job-7777"),
    "list --json": ("list", "--json"),
}


def measure(plan: Plan) -> list[Table]:
    count = FEWER if plan.quick else JOBS
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        tables = [_table(plan, "SQLite", count, sqlite_store(Path(folder) / "jobs.db", count), folder)]
        with running() as server:
            tables.append(
                _table(plan, "PostgreSQL", count, postgres_store(server.database(Path(folder)), count), folder)
            )
    return tables


def sqlite_store(path: Path, count: int) -> str:
    """A store with that many jobs; its address."""
    _template(str(path))
    connection = sqlite3.connect(path)
    with connection:
        for statement in (_JOBS, _STATES):
            connection.execute(statement.format(numbers=_SQLITE_NUMBERS.format(count=count)))
    connection.close()
    return str(path)


def postgres_store(url: str, count: int) -> str:
    _template(url)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in (_JOBS, _STATES):
            connection.execute(statement.format(numbers=_POSTGRES_NUMBERS.format(count=count)))
        connection.execute("VACUUM ANALYZE")
    return url


def _template(url: str) -> None:
    subprocess.run(
        [*PROGRAM, "add", "template", "--every", "10d", "--db", url, "--", "true"], check=True, capture_output=True
    )


def _table(plan: Plan, name: str, count: int, url: str, folder: str) -> Table:
    table = Table(
        f"million-{name.lower()}",
        f"Commands with {count:,} jobs on {name}",
        [
            Column("seconds", "seconds", "less"),
            Column("cpu_s", "its CPU s", "less"),
            Column("peak_mib", "peak MiB", "less"),
            Column("lines_per_s", "lines/s"),
        ],
        ours="",
        section="million",
    )
    for command, words in COMMANDS.items():
        run = min((timed([*words, "--db", url], folder) for _ in range(plan.rounds)), key=lambda run: run["seconds"])
        table.add(command, run)
        plan.say(f"  {name} {command}: {run['seconds']:.3f} s, {run['peak_mib']:.0f} MiB")
    return table


def timed(words: Sequence[str], folder: str) -> Run:
    """Run a command as a person would; how long it took, what memory it had, how much it printed."""
    argv = [*PROGRAM, *words] if words[0] != "--version" else [*PROGRAM, words[0]]
    out = Path(folder) / "out"
    with out.open("wb") as file:
        began = time.perf_counter()
        child = subprocess.Popen(argv, stdout=file, stderr=subprocess.DEVNULL)
        _, _, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - began
    child.returncode = 0
    with out.open("rb") as file:
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    cpu_s = used.ru_utime + used.ru_stime
    return {"seconds": seconds, "cpu_s": cpu_s, "peak_mib": used.ru_maxrss / 1024, "lines_per_s": lines / seconds}
