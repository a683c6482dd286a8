"""Becoming the engine: a new incarnation, what the last one left behind, the clock since then; and leaving."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wakeful.kernel.actions import lookup
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.actions.drafts import COMMAND
from wakeful.kernel.cluster.membership import join, recover_name
from wakeful.kernel.engine.claim import Claimed, Context
from wakeful.kernel.engine.clock_watch import STEP_MS, ClockWatch, carry_on
from wakeful.kernel.engine.handlers import CANCEL_GRACE_S, Active, Handlers, Threads, drive, past_limit
from wakeful.kernel.engine.lane_sizes import size_all
from wakeful.kernel.engine.recovery import Recovered, recover
from wakeful.kernel.engine.run_turn import run_turn
from wakeful.kernel.engine.turn import Ended
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import Result

if TYPE_CHECKING:
    from wakeful.kernel.engine.loop import Engine
    from wakeful.store.interface import Store, Transaction


class Incarnation(NamedTuple):
    """Who this process is to the store."""

    node_id: int
    token: int
    recovered: Recovered


async def begin_incarnation(store: Store, engine: Engine, name: str, logs: Path) -> Incarnation:
    """Join as a new incarnation and recover what the last one of this name left behind.

    On a store that one process runs at a time that is everything; the engine's lock must be held. Runs that outlived a
    stop in threads of this very process are not cut off: they still hold their jobs.
    """
    context, alive = engine.identify(), engine.active.keys()
    await _end_leftover_commands(store, name, logs, alive)
    details = engine.details()

    def work(tx: Transaction) -> tuple[Incarnation, int]:
        facts = tx.journal.get_meta(["incarnation", "alive_at"])
        token = int(facts.get("incarnation", "0")) + 1
        back = int(facts.get("alive_at", "0")) - tx.now
        incarnation = context._replace(id=context.new_id(), token=token)
        tx.journal.set_meta({"incarnation": token, "alive_at": tx.now})
        recovered = recover(tx, incarnation, alive) if tx.exclusive else recover_name(tx, incarnation, name, alive)
        join(tx, incarnation, name, details)
        return Incarnation(incarnation.id, token, recovered), back

    await store.write(size_all)
    incarnation, back = await store.write(work)
    if back > STEP_MS:  # the clock was set back while nothing ran
        await ClockWatch.settle_in(store, context, -back)
    else:
        await carry_on(store, context)  # what a crash left of a step
    return incarnation


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
        from wakeful.command.kind import end_leftovers

        await end_leftovers(logs, commands)


async def run_alone(store: Store, context: Context, handlers: Handlers, ref: str, *, virtual: bool) -> int:
    """Start one job by hand, run it to its end or its limit here, and settle it; the run's id."""

    def ask(tx: Transaction) -> tuple[int, int]:
        run_id = run_actions.run_now(tx, context, ref)
        return run_id, lookup.find_job(tx, ref)[0].id

    run_id, job_id = await store.write(ask)
    here = context._replace(only=job_id)
    while True:  # a recovery of the same job may come first
        taken = await run_turn(store, here, (), 1)
        for claimed in taken.claimed:
            result = await _run_within_limit(claimed, handlers, virtual=virtual)
            await run_turn(store, here, [Ended(claimed.job, claimed.state.revision, claimed.run, result)], 0)
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
    tx.journal.set_meta({"alive_at": tx.now})
