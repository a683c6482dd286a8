"""Becoming the engine: a new incarnation, what the last one left behind, the clock since then; and leaving."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wakeful.kernel import control, refs
from wakeful.kernel.claim import Claimed, Node
from wakeful.kernel.clockwatch import STEP_MS, ClockWatch
from wakeful.kernel.drafts import COMMAND
from wakeful.kernel.handlers import Active, Handlers, Threads, drive, past_limit
from wakeful.kernel.options import from_text
from wakeful.kernel.outcome import Result
from wakeful.kernel.quarantine import take_turn
from wakeful.kernel.recovery import Recovered, recover
from wakeful.kernel.turn import Ended
from wakeful.store.records import Node as NodeRow

if TYPE_CHECKING:
    from wakeful.store.interface import Store, Transaction


class Born(NamedTuple):
    """Who this process is to the store."""

    node_id: int
    token: int
    recovered: Recovered


async def begin_incarnation(store: Store, node: Node, name: str, logs: Path, alive: Collection[int] = ()) -> Born:
    """Join as a new incarnation and recover what the last one left. The engine's lock must be held."""
    cut_off = await store.read(
        lambda tx: [run for run in tx.runs.all_open() if run.status == "active" and run.id not in alive]
    )
    commands = [run.id for run in cut_off if run.kind == COMMAND]
    if commands:
        # What still runs of a command whose server was killed must end before its slot is run again.
        from wakeful.kernel.command.kind import end_leftovers

        await end_leftovers(logs, commands)
    details = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "kinds": sorted(node.kinds)})

    def work(tx: Transaction) -> tuple[Born, int]:
        facts = tx.journal.facts(["incarnation", "alive_at"])
        token = int(facts.get("incarnation", "0")) + 1
        back = int(facts.get("alive_at", "0")) - tx.now
        node_id = node.new_id()
        tx.journal.join(NodeRow(node_id, name, tx.now, tx.now, None, details))
        tx.journal.remember({"incarnation": token, "alive_at": tx.now})
        recovered = recover(tx, node._replace(id=node_id, token=token), alive)
        return Born(node_id, token, recovered), back

    born, back = await store.write(work)
    if back > STEP_MS:  # the clock was set back while nothing ran
        await ClockWatch.settle_in(store, node, -back)
    return born


async def run_alone(store: Store, node: Node, handlers: Handlers, ref: str, *, virtual: bool) -> int:
    """Start one job by hand, run it to its end or its limit here, and settle it; the run's id."""

    def ask(tx: Transaction) -> tuple[int, int]:
        run_id = control.run_now(tx, node, ref)
        return run_id, refs.find_job(tx, ref)[0].id

    run_id, job_id = await store.write(ask)
    here = node._replace(only=job_id)
    while True:  # a recovery of the same job may come first
        taken = await take_turn(store, here, (), 1)
        for claimed in taken.claimed:
            result = await _run_within_limit(claimed, handlers, virtual=virtual)
            await take_turn(store, here, [Ended(claimed.job, claimed.state.revision, claimed.run, result)], 0)
        if not taken.claimed or any(claimed.run.id == run_id for claimed in taken.claimed):
            return run_id


async def _run_within_limit(claimed: Claimed, handlers: Handlers, *, virtual: bool) -> Result:
    """Call the handler; past its limit, or when we are cancelled ourselves, it is cancelled, and its end is known."""
    handler, awaits = handlers.of(claimed.run.kind)
    active = Active(claimed, "", 0)
    limit = from_text(claimed.job.options).timeout
    task = asyncio.ensure_future(drive(active, handler, Threads(inline=virtual), awaits=awaits))
    try:
        done, _ = await asyncio.wait({task}, timeout=limit / 1000)
        if not done:
            active.verdict = past_limit(limit)
    except asyncio.CancelledError:
        active.verdict = Result("cancelled", error="interrupted")
    if not task.done():
        task.cancel()
    return await task


def leave(tx: Transaction, node_id: int) -> None:
    """Note that this node is gone, in good order."""
    tx.journal.leave(node_id, tx.now)
    tx.journal.remember({"alive_at": tx.now})
