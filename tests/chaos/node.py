"""One node of a cluster, to be killed, frozen and cut off: `python -m tests.chaos.node URL NAME LEDGER ...`.

What its handlers do is recorded outside the database, one line per fact in a file of this node's own. It ends in
good order on SIGTERM, and at once when its parent is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from wakeful import Run, Scheduler, StoreError

READY, START, END, CUT = "ready", "start", "end", "cut"
OPENING_S = 120.0


class Fact(NamedTuple):
    """One line of a node's ledger; for `ready` only when, what, who."""

    at: float
    what: str
    node: str
    pid: int
    run: str = ""
    job: str = ""
    slot: str = ""
    attempt: int = 0


class NodeLedger:
    """An append-only file; each line is one write, so a kill tears none."""

    def __init__(self, path: Path, node: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._node = node

    def note(self, what: str, run: Run | None = None) -> None:
        fact = Fact(time.time(), what, self._node, os.getpid())
        if run is not None:
            slot = run.slot.isoformat() if run.slot is not None else ""
            fact = fact._replace(run=run.id, job=run.job, slot=slot, attempt=run.attempt)
        os.write(self._file, f"{json.dumps(fact)}\n".encode())


def read_facts(folder: Path) -> list[Fact]:
    """What all nodes of a drill noted, in order."""
    lines = [line for path in sorted(folder.glob("*.ledger")) for line in path.read_text().splitlines()]
    return sorted(Fact(*json.loads(line)) for line in lines)


def handlers(scheduler: Scheduler, ledger: NodeLedger) -> None:
    """Work that leaves a line when it starts and one when it ends; the payload says how many seconds it takes."""

    @scheduler.on_job_due("work")
    async def work(run: Run) -> None:
        ledger.note(START, run)
        try:
            await asyncio.sleep(run.payload)
        except asyncio.CancelledError:
            ledger.note(CUT, run)
            raise
        ledger.note(END, run)

    @scheduler.on_job_due("thread")
    def thread(run: Run) -> None:
        ledger.note(START, run)
        threading.Event().wait(run.payload)
        ledger.note(END, run)


async def serve(asked: argparse.Namespace) -> None:
    ledger = NodeLedger(Path(asked.ledger), asked.name)
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    loop.add_reader(sys.stdin.fileno(), lambda: os._exit(9))  # nothing is ever said there: it can only have ended
    labels = asked.labels.split(",") if asked.labels else []
    scheduler = Scheduler(asked.url, node=asked.name, timezone="UTC", labels=labels, max_running=asked.max_running)
    handlers(scheduler, ledger)
    await begin(scheduler)
    ledger.note(READY)
    await over.wait()
    await scheduler.stop()
    await scheduler.close()


async def begin(scheduler: Scheduler) -> None:
    """Open and start, again and again while the database is just away: a service manager would do the same."""
    end = time.monotonic() + OPENING_S
    while True:
        try:
            await scheduler.open(create=False)
            await scheduler.start()
        except StoreError as error:
            if time.monotonic() > end:
                raise
            logging.getLogger("node").info("not started yet: %s", error)
            await asyncio.sleep(0.3)
        else:
            return


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.node", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("ledger")
    parser.add_argument("--labels", default="")
    parser.add_argument("--max-running", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    asyncio.run(serve(_arguments()))
