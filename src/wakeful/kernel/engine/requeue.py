"""Jobs that waited for a node that can run them, and are put back where there is one."""

from __future__ import annotations

from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import UNSERVED, close_alerts
from wakeful.kernel.parking import HOLD
from wakeful.store.interface import Transaction

TOGETHER = 1_000  # jobs that are put back in one transaction after a hold; the rest follows


def requeue_served(tx: Transaction, context: Context) -> int:
    """Requeue the jobs that waited for a node such as this one; how many there were."""
    lines = tx.jobs.parked_counts()
    back = requeue_released(tx) if HOLD in lines else 0
    return back + sum(requeue_waiting(tx, context, key, count) for key, count in lines.items() if context.serves(key))


def requeue_released(tx: Transaction) -> int:
    """Requeue the first jobs that waited for the end of a hold, if it has ended; how many there were."""
    return tx.jobs.requeue_parked(HOLD, tx.now, TOGETHER) if tx.nodes.held() is None else 0


def requeue_waiting(tx: Transaction, context: Context, key: str, count: int) -> int:
    """A node can run them now: requeue the jobs parked there, and close their alerts; how many there were."""
    waiting = {state.job_id for _, state in tx.jobs.parked_on(key, tx.now, count)}
    close_alerts(tx, context, UNSERVED, waiting)
    return tx.jobs.requeue_parked(key, tx.now, count)
