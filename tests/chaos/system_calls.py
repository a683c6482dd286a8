"""What reaches the disk before what is said, seen where it cannot be pretended: at the system calls.

A server runs a few jobs one after the other and is traced (`tracing.py`). In what the system saw, each time a handler
acts, `add_job` has returned or a run is seen as ended (a line in the ledger), the last write to each of the store's
files before it must have been followed by a sync of that file that had returned.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.chaos.killing import ROOT

JOBS = 6
REPORTS = ("start", "stored", "settled")
_CALL = re.compile(r"^(?P<thread>\d+) +(?P<call>pwrite64|write|pwritev|writev|fsync|fdatasync)\(\d+<(?P<path>[^>]*)>")
_DONE = re.compile(r"^(?P<thread>\d+) +<\.\.\. (fsync|fdatasync) resumed>.*= 0$")

SUBJECT = """
import asyncio, os, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tests.chaos.ledger import Ledger
from wakeful import Once, Scheduler
from wakeful.store import sqlite, sqlite_file

def connect(path, **options):
    connection = sqlite_file.connect(path, **options)
    if sys.argv[3] != "FULL":
        connection.execute(f"PRAGMA synchronous = {sys.argv[3]}")
    return connection

sqlite.connect = connect

async def main(folder, jobs):
    ledger = Ledger(folder / "ledger")
    async with Scheduler(f"sqlite:///{folder}/wakeful.db") as scheduler:
        done = asyncio.Event()

        @scheduler.on_job_due("work")
        async def work(run):
            ledger.note("start", run.id, run.attempt, run.job)
            done.set()

        await scheduler.start()
        for n in range(jobs):
            done.clear()
            await scheduler.add_job(f"job-{n}", Once(datetime.now(UTC) + timedelta(seconds=0.2)), kind="work")
            ledger.note("stored", job=f"job-{n}")
            await done.wait()
            while scheduler.running_count() or (await scheduler.get_job(f"job-{n}")).enabled:
                await asyncio.sleep(0.01)
            ledger.note("settled", job=f"job-{n}")
        await scheduler.stop()

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


def check(folder: Path, *, synchronous: str = "FULL") -> list[str]:
    """Trace the subject; what was said before it was on disk. Its connections may be less `synchronous`."""
    trace = folder / "trace"
    command = [sys.executable, "-m", "tests.chaos.tracing", str(trace)]
    command += [sys.executable, "-c", SUBJECT, str(folder), str(JOBS), synchronous]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    return judge(trace.read_text(encoding="utf-8", errors="replace").splitlines())


def judge(lines: list[str]) -> list[str]:
    """The order of writes and syncs of the store's files before each line of the ledger."""
    seen = _Seen()
    for line in lines:
        if (done := _DONE.match(line)) is not None:
            seen.synced(seen.syncing.pop(done["thread"], ""))
        elif (found := _CALL.match(line)) is not None:
            if found["path"].endswith("/ledger"):
                seen.reported(line)
            elif found["path"].endswith((".db", ".db-wal")):
                seen.touched(found, line)
    if seen.reports != dict.fromkeys(REPORTS, JOBS):
        seen.wrong.append(f"the trace shows {seen.reports}, not {JOBS} of each")
    reported = sum(seen.reports.values())
    print(
        f"  system calls: {seen.writes} writes, {seen.syncs} syncs, {reported} reports, "
        f"{len(seen.wrong)} before their time"
    )
    return seen.wrong


class _Seen:
    """Where the trace has come to: which files hold writes that are not known to be on disk."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.reports = dict.fromkeys(REPORTS, 0)
        self.writes = self.syncs = 0
        self.syncing: dict[str, str] = {}  # by thread: a sync that has begun and not returned
        self._dirty: set[str] = set()
        self._wrote = False

    def touched(self, found: re.Match[str], line: str) -> None:
        if "sync" not in found["call"]:
            self._dirty.add(found["path"])
            self._wrote = True
            self.writes += 1
        elif line.endswith("<unfinished ...>"):
            self.syncing[found["thread"]] = found["path"]
        elif line.endswith("= 0"):
            self.synced(found["path"])

    def synced(self, path: str) -> None:
        self._dirty.discard(path)
        self.syncs += 1

    def reported(self, line: str) -> None:
        word = next(word for word in REPORTS if f" {word} " in line)
        self.reports[word] += 1
        if self._dirty:
            self.wrong.append(
                f"{word!r} was reported while {sorted(self._dirty)} held writes not on disk: {line[:160]}"
            )
        if not self._wrote:
            self.wrong.append(f"{word!r} was reported and nothing had been written before it: {line[:160]}")
        self._wrote = False
