"""One poisoned row must not fail its group.

A turn is one transaction for hundreds of runs. If the database refuses it for what is in it, each run is settled by
itself, and the one that cannot be is recorded as failed for that reason; a job that cannot be claimed is disabled.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.errors import StoreError, StoreFull, StoreLocked, StoreUnreachable, StoreUnusable
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

_NOBODYS_FAULT = (StoreFull, StoreLocked, StoreUnreachable, StoreUnusable)


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
        if look_around and limit:
            # In the transaction that claims: put back alone, they could be taken and parked again by a node that
            # cannot run them.
            welcome_all(tx, node)
        result = turn(tx, node, ended, limit)
        return result._replace(to_cancel=result.to_cancel + tx.runs.to_cancel()) if look_around else result

    try:
        return await store.write(work, not_before=not_before)
    except _NOBODYS_FAULT:
        raise
    except Exception as error:  # noqa: BLE001 - taken apart below
        log.warning("a turn of %d settlements failed and is taken apart: %s", len(ended), error)
        return await _one_by_one(store, node, ended, limit)


async def _one_by_one(store: Store, node: Node, ended: Sequence[Ended], limit: int) -> TurnResult:
    settled: list[int] = []
    lost: list[int] = []
    for item in ended:
        result = await _settle_alone(store, node, item)
        settled += result.settled
        lost += result.lost
    try:
        claimed = await store.write(lambda tx: turn(tx, node, (), min(limit, 1)))
    except _NOBODYS_FAULT:
        raise
    except Exception as error:  # noqa: BLE001 - the one job that was looked at is the one
        message = f"{type(error).__name__}: {error}"
        alarm = await store.write(lambda tx: _disable_first(tx, node, message))
        return TurnResult([], settled, lost, [], alarm)
    return claimed._replace(settled=settled, lost=lost)


async def _settle_alone(store: Store, node: Node, item: Ended) -> TurnResult:
    try:
        return await store.write(lambda tx: turn(tx, node, [item], 0))
    except _NOBODYS_FAULT:
        raise
    except Exception as error:  # noqa: BLE001 - told in the run's record instead
        log.warning("%s cannot be recorded as it ended: %s", ids.run_text(item.run.id), error)
        plain = Result("error", error_type="NotStored", error=f"its result could not be stored: {error}"[:500])
        try:
            return await store.write(lambda tx: turn(tx, node, [item._replace(result=plain)], 0))
        except StoreError:
            log.exception("%s cannot be recorded at all; the next start will find it", ids.run_text(item.run.id))
            return TurnResult([], [], [], [], 0)


def _disable_first(tx: Transaction, node: Node, why: str) -> int | None:
    for job, state in tx.jobs.due(tx.now, 1):
        message = f"{job.name} cannot be started and was disabled: {why}"
        tx.jobs.save([end(state, message, tx.now)._replace(last_error=message)])
        apply_alert(tx, node, job.id, AlertChange(f"disabled:{job.id}", "disabled", message))
    return tx.jobs.next_alarm()
