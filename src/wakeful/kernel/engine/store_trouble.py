"""When the store fails under a running engine: said once, and what its lost answers claimed is released."""

from __future__ import annotations

import logging
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from wakeful.errors import StoreError
from wakeful.kernel.actions.runs import release_runs
from wakeful.kernel.engine.loop_state import LoopState

if TYPE_CHECKING:
    from wakeful.store.interface import Store, Transaction

log = logging.getLogger("wakeful.engine")


def note_trouble(state: LoopState, error: StoreError) -> None:
    if state.fail(str(error)):  # said once, not every second
        log.warning("database unavailable, retrying: %s", error)


def note_recovery(state: LoopState) -> None:
    if state.recover():
        log.warning("database available again")


async def release_unknown(store: Store, state: LoopState, node_id: int, known: AbstractSet[int]) -> None:
    """A turn whose answer never came, or too late, may have been stored. What it claimed is released."""

    def work(tx: Transaction) -> int:
        # Every claim holds our node's row until it ends: one whose commit is still under way is waited for.
        tx.journal.lives(node_id)
        unknown = [run for run in tx.runs.of_nodes([node_id]) if run.id not in known]
        release_runs(tx, unknown)
        return len(unknown)

    released = await store.write(work)
    if released:
        log.warning("released %s with an unknown commit result", counted(released, "claimed run"))
    state.find_claims()


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 run, 2 runs."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
