"""The machine a figure was measured on, and how much it was disturbed meanwhile."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import time
from pathlib import Path
from typing import NamedTuple


def describe() -> dict[str, str]:
    """What a reader needs to compare with their own machine."""
    return {
        "processor": f"{os.cpu_count()} cores, {_processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def spin_ms() -> float:
    """How long a fixed loop takes here and now: the same everywhere on an undisturbed machine."""
    took = []
    for _ in range(5):
        began, total = time.perf_counter(), 0
        for i in range(500_000):
            total += i
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


class Ticks(NamedTuple):
    """Processor time of the whole machine, as the system counts it."""

    stolen: int
    total: int


def ticks() -> Ticks:
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0].split()[1:]]
    except FileNotFoundError:
        return Ticks(0, 0)
    return Ticks(fields[7], sum(fields[:8]))


def busy_s() -> float:
    """Seconds in which a processor of the machine worked, of all processors together."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0].split()[1:]]
    except FileNotFoundError:
        return 0.0
    idle, waiting = fields[3:5]
    return (sum(fields[:7]) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def steal_percent(before: Ticks, after: Ticks) -> float:
    """How much of the machine other virtual machines took in between."""
    return 100 * (after.stolen - before.stolen) / max(1, after.total - before.total)
