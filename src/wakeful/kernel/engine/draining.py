"""Starts that are refused because every node that could make them is draining or stopping.

A job that becomes due then stays due: the next node that may start something starts it, late or as `catch_up` says.
Only the reason is written, once for each slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.store.records import SkipRow

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Store, Transaction

DRAINING = "draining"
TOGETHER = 1_000  # jobs in one transaction; the rest follows with the next look
LOOK_MS = 1_000


class DrainWatch:
    """What one draining node has counted so far; it looks at each job that becomes due once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._after = self._next = 0

    def over(self) -> None:
        """The node starts jobs again, or has not been asked to drain."""
        self._after = self._next = 0

    async def look(self, store: Store, context: Context) -> None:
        """Count what became due since the last look and cannot start; once a second at most."""
        if self._clock.boot() < self._next:
            return
        self._next = self._clock.boot() + LOOK_MS
        self._after = await store.write(lambda tx: _look(tx, context, self._after))


def _look(tx: Transaction, context: Context, after: int) -> int:
    living = tx.nodes.living(0)
    if not living or living[0].id != context.id or not all(node.draining for node in living):
        return after  # another node starts them; where all are draining, the oldest counts
    return tx.now if refuse_due(tx, context, after, "every node is draining") < TOGETHER else after


def refuse_at_stop(tx: Transaction, context: Context, since: int) -> None:
    """Count what became due while this node was stopping, where no other node could start it."""
    if tx.exclusive or all(node.id == context.id for node in tx.members.serving()):
        refuse_due(tx, context, since, "the server was stopping")


def refuse_due(tx: Transaction, context: Context, after: int, why: str) -> int:
    """Count the starts that became due after that time as refused; how many there were."""
    hidden = context.declared.hooks.unstarted
    due = tx.jobs.late(tx.now, hidden, TOGETHER, after=after, but=DRAINING)
    tx.skips.count([SkipRow(job_id, DRAINING, 1, tx.now, why) for job_id, _, _ in due])
    return len(due)


def all_drain(tx: Transaction) -> bool:
    """Whether there are nodes, and each was asked to start nothing more."""
    living = [] if tx.exclusive else tx.nodes.living(0)
    return bool(living) and all(node.draining for node in living)
