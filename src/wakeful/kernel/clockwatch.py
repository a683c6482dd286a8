"""Noticing that somebody set the clock, and carrying the alarms over.

Wall time and boot time go forward together; when their distance changes, the wall clock was stepped. Forward, slots
simply are due. Back, alarms lie too far ahead and are computed again, in batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.clock import EARLIEST_MS
from wakeful.errors import SchedulerError
from wakeful.kernel.recovery import rearm
from wakeful.kernel.settle import AlertChange
from wakeful.kernel.turn import apply_alert
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.claim import Node
    from wakeful.store.interface import Store, Transaction

#: Smaller differences are the daily slewing of a time service.
STEP_MS = 2_000


class ClockWatch:
    """Remembers how far wall and boot time lie apart."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.now() - clock.boot()

    def step(self) -> int:
        """By how much the wall clock was set since this was asked last; 0 for next to nothing."""
        offset = self._clock.now() - self._clock.boot()
        moved = offset - self._offset
        self._offset = offset
        return moved if abs(moved) >= STEP_MS else 0

    @staticmethod
    async def settle_in(store: Store, node: Node, step: int) -> None:
        """Count the step, raise the alert, and bring alarms into the new time."""

        def tell(tx: Transaction) -> None:
            steps = int(tx.journal.facts(["clock_steps"]).get("clock_steps", "0")) + 1
            tx.journal.remember({"clock_steps": steps, "alive_at": tx.now})
            way = "back" if step < 0 else "forward"
            message = f"The clock was set {way} by {abs(step) / 1000:g} s, to {iso(tx.now)}; no slot is run twice."
            apply_alert(tx, node, None, AlertChange(f"clock:{way}", "clock", message))

        await store.write(tell)
        cursor = 0
        while step < 0:
            here = cursor
            _, cursor = await store.write(lambda tx, here=here: rearm(tx, node, -step, here))  # type: ignore[misc]
            if cursor == 0:
                return


def refuse_unset(clock: Clock) -> None:
    """A clock before 2000 was never set: every slot computed from it would be wrong."""
    if clock.now() < EARLIEST_MS:
        message = f"The clock shows {iso(clock.now())}, a time before 2000: set it, then start again."
        raise SchedulerError(message)
