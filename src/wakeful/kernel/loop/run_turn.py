"""One poisoned row must not fail its group.

A turn is one transaction for hundreds of runs. If the database refuses its content, each run is settled by itself,
and the one that cannot be is recorded as failed for that reason; a job that cannot be claimed is disabled.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.counting import counted
from wakeful.errors import StoreError, StoreRefused
from wakeful.kernel.engine.alerts import open_alert
from wakeful.kernel.engine.claim import due_jobs
from wakeful.kernel.engine.ending import drop_runs
from wakeful.kernel.engine.turn import FinishedRun, TurnResult, turn
from wakeful.kernel.rules.outcome import Result
from wakeful.kernel.rules.policy import switch_off

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wakeful.kernel.context import Context
    from wakeful.store.interface import Store, Transaction

log = logging.getLogger("wakeful.engine")


def _environment(error: Exception) -> bool:
    """Whether the fault lies with the database's surroundings: nothing in the turn is to blame, and it is kept."""
    return isinstance(error, StoreError) and not isinstance(error, StoreRefused)


async def run_turn(
    store: Store,
    context: Context,
    ended: Sequence[FinishedRun],
    limit: int,
    *,
    recheck_store: bool = False,
    idle: bool = False,
    not_before: int | None = None,
) -> TurnResult:
    """A turn that gets through: as one group, or one by one around a job that cannot be processed.

    `recheck_store`: other processes wrote; also see what they cancelled, unless this node is `idle` and runs nothing,
    and what they left for this node to run.
    """

    def work(tx: Transaction) -> TurnResult:
        if recheck_store:
            tx.jobs.look_below()
        result = turn(tx, context, ended, limit, requeue=recheck_store)
        if recheck_store and not idle:
            result = result._replace(to_cancel=result.to_cancel + tx.runs.to_cancel())
        return result

    try:
        return await store.write(work, not_before=not_before)
    except Exception as error:
        if _environment(error):
            raise
        runs = counted(len(ended), "run")
        log.warning("a turn that settles %s failed; settling them one by one: %s", runs, error)
        return await _one_by_one(store, context, ended, limit)


async def _one_by_one(store: Store, context: Context, ended: Sequence[FinishedRun], limit: int) -> TurnResult:
    settled: list[int] = []
    lost: list[int] = []
    unsettled: list[FinishedRun] = []
    for item in ended:
        result = await _settle_alone(store, context, item)
        settled += result.settled
        lost += result.lost
        unsettled += result.unsettled
    try:
        claimed = await store.write(lambda tx: turn(tx, context, (), min(limit, 1)))
    except Exception as error:
        if _environment(error):
            raise
        message = f"{type(error).__name__}: {error}"  # the one job that was looked at is the one
        alarm = await _disable_first(store, context, message)
        return TurnResult([], settled, lost, [], alarm, unsettled=unsettled)
    return claimed._replace(settled=settled, lost=lost, unsettled=unsettled)


async def _settle_alone(store: Store, context: Context, item: FinishedRun) -> TurnResult:
    try:
        return await store.write(lambda tx: turn(tx, context, [item], 0))
    except Exception as error:
        if _environment(error):
            raise
        log.warning("the result of %s cannot be stored: %s", ids.run_text(item.run.id), error)
        plain = Result("error", error_type="NotStored", error=f"its result could not be stored: {error}"[:500])
        try:
            return await store.write(lambda tx: turn(tx, context, [item._replace(result=plain)], 0))
        except Exception as again:
            if _environment(again):
                raise
            log.exception("%s cannot be settled; retrying later", ids.run_text(item.run.id))
            return TurnResult([], [], [], [], None, unsettled=[item])


async def _disable_first(store: Store, context: Context, why: str) -> int | None:
    """Disable the job that is due first; the next alarm."""
    try:
        return await store.write(lambda tx: _disable(tx, context, why))
    except Exception as error:
        if _environment(error):
            raise
        log.warning("what waits to be started cannot be ended, and stays: %s", error)
        return await store.write(lambda tx: _disable(tx, context, why, drop=False))


def _disable(tx: Transaction, context: Context, why: str, *, drop: bool = True) -> int | None:
    for job, state in due_jobs(tx, context, 1):
        message = f"{job.name} cannot be started and was disabled: {why}"
        waiting = [run for run in tx.runs.open(job.id) if run.status == "queued"] if drop and state.queued else []
        left = state.queued - len(waiting)
        tx.jobs.save([switch_off(state, message, tx.now)._replace(last_error=message, queued=left)])
        drop_runs(tx, context, job, waiting, message)
        open_alert(tx, context, "disabled", job.id, message, job_id=job.id)
    return tx.jobs.next_alarm()
