"""One node with a workflow, to be killed: `python -m tests.chaos.workflow_node URL NAME LEDGER`.

Each message is added to a ledger outside the store, by a thread: one line, in one write. At times that takes longer
than mutate may, and the thread goes on. Reconcile looks into the ledger. The node ends in good order on SIGTERM, and at
once when its parent is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.chaos.node import begin
from wakeful import Applied, NotApplied, Prepared, Scheduler, Workflow
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.rules.lease_times import LeaseTimes

NAME, TOPIC = "ledgered", "mail"
#: Short, so that take-overs happen within a drill.
QUICK = Tuning(lease=LeaseTimes(beat_ms=300, lease_ms=2_000, margin_ms=500))
TIMEOUT_S = 1.0
LATE = 0.03  # how often a thread works longer than that


def workflow(ledger: Path) -> Workflow:
    """Messages come in by hand, and are added to the ledger, a few at a time."""
    flow = Workflow(NAME)
    add = flow.consumer("add", subscribes=[TOPIC], publishes=["added"], timeout=TIMEOUT_S)
    chance = random.Random()

    @add.prepare
    async def prepare(ctx: Any, state: Any) -> Prepared:
        found = await ctx.peek(TOPIC, limit=chance.choice((1, 5, 20)))
        return Prepared({TOPIC: [event.id for event in found]}, [event.message_id for event in found])

    @add.mutate
    async def mutate(ctx: Any, prepared: Prepared) -> int:
        takes = 2 * TIMEOUT_S if chance.random() < LATE else chance.uniform(0, 0.1)
        await asyncio.to_thread(_add, ledger, prepared.data, takes)
        await asyncio.sleep(chance.uniform(0, 0.1))
        return len(prepared.data)

    @add.reconcile
    async def reconcile(ctx: Any, prepared: Prepared) -> Applied | NotApplied:
        done = read_ledger(ledger)
        return Applied(len(prepared.data)) if set(prepared.data) <= set(done) else NotApplied()

    @add.next
    async def next_(ctx: Any, prepared: Prepared, result: Any) -> dict[str, Any]:
        if result.status == "applied":
            await ctx.publish("added", message_id="+".join(prepared.data))
        return {"last": prepared.data[-1:]}

    return flow


def _add(ledger: Path, names: list[str], takes: float) -> None:
    """What the thread does: so slow is what it works with."""
    time.sleep(takes)
    append(ledger, " ".join(names))


def append(ledger: Path, line: str) -> None:
    """One line, in one write."""
    file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def read_ledger(ledger: Path) -> list[str]:
    """Every message that was added, in order."""
    return ledger.read_text(encoding="utf-8").split() if ledger.exists() else []


async def serve(url: str, name: str, flow: Workflow) -> None:
    """Run the workflow until told to end."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    loop.add_reader(sys.stdin.fileno(), lambda: os._exit(9))  # nothing is ever said there: it can only have ended
    options: dict[str, Any] = {"tuning": QUICK} if url.startswith("postgresql") else {}
    scheduler = Scheduler(url, node=name, timezone="UTC", **options)
    scheduler.add_workflow(flow)
    await begin(scheduler)
    print("ready", flush=True)
    await over.wait()
    await scheduler.stop()
    await scheduler.close()


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    asyncio.run(serve(sys.argv[1], sys.argv[2], workflow(Path(sys.argv[3]))))
