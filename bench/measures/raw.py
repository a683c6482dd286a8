"""What this disk and this interpreter can do at all: the reference for every other figure."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.figures import Run
from bench.measures import Column, Plan, Table, interleave

BATCH = 512
JOBS = 20_000


def measure(plan: Plan) -> list[Table]:
    seconds = 0.5 if plan.quick else 2.0
    table = Table(
        "raw",
        "Raw reference",
        [
            Column("fdatasync_per_s", "fdatasync /s"),
            Column("commits_per_s", "SQLite commits /s"),
            Column("rows_per_s", "SQLite rows /s, 100 a commit"),
            Column("bare_jobs_per_s", "bare loop jobs /s"),
        ],
        notes=[
            "SQLite in WAL with synchronous=FULL.",
            f"The bare loop claims and settles jobs in batches of {BATCH} with plain statements in one thread:",
            "no scheduling, no handlers, no event loop beside it, one narrow row per run: a ceiling, no contender.",
        ],
        peers_in=(),
    )
    interleave(plan, table, [("this machine", partial(_all, seconds))])
    return [table]


def _all(seconds: float, folder: Path) -> Run:
    return {
        "fdatasync_per_s": fdatasyncs(folder / "sync.bin", seconds),
        "commits_per_s": commits(folder / "one.db", seconds, 1),
        "rows_per_s": 100 * commits(folder / "many.db", seconds, 100),
        "bare_jobs_per_s": bare_loop(folder / "bare.db", JOBS),
    }


def _rate(seconds: float, once: Callable[[int], object]) -> float:
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        once(count)
        count += 1
    return count / (time.perf_counter() - began)


def fdatasyncs(path: Path, seconds: float) -> float:
    """How often a second a written page can be forced to the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    page = b"x" * 4096

    def once(number: int) -> None:
        os.pwrite(file, page, number % 256 * 4096)
        os.fdatasync(file)

    try:
        return _rate(seconds, once)
    finally:
        os.close(file)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def commits(path: Path, seconds: float, batch: int) -> float:
    """Transactions a second of `batch` small rows each."""
    connection = _open(path)
    connection.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, state INT, body TEXT)")
    rows = [(0, "x" * 100)] * batch

    def once(_: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO things (state, body) VALUES (?, ?)", rows)
        connection.execute("COMMIT")

    try:
        return _rate(seconds, once)
    finally:
        connection.close()


def bare_loop(path: Path, count: int) -> float:
    """Claim due jobs, write a run for each, settle both, a batch at a time, in one thread; jobs a second."""
    connection = _open(path)
    connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, due_at INT, run_id INT, last_run INT, payload TEXT)")
    connection.execute("CREATE INDEX due ON jobs (due_at) WHERE due_at IS NOT NULL")
    connection.execute(
        "CREATE TABLE runs (id INTEGER PRIMARY KEY, job_id INT, slot INT, status TEXT, started_at INT, finished_at INT)"
    )
    connection.execute("CREATE UNIQUE INDEX one_slot ON runs (job_id, slot)")
    connection.execute("BEGIN")
    rows = [(number, 1, f"[{number}, 1]") for number in range(count)]
    connection.executemany("INSERT INTO jobs (id, due_at, payload) VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")
    began, done = time.perf_counter(), 0
    claimed: list[tuple[int, int, str]] = []
    while done < count:
        claimed, before = _bare_turn(connection, claimed), len(claimed)
        done += before
    took = time.perf_counter() - began
    connection.close()
    return count / took


def _bare_turn(connection: sqlite3.Connection, ended: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Settle what the last turn claimed and claim the next batch, in one transaction."""
    now = time.time_ns() // 1_000_000
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "UPDATE runs SET status = 'done', finished_at = ? WHERE id = ?", [(now, job) for job, _, _ in ended]
    )
    connection.executemany(
        "UPDATE jobs SET run_id = NULL, last_run = ? WHERE id = ? AND run_id = ?",
        [(now, job, job) for job, _, _ in ended],
    )
    due: list[tuple[int, int, str]] = connection.execute(
        "SELECT id, due_at, payload FROM jobs WHERE due_at <= ? ORDER BY due_at LIMIT ?", (now, BATCH)
    ).fetchall()
    connection.executemany("UPDATE jobs SET due_at = NULL, run_id = ? WHERE id = ?", [(job, job) for job, _, _ in due])
    connection.executemany(
        "INSERT INTO runs (id, job_id, slot, status, started_at) VALUES (?, ?, ?, 'active', ?)",
        [(job, job, slot, now) for job, slot, _ in due],
    )
    connection.execute("COMMIT")
    return due
