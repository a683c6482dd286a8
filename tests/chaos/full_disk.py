"""A disk that fills up under a server: it goes on, says so once, and finishes the work when there is room again.

Two ways to run out: a small file system of our own (where the system lets us mount one, in a private name
space), and a limit on how large the process's files may become, which needs no rights. SQLite reports the first as
"disk full", the second as an input/output error.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from tests.chaos.killing import ROOT
from tests.chaos.ledger import END, READY, Ledger
from tests.chaos.server import url_of
from wakeful import NewJob, Once, Scheduler

JOBS = 40
PATIENCE_S = 300.0
COMPLAINT = "database unavailable"


def drill_by_limit(folder: Path) -> list[str]:
    """No file of the server may grow past what the ledger needs; then they may again."""

    def fill(pid: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (16_384, resource.RLIM_INFINITY))

    def free(pid: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    return asyncio.run(_drill(folder, folder, fill, free))


def drill_by_mount(folder: Path) -> list[str]:
    """The same on a file system of 4 MiB, in a process with mounts of its own; says why where that is not allowed."""
    flags = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    script = 'mount -t tmpfs -o size=4m none "$1" && exec "$2" -m tests.chaos.full_disk "$1" "$3"'
    small, outside = folder / "small", folder / "outside"
    small.mkdir()
    outside.mkdir()
    command = ["unshare", *flags, "sh", "-c", script, "sh", str(small), sys.executable, str(outside)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False)
    if done.returncode == 0:
        return []
    return [line for line in done.stdout.splitlines() if line] or [f"no small disk here: {done.stderr.strip()[-200:]}"]


async def _drill(store: Path, outside: Path, fill: Callable[[int], None], free: Callable[[int], None]) -> list[str]:
    """Serve, store jobs, fill the disk once the first has ended, let time pass, free it; what was wrong."""
    ledger = Ledger(outside / "ledger")
    if store != outside:
        (store / "ledger").symlink_to(ledger.path)  # events must be recorded even while the store's disk is full
    with (outside / "server.log").open("wb") as said:
        server = _serve(store, said)
    try:
        await _until(lambda: any(line.what == READY for line in ledger.lines()), "the server never became ready")
        await _store_jobs(store)
        await _until(lambda: any(line.what == END for line in ledger.lines()), "no job ever ended")
        fill(server.pid)
        await _until(lambda: COMPLAINT in _text(outside), "the server never said that the disk is full")
        await asyncio.sleep(4)
        ended_full = len([line for line in ledger.lines() if line.what == END])
        free(server.pid)
        await _until(lambda: _settled(store, server), "not everything was settled after the disk had room again")
        return _findings(_text(outside), ledger, ended_full)
    except TimeoutError as error:
        return [f"{error} (it {'lives' if server.poll() is None else 'died'}): {_text(outside)[-1500:]}"]
    finally:
        server.terminate()
        server.wait(120)
        ledger.close()


async def _store_jobs(store: Path) -> None:
    now = datetime.now(UTC)
    async with Scheduler(url_of(store)) as scheduler:
        due = [now + timedelta(seconds=1.5 + 0.2 * n) for n in range(JOBS)]
        await scheduler.add_jobs([NewJob(f"job-{n}", Once(at), kind="work", payload=0.05) for n, at in enumerate(due)])


def _serve(store: Path, said: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.chaos.server", str(store)], cwd=ROOT, stderr=said)


def _findings(said: str, ledger: Ledger, ended_full: int) -> list[str]:
    complaints = said.count(COMPLAINT) + said.count("settling them one by one")
    ends = [line.job for line in ledger.lines() if line.what == END]
    wrong = []
    if complaints != 1:
        wrong.append(f"the trouble was reported {complaints} times instead of once")
    if ended_full >= JOBS:
        wrong.append("everything had run before the disk was full: the drill proved nothing")
    if sorted(ends) != sorted(f"job-{n}" for n in range(JOBS)):
        wrong.append(f"{len(ends)} runs of {len(set(ends))} jobs instead of one each of {JOBS}")
    return wrong


def _text(folder: Path) -> str:
    return (folder / "server.log").read_text(encoding="utf-8", errors="replace")


async def _until(done: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not await asyncio.to_thread(done):
        if time.monotonic() > end:
            raise TimeoutError(otherwise)
        await asyncio.sleep(0.1)


def _settled(store: Path, server: subprocess.Popen[bytes]) -> bool:
    if server.poll() is not None:
        message = "the server ended"
        raise TimeoutError(message)

    async def ask() -> bool:
        async with Scheduler(url_of(store)) as scheduler:
            runs = await scheduler.get_run_log(limit=10 * JOBS)
            return sum(run.outcome == "success" for run in runs) == JOBS and all(run.status == "done" for run in runs)

    return asyncio.run(ask())


def _fill_mount(folder: Path) -> tuple[Callable[[int], None], Callable[[int], None]]:
    ballast = folder / "ballast"

    def fill(_: int) -> None:
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                return  # full, as wanted

    def free(_: int) -> None:
        ballast.unlink()

    return fill, free


if __name__ == "__main__":
    small = Path(sys.argv[1])
    found = asyncio.run(_drill(small, Path(sys.argv[2]), *_fill_mount(small)))
    print("\n".join(found))
    sys.exit(1 if found else 0)
