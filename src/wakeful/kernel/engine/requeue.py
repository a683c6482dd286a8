"""Jobs that waited for a node that can run them, or for a place that others had reserved, and are put back."""

from __future__ import annotations

from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import UNSERVED, close_alerts
from wakeful.kernel.rules.parking import HOLD
from wakeful.store.interface import Transaction

LATEST = 2**62
TOGETHER = 1_000  # jobs that are put back in one transaction after a hold; the rest follows


def requeue_served(tx: Transaction, context: Context) -> int:
    """Requeue the jobs that waited for a node such as this one; how many there were."""
    lines = tx.jobs.parked_counts()
    back = requeue_released(tx) if HOLD in lines else 0
    return back + sum(requeue_waiting(tx, context, key, count) for key, count in lines.items() if context.serves(key))


def requeue_released(tx: Transaction) -> int:
    """Requeue the first jobs that waited for the end of a hold, if it has ended; how many there were.

    They were not ready while it stood: what of their slots is still run is decided as after a time without a server.
    """
    if tx.nodes.held() is not None:
        return 0
    line = [state.job_id for _, state in tx.jobs.parked_on(HOLD, LATEST, TOGETHER)]
    states = tx.jobs.states(line) if line else {}
    waiting = [state for job_id in line if (state := states.get(job_id)) is not None and state.parked == HOLD]
    # Due now, a millisecond apart, so that they start in the order in which they waited.
    tx.jobs.save(
        [
            state._replace(due_at=tx.now - len(waiting) + place, parked=None, ready_at=None)
            for place, state in enumerate(waiting, 1)
        ]
    )
    return len(waiting)


def requeue_waiting(tx: Transaction, context: Context, key: str, count: int) -> int:
    """A node can run them now: requeue the jobs parked there, and close their alerts; how many there were."""
    waiting = {state.job_id for _, state in tx.jobs.parked_on(key, tx.now, count)}
    close_alerts(tx, context, UNSERVED, waiting)
    return tx.jobs.requeue_parked(key, tx.now, count)


def requeue_unreserved(tx: Transaction) -> int:
    """Give places on that were reserved by jobs that do not wait any more, such as one that was paused; to how many."""
    return sum(tx.jobs.requeue_parked(lane, tx.now, 1) for lane in sorted(tx.lanes.drop_reservations(tx.now)))
