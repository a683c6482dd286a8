"""Becoming the engine: a new incarnation, what the last one left behind, the clock since then; and leaving."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wakeful.kernel import control, refs
from wakeful.kernel.claim import Claimed, Node
from wakeful.kernel.clockwatch import STEP_MS, ClockWatch, carry_on
from wakeful.kernel.drafts import COMMAND
from wakeful.kernel.handlers import CANCEL_GRACE_S, Active, Handlers, Threads, drive, past_limit
from wakeful.kernel.lane_sizes import size_all
from wakeful.kernel.membership import join, recover_name
from wakeful.kernel.options import from_text
from wakeful.kernel.outcome import Result
from wakeful.kernel.quarantine import take_turn
from wakeful.kernel.recovery import Recovered, recover
from wakeful.kernel.turn import Ended

if TYPE_CHECKING:
    from wakeful.kernel.engine import Engine
    from wakeful.store.interface import Store, Transaction


class Born(NamedTuple):
    """Who this process is to the store."""

    node_id: int
    token: int
    recovered: Recovered


async def begin_incarnation(store: Store, engine: Engine, name: str, logs: Path) -> Born:
    """Join as a new incarnation and recover what the last one of this name left behind.

    On a store that one process runs at a time that is everything; the engine's lock must be held. Runs that outlived a
    stop in threads of this very process are not cut off: they still hold their jobs.
    """
    node, alive = engine.identify(), engine.active.keys()
    await _end_leftover_commands(store, name, logs, alive)
    details = engine.details()

    def work(tx: Transaction) -> tuple[Born, int]:
        facts = tx.journal.facts(["incarnation", "alive_at"])
        token = int(facts.get("incarnation", "0")) + 1
        back = int(facts.get("alive_at", "0")) - tx.now
        born = node._replace(id=node.new_id(), token=token)
        tx.journal.remember({"incarnation": token, "alive_at": tx.now})
        recovered = recover(tx, born, alive) if tx.exclusive else recover_name(tx, born, name, alive)
        join(tx, born, name, details)
        return Born(born.id, token, recovered), back

    await store.write(size_all)
    born, back = await store.write(work)
    if back > STEP_MS:  # the clock was set back while nothing ran
        await ClockWatch.settle_in(store, node, -back)
    else:
        await carry_on(store, node)  # what a crash left of a step
    return born


async def _end_leftover_commands(store: Store, name: str, logs: Path, alive: Collection[int]) -> None:
    """What still runs of a command whose server was killed must end before its slot is run again."""

    def left(tx: Transaction) -> list[int]:
        if tx.exclusive:
            runs = [run for run in tx.runs.all_open() if run.status == "active" and run.id not in alive]
        else:
            runs = tx.runs.of_nodes([earlier.id for earlier in tx.journal.earlier(name)])
        return [run.id for run in runs if run.kind == COMMAND]

    commands = await store.read(left)
    if commands:
        from wakeful.kernel.command.kind import end_leftovers

        await end_leftovers(logs, commands)


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
        await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
    # A handler that does not end when it is cancelled is left behind: what it was told is how its run ends.
    return task.result() if task.done() or active.verdict is None else active.verdict


def leave(tx: Transaction, node_id: int) -> None:
    """Note that this node is gone, in good order."""
    tx.journal.leave(node_id, tx.now)
    tx.journal.remember({"alive_at": tx.now})
