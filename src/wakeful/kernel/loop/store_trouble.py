"""When the store fails under a running engine: said once, and what its lost answers claimed is released."""

from __future__ import annotations

import logging
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from wakeful.counting import counted
from wakeful.errors import StoreError, StoreGone
from wakeful.kernel.actions.runs import release_runs
from wakeful.kernel.loop.loop_state import LoopState

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Store, Transaction

log = logging.getLogger("wakeful.engine")
_SAID = {False: "database unavailable, retrying: %s", True: "the engine stops: %s"}


def note_trouble(state: LoopState, error: StoreError, lost: Callable[[StoreGone], None]) -> None:
    """Say it once, not every second; `lost` is told if there is nothing to wait for."""
    gone = isinstance(error, StoreGone)
    if state.fail(str(error)):
        log.log(logging.ERROR if gone else logging.WARNING, _SAID[gone], error)
    if isinstance(error, StoreGone):
        lost(error)


def note_recovery(state: LoopState) -> None:
    if state.recover():
        log.warning("database available again")


async def release_unknown(store: Store, state: LoopState, context: Context, known: AbstractSet[int]) -> None:
    """A turn whose answer never came, or too late, may have been stored. What it claimed is released."""

    def work(tx: Transaction) -> int:
        # Every claim holds our node's row until it ends: one whose commit is still under way is waited for.
        tx.members.lives(context.id)
        unknown = [run for run in tx.runs.of_nodes([context.id]) if run.id not in known]
        release_runs(tx, context, unknown)
        return len(unknown)

    released = await store.write(work)
    if released:
        log.warning("released %s with an unknown commit result", counted(released, "claimed run"))
    state.find_claims()
