"""Becoming the engine: a new incarnation, what the last one left behind, the clock since then; and leaving."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.kernel.actions import lookup
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.cluster.membership import earlier_lives, join, own_details, recover_name
from wakeful.kernel.context import Context
from wakeful.kernel.engine.admission import refuse_at_stop
from wakeful.kernel.engine.lines import Claimed, size_all
from wakeful.kernel.engine.recovery import Recovered, recover
from wakeful.kernel.engine.stretches import look_for_missed
from wakeful.kernel.engine.turn import FinishedRun
from wakeful.kernel.kinds import Kinds
from wakeful.kernel.loop.clock_watch import SET_BACK, STEP_MS, ClockStep, carry_on, note_start, note_step
from wakeful.kernel.loop.handlers import CANCEL_GRACE_S, Active, Threads, drive
from wakeful.kernel.loop.run_turn import run_turn
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import Result, past_limit

if TYPE_CHECKING:
    from wakeful.kernel.loop.loop import Engine
    from wakeful.store.interface import Store, Transaction
    from wakeful.store.records import RunRow


class Incarnation(NamedTuple):
    """Who this process is to the store."""

    node_id: int
    recovered: Recovered
    away_since: int | None = None  # when an engine was last known to run


async def begin_incarnation(store: Store, engine: Engine, name: str, logs: Path) -> Incarnation:
    """Join as a new incarnation and recover what the last one of this name left behind.

    On a store that one process runs at a time that is everything; the engine's lock must be held. Runs that outlived a
    stop in threads of this very process are not cut off: they still hold their jobs.
    """
    context, alive = engine.identify(), engine.active.keys()
    await _end_leftovers(store, context, name, logs, alive)
    details = own_details(context)

    def work(tx: Transaction) -> Incarnation:
        facts = tx.facts.of(["incarnation", "alive_at", SET_BACK])
        back = max(int(facts.get("alive_at", "0")), tx.jobs.last_added(int(facts.get(SET_BACK, "0")))) - tx.now
        here = context._replace(id=context.new_id())
        engine.node_lease.enter(here.id)  # before others can see it: they must not take it for gone
        if back > STEP_MS:  # the clock was set back while nothing ran
            note_step(tx, here, ClockStep(-back, noticed=0))
        note_start(tx, engine.clock_watch.distance(), int(facts.get("alive_at", "0")))
        tx.facts.put({"incarnation": int(facts.get("incarnation", "0")) + 1, "alive_at": tx.now})
        if tx.exclusive:  # its node sends no heartbeats: the last one lived until the store last heard of it
            tx.members.note_life(min(tx.now, int(facts.get("alive_at", "0"))))
        recovered = recover(tx, here, alive) if tx.exclusive else recover_name(tx, here, name, alive)
        join(tx, here, name, details)
        return Incarnation(here.id, recovered, int(facts["alive_at"]) if "alive_at" in facts else None)

    await store.write(size_all)
    incarnation = await store.write(work)
    engine.clock_watch.begin()
    await carry_on(store, context)  # a step that was found here, or what the last engine left of one
    return incarnation


async def look_back(store: Store, engine: Engine, away_since: int | None) -> None:
    """Before anything starts: what was missed while no engine ran."""
    context = engine.identify()
    await store.write(lambda tx: look_for_missed(tx, context, away_since))


async def _end_leftovers(store: Store, context: Context, name: str, logs: Path, alive: Collection[int]) -> None:
    """What still runs of a killed server's work, such as a command, must end before its slot is run again."""
    concerned = context.declared.with_recovery()

    def left(tx: Transaction) -> list[RunRow]:
        if tx.exclusive:
            return [run for run in tx.runs.all_open() if run.status == "active" and run.id not in alive]
        return tx.runs.of_nodes([earlier.id for earlier in earlier_lives(tx, context, name)])

    runs = await store.read(left) if concerned else []
    for kind in concerned:
        mine = [ids.run_text(run.id) for run in runs if run.kind == kind.name]
        if mine and kind.before_recovery is not None:
            await kind.before_recovery(logs, mine)


async def run_alone(
    store: Store, context: Context, kinds: Kinds, ref: str, payload: Any = None, *, virtual: bool
) -> int:
    """Start one job by hand, run it to its end or its limit here, and settle it; the run's id."""

    def ask(tx: Transaction) -> tuple[int, int]:
        run_id = run_actions.run_alone_now(tx, context, ref, payload)
        return run_id, lookup.find_job(tx, ref)[0].id

    run_id, job_id = await store.write(ask)
    here = context._replace(only=job_id)
    while True:  # a recovery of the same job may come first
        taken = await run_turn(store, here, (), 1)
        for claimed in taken.claimed:
            result = await _run_within_limit(claimed, kinds, virtual=virtual)
            await run_turn(store, here, [FinishedRun(claimed.job, claimed.state.revision, claimed.run, result)], 0)
        if not taken.claimed or any(claimed.run.id == run_id for claimed in taken.claimed):
            return run_id


async def _run_within_limit(claimed: Claimed, kinds: Kinds, *, virtual: bool) -> Result:
    """Call the handler; past its limit, or when we are cancelled ourselves, it is cancelled, and its end is known."""
    handler, awaits = kinds.handler(claimed.run.kind)
    active = Active(claimed, "", 0)
    limit = from_text(claimed.job.options).timeout
    threads = Threads(inline=virtual)
    task = asyncio.ensure_future(drive(active, handler, threads, awaits=awaits))
    try:
        done, _ = await asyncio.wait({task}, timeout=limit / 1000)
        if not done:
            active.verdict = past_limit(limit)
    except asyncio.CancelledError:
        active.verdict = Result("cancelled", error="interrupted")
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
    threads.end()
    # A handler that does not end when it is cancelled is left behind: the verdict it was given is how its run ends.
    return task.result() if task.done() or active.verdict is None else active.verdict


def leave(tx: Transaction, context: Context, step: ClockStep | None, stopping_since: int | None = None) -> None:
    """Note that this node stopped in good order, and the step of the clock that its loop did not come to record.

    What became due while it was stopping was refused, and is counted as that.

    Without it the next start takes a step forward for downtime, and does not see a step back. It also carries alarms
    over, however many there are: a stop does not wait for that.
    """
    if step is not None:
        note_step(tx, context, step)
    elif stopping_since is not None:
        refuse_at_stop(tx, context, stopping_since)
    tx.members.leave(context.id, tx.now)
    tx.facts.put({"alive_at": tx.now})
