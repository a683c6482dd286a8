"""One node with a workflow of steps, to be killed: `python -m tests.chaos.step_node URL NAME LEDGER`.

Each step of each order is written into a ledger outside the store, one line in one write: by a thread, or on the loop.
At times the thread takes longer than its step may. Reconcile looks into the ledger. Two orders with the same key are
never worked on at the same time.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import time
from pathlib import Path
from typing import Any

from tests.chaos.workflow_node import LATE, TIMEOUT_S, append, serve
from wakeful import Applied, NotApplied, TransientError, Workflow

NAME, TOPIC, STEPS, PLACES, KEYS = "stepped", "orders", ("label", "mail", "book"), 4, 6


def workflow(ledger: Path) -> Workflow:
    """Orders come in by hand, and each goes through its steps."""
    flow = Workflow(NAME)
    chance = random.Random()

    def in_thread(step: str, order: str) -> str:
        time.sleep(2 * TIMEOUT_S if chance.random() < LATE else chance.uniform(0, 0.05))
        append(ledger, f"{step}:{order}")
        time.sleep(chance.uniform(0, 0.05))
        return f"{step} of {order}"

    async def on_loop(step: str, order: str) -> str:
        if chance.random() < 0.05:
            raise TransientError("busy")
        append(ledger, f"{step}:{order}")
        await asyncio.sleep(chance.uniform(0, 0.05))
        return f"{step} of {order}"

    def look(step: str, order: str) -> Applied | type[NotApplied]:
        lines = ledger.read_text(encoding="utf-8").split() if ledger.exists() else []
        return Applied(f"{step} of {order}") if f"{step}:{order}" in lines else NotApplied

    @flow.on(
        TOPIC, key=lambda event: int(event.message_id[1:]) % KEYS, concurrency=PLACES, retry=["1s"] * 50,
        publishes=["shipped"],
    )  # fmt: skip
    async def ship(ctx: Any, event: Any) -> None:
        for step in STEPS:
            function = on_loop if step == "mail" else in_thread
            value = await ctx.step(step, function, step, event.message_id, reconcile=look, timeout=TIMEOUT_S)
            assert value == f"{step} of {event.message_id}"
        await ctx.publish("shipped", message_id=event.message_id)

    return flow


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    asyncio.run(serve(sys.argv[1], sys.argv[2], workflow(Path(sys.argv[3]))))
