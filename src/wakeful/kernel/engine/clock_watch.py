"""Noticing that somebody set the clock, and carrying the alarms over.

Wall time and boot time go forward together; when their distance changes, the wall clock was stepped. Forward, slots
simply are due, and deadlines of waiting runs move along. Back, alarms lie too far ahead and are computed again. Both in
batches.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wakeful.clock import EARLIEST_MS
from wakeful.errors import SchedulerError
from wakeful.kernel.engine.alerts import open_alert
from wakeful.kernel.engine.recovery import move_deadlines, rearm
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Store, Transaction

#: Smaller differences are the daily slewing of a time service.
STEP_MS = 2_000
#: Within this long every running node has noticed a step of the clock they share: no loop sleeps longer than a minute.
NOTICED_MS = 180_000


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

    def moved(self) -> bool:
        """Whether the clock was set since `step` was asked last."""
        return abs(self._clock.now() - self._clock.boot() - self._offset) >= STEP_MS

    @staticmethod
    async def settle_in(store: Store, context: Context, step: int) -> None:
        """Count the step, raise the alert, and bring alarms into the new time."""
        await store.write(lambda tx: _note_step(tx, context, step))
        await carry_on(store, context)


def _note_step(tx: Transaction, context: Context, step: int) -> None:
    """Put the step on record, unless another node that goes by the same clock has done so already."""
    facts = tx.journal.get_meta(["clock_steps", "clock_step", "clock_carry"])
    if "clock_step" in facts and not tx.exclusive:
        last = json.loads(facts["clock_step"])
        same = abs(last["ms"] - step) < STEP_MS and 0 <= tx.now - last["at"] < NOTICED_MS
        if same and last["node"] != context.id:
            return
    tx.journal.set_meta(
        {
            "clock_steps": int(facts.get("clock_steps", "0")) + 1,
            "clock_step": json.dumps({"at": tx.now, "ms": step, "node": context.id}),
            "alive_at": tx.now,
        }
    )
    if step > 0:
        move_deadlines(tx, step)
    else:  # what an earlier step has left to do is done with this one
        behind = json.loads(facts["clock_carry"])["back"] if facts.get("clock_carry") else 0
        # Ids only go up, whatever the clock does: what is newer than this one was made in the new time.
        carry = {"back": behind - step, "cursor": 0, "newer": context.new_id()}
        tx.journal.set_meta({"clock_carry": json.dumps(carry)})
    way = "back" if step < 0 else "forward"
    message = f"The clock was set {way} by {abs(step) / 1000:g} s, to {iso(tx.now)}; no slot is run twice."
    open_alert(tx, context, "clock", way, message)


async def carry_on(store: Store, context: Context) -> None:
    """Finish bringing alarms into the new time after a step back, a batch at a time.

    Where it stands is on record: after a crash the next start goes on from there.
    """

    def batch(tx: Transaction) -> bool:
        text = tx.journal.get_meta(["clock_carry"]).get("clock_carry")
        if not text:
            return False
        carry = json.loads(text)
        _, cursor = rearm(tx, context, carry["back"], carry["cursor"], carry["newer"])
        tx.journal.set_meta({"clock_carry": json.dumps({**carry, "cursor": cursor}) if cursor else ""})
        return cursor != 0

    while await store.write(batch):
        pass


def refuse_unset(clock: Clock) -> None:
    """A clock before 2000 was never set: every slot computed from it would be wrong."""
    if clock.now() < EARLIEST_MS:
        message = f"The clock shows {iso(clock.now())}, a time before 2000: set it, then start again."
        raise SchedulerError(message)
