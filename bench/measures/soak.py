"""A long time at a steady rate: does anything grow that should not, and does retention keep up?"""

from __future__ import annotations

import sqlite3
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.contenders import WAKEFUL
from bench.figures import Run, percentile
from bench.measures import Column, Plan, Table, interleave
from bench.serving import Mark, Serving

RATE = 500  # runs a second
EVERY_S = 10  # as close as recurring starts may be
JOBS = RATE * EVERY_S
SAMPLE_S = 1.0
TELL_S = 30.0
WARM_S = 30.0  # caches fill, the first runs of all jobs are made

#: Whose history is measured: as it comes, few runs kept of each job, and only what is not a day old (here: the last).
RETENTIONS: dict[str, dict[str, int]] = {
    "history as it comes": {},
    "3 runs kept of each job": {"runs_per_job": 3, "check_every": 5},
    "0 days kept": {"days": 0},
}


class Sample(NamedTuple):
    """The process and its store at one moment."""

    at: float
    rss_mib: float
    wal_mib: float
    rows: int


def soak(plan: Plan, retention: dict[str, int], seconds: float, folder: Path) -> Run:
    """Serve jobs that start at an even rate, and look on."""
    first = time.time() + 5
    WAKEFUL.ask("tick", folder=str(folder), count=JOBS, first=first, every=EVERY_S)
    samples: list[Sample] = []
    with Serving(WAKEFUL, folder, retention=retention) as serving:
        file, reported = folder / "wakeful.db", time.time()
        while time.time() < first + seconds:
            time.sleep(SAMPLE_S)
            samples.append(Sample(time.time() - first, serving.rss_mib(), _mib(Path(f"{file}-wal")), _rows(file)))
            if time.time() - reported >= TELL_S:
                reported = time.time()
                plan.say(f"    {_said(samples[-1])}")
        cpu = serving.cpu_s()
    return {"cpu_percent": 100 * cpu / (seconds + 5), **_figures(samples, serving.marks(), first, seconds)}


def _figures(samples: list[Sample], marks: list[Mark], first: float, seconds: float) -> Run:
    warm = [sample for sample in samples if sample.at >= min(WARM_S, seconds / 2)]
    late = [(mark.due - first, (mark.started - mark.due) * 1000) for mark in marks if mark.due >= first]
    early = [ms for at, ms in late if at < seconds / 4]
    final = [ms for at, ms in late if at >= seconds * 3 / 4]
    slope, _ = statistics.linear_regression([one.at / 60 for one in warm], [one.rss_mib for one in warm])
    third = len(samples) // 3
    middle, last = max(one.rows for one in samples[third:-third]), max(one.rows for one in samples[-third:])
    return {
        "runs_per_s": len(late) / seconds,
        "rss_start_mib": warm[0].rss_mib,
        "rss_end_mib": warm[-1].rss_mib,
        "rss_mib_per_min": slope,
        "wal_max_mib": max(one.wal_mib for one in samples),
        "rows_max": max(one.rows for one in samples),
        "rows_end": samples[-1].rows,
        "rows_per_s": (last - middle) / (seconds / 3),
        "p50_first_ms": percentile(early, 0.5),
        "p50_last_ms": percentile(final, 0.5),
        "p99_first_ms": percentile(early, 0.99),
        "p99_last_ms": percentile(final, 0.99),
    }


def _mib(file: Path) -> float:
    return file.stat().st_size / 2**20 if file.exists() else 0.0


def _rows(file: Path) -> int:
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        found: tuple[Any, ...] = connection.execute("SELECT count(*) FROM runs").fetchone()
        return int(found[0])
    finally:
        connection.close()


def _said(sample: Sample) -> str:
    return f"{sample.at:4.0f} s: memory {sample.rss_mib:.1f} MiB, log {sample.wal_mib:.1f} MiB, {sample.rows:,} runs"


def measure(plan: Plan) -> list[Table]:
    minutes = plan.minutes if plan.minutes is not None else 2.0 if plan.quick else 10.0
    table = Table(
        "soak",
        f"{minutes:g} minutes at {RATE} runs a second",
        [
            Column("runs_per_s", "runs /s"),
            Column("rss_start_mib", "memory warm MiB"),
            Column("rss_end_mib", "at the end"),
            Column("rss_mib_per_min", "MiB a minute"),
            Column("wal_max_mib", "log at most MiB"),
            Column("rows_max", "runs stored at most"),
            Column("rows_end", "at the end"),
            Column("rows_per_s", "more each second"),
            Column("p50_first_ms", "late p50, first quarter ms"),
            Column("p50_last_ms", "last quarter"),
            Column("p99_first_ms", "p99, first quarter"),
            Column("p99_last_ms", "last quarter"),
            Column("cpu_percent", "CPU %"),
        ],
        notes=[
            f"{JOBS:,} jobs, each every {EVERY_S} s. Warm: {WARM_S:.0f} s after the first start.",
            "More each second: from the peak of the middle third to that of the last; 0 where retention keeps up.",
        ],
        ours="",
    )
    entries = [(name, partial(soak, plan, kept, minutes * 60)) for name, kept in RETENTIONS.items()]
    interleave(plan, table, entries, rounds=1)
    return [table]
