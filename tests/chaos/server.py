"""The process that is killed: `python -m tests.chaos.server FOLDER` serves the folder's store until it dies."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from tests.chaos.ledger import CUT, END, READY, START, Ledger
from wakeful import Run, Scheduler


def store_of(folder: Path) -> Path:
    return folder / "wakeful.db"


def url_of(folder: Path) -> str:
    return f"sqlite:///{store_of(folder)}"


def handlers(scheduler: Scheduler, ledger: Ledger) -> None:
    """Work that leaves a line when it starts and one when it ends; the payload says how long it takes."""

    @scheduler.on_job_due("work")
    async def work(run: Run) -> None:
        ledger.note(START, run.id, run.attempt, run.job)
        try:
            await asyncio.sleep(run.payload)
        except asyncio.CancelledError:
            ledger.note(CUT, run.id, run.attempt, run.job)
            raise
        ledger.note(END, run.id, run.attempt, run.job)

    @scheduler.on_job_due("thread")
    def thread(run: Run) -> None:
        ledger.note(START, run.id, run.attempt, run.job)
        threading.Event().wait(run.payload)
        ledger.note(END, run.id, run.attempt, run.job)

    @scheduler.on_job_due("poison")
    async def poison(run: Run) -> None:
        """Takes its process down, every time."""
        ledger.note(START, run.id, run.attempt, run.job)
        os.kill(os.getpid(), signal.SIGKILL)


async def serve(folder: Path) -> None:
    ledger = Ledger(folder / "ledger")
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with Scheduler(url_of(folder)) as scheduler:
        handlers(scheduler, ledger)
        await scheduler.start()
        ledger.note(READY, str(os.getpid()))
        await over.wait()
        await scheduler.stop()


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    asyncio.run(serve(Path(sys.argv[1])))
