"""One poisoned row must not fail its group.

A turn is one transaction for hundreds of runs. If the database refuses it for what is in it, each run is settled by
itself, and the one that cannot be is recorded as failed for that reason; a job that cannot be claimed is disabled.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.errors import StoreError, StoreRefused
from wakeful.kernel.outcome import Result
from wakeful.kernel.policy import end
from wakeful.kernel.recovery import welcome_all
from wakeful.kernel.settle import AlertChange
from wakeful.kernel.turn import Ended, TurnResult, apply_alert, turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wakeful.kernel.claim import Node
    from wakeful.store.interface import Store, Transaction

log = logging.getLogger("wakeful.engine")


def _environment(error: Exception) -> bool:
    """Whether the fault lies with the database's surroundings: nothing in the turn is to blame, and it is kept."""
    return isinstance(error, StoreError) and not isinstance(error, StoreRefused)


async def take_turn(
    store: Store,
    node: Node,
    ended: Sequence[Ended],
    limit: int,
    *,
    look_around: bool = False,
    not_before: int | None = None,
) -> TurnResult:
    """A turn that gets through: as one group, or one by one around whatever is poisoned.

    `look_around`: other processes wrote; also see what they cancelled, and what they left for a node such as this one.
    """

    def work(tx: Transaction) -> TurnResult:
        if look_around:
            tx.jobs.look_below()
        if look_around and limit:
            # In the transaction that claims: put back alone, they could be taken and parked again by a node that
            # cannot run them.
            welcome_all(tx, node)
        result = turn(tx, node, ended, limit)
        return result._replace(to_cancel=result.to_cancel + tx.runs.to_cancel()) if look_around else result

    try:
        return await store.write(work, not_before=not_before)
    except Exception as error:
        if _environment(error):
            raise
        log.warning("a turn of %d settlements failed and is taken apart: %s", len(ended), error)
        return await _one_by_one(store, node, ended, limit)


async def _one_by_one(store: Store, node: Node, ended: Sequence[Ended], limit: int) -> TurnResult:
    settled: list[int] = []
    lost: list[int] = []
    unsettled: list[Ended] = []
    for item in ended:
        result = await _settle_alone(store, node, item)
        settled += result.settled
        lost += result.lost
        unsettled += result.unsettled
    try:
        claimed = await store.write(lambda tx: turn(tx, node, (), min(limit, 1)))
    except Exception as error:
        if _environment(error):
            raise
        message = f"{type(error).__name__}: {error}"  # the one job that was looked at is the one
        alarm = await store.write(lambda tx: _disable_first(tx, node, message))
        return TurnResult([], settled, lost, [], alarm, unsettled=unsettled)
    return claimed._replace(settled=settled, lost=lost, unsettled=unsettled)


async def _settle_alone(store: Store, node: Node, item: Ended) -> TurnResult:
    try:
        return await store.write(lambda tx: turn(tx, node, [item], 0))
    except Exception as error:
        if _environment(error):
            raise
        log.warning("%s cannot be recorded as it ended: %s", ids.run_text(item.run.id), error)
        plain = Result("error", error_type="NotStored", error=f"its result could not be stored: {error}"[:500])
        try:
            return await store.write(lambda tx: turn(tx, node, [item._replace(result=plain)], 0))
        except StoreRefused:
            log.exception("%s cannot be recorded at all; it is tried again in a while", ids.run_text(item.run.id))
            return TurnResult([], [], [], [], None, unsettled=[item])


def _disable_first(tx: Transaction, node: Node, why: str) -> int | None:
    for job, state in tx.jobs.due(tx.now, 1):
        message = f"{job.name} cannot be started and was disabled: {why}"
        tx.jobs.save([end(state, message, tx.now)._replace(last_error=message)])
        apply_alert(tx, node, job.id, AlertChange(f"disabled:{job.id}", "disabled", message))
    return tx.jobs.next_alarm()
