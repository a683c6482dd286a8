"""Noticing that the clock was set, and carrying the alarms over.

Wall time and boot time go forward together; when their distance changes, the wall clock was stepped. Forward, slots
simply are due, and deadlines of waiting runs move along. Back, alarms lie too far ahead and are computed again. Both in
batches.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from wakeful.kernel.engine.alerts import open_alert
from wakeful.kernel.engine.rearming import move_deadlines, reanchor, rearm
from wakeful.triggers.moments import spoken

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Store, Transaction

#: Smaller differences are the daily slewing of a time service.
STEP_MS = 2_000
#: A fact of the store: the first id that was made after the clock was last set back.
SET_BACK = "clock_set_back"
#: So long a clock must have gone on by itself before what is old by it is deleted.
STEADY_MS = 6 * 3_600_000
#: A clock that nobody watched for longer than this may have been set meanwhile.
UNWATCHED_MS = 86_400_000
#: Within this long every running node has noticed a step of the clock they share: no loop sleeps longer than a minute.
NOTICED_MS = 180_000


class ClockStep(NamedTuple):
    """The wall clock was set by `ms`, which was noticed at a boot time: a node records each step once."""

    ms: int
    noticed: int


class ClockWatch:
    """Remembers how far wall and boot time lie apart, and the step that is not recorded yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """From now on, a step of the clock is noticed."""
        self._offset = self.distance()
        self._unrecorded: ClockStep | None = None
        self._carrying = False

    def distance(self) -> int:
        """How far wall time lies ahead of boot time; it changes only when the clock is set."""
        return self._clock.now() - self._clock.boot()

    def step(self) -> ClockStep | None:
        """The step to record, if the clock was set since the last one; the same until `recorded` is called."""
        if self._unrecorded is None:
            offset = self.distance()
            moved, self._offset = offset - self._offset, offset
            if abs(moved) >= STEP_MS:
                self._unrecorded = ClockStep(moved, self._clock.boot())
        return self._unrecorded

    def recorded(self) -> None:
        """The step is in the store."""
        self._unrecorded, self._carrying = None, True

    def moved(self) -> bool:
        """Whether the clock was set and that is not recorded yet."""
        return self._unrecorded is not None or abs(self.distance() - self._offset) >= STEP_MS

    async def record(self, store: Store, context: Context) -> int:
        """Record the step, if there was one, and return its length in milliseconds; otherwise 0."""
        step = self.step()
        if step is None:
            return 0
        await store.write(lambda tx: note_step(tx, context, step))
        self.recorded()
        return step.ms

    async def carry_on(self, store: Store, context: Context) -> None:
        """After a recorded step, bring alarms into the new time. What an error cut short continues at the next call."""
        if self._carrying:
            await carry_on(store, context)
            self._carrying = False


def note_step(tx: Transaction, context: Context, step: ClockStep) -> None:
    """Record the step and open the alert, unless that is done: by this node, or by another that uses the same clock."""
    facts = tx.facts.of(["clock_steps", "clock_step", "clock_carry"])
    if "clock_step" in facts and _is_recorded(json.loads(facts["clock_step"]), tx, context, step):
        return
    tx.facts.put(
        {
            "clock_steps": int(facts.get("clock_steps", "0")) + 1,
            "clock_step": json.dumps({"at": tx.now, "ms": step.ms, "node": context.id, "noticed": step.noticed}),
            "alive_at": tx.now,
            **_steady(tx.now, tx.now - step.noticed),
        }
    )
    if step.ms > 0:
        move_deadlines(tx, step.ms)
    else:  # what an earlier step has left to do is done with this one
        behind = json.loads(facts["clock_carry"])["back"] if facts.get("clock_carry") else 0
        # Ids only go up, also when the clock is set back: what is newer than this one was made in the new time.
        newer = context.new_id()
        carry = {"back": behind - step.ms, "cursor": 0, "newer": newer, "stored": 0}
        tx.facts.put({"clock_carry": json.dumps(carry), SET_BACK: newer})
        tx.jobs.set_lines_back(tx.now, -step.ms)  # or who comes later would have waited longer
    message = f"The clock was set {way(step.ms)}, to {spoken(tx.now)}; no scheduled time runs twice."
    open_alert(tx, context, "clock", "back" if step.ms < 0 else "forward", message)


def way(ms: int) -> str:
    """Which way a clock was set, and by how much."""
    from wakeful.kernel.rules.verdict import span  # only when a clock is set

    return f"{'back' if ms < 0 else 'forward'} by {span(abs(ms))}"


def _is_recorded(last: dict[str, int], tx: Transaction, context: Context, step: ClockStep) -> bool:
    if last["node"] == context.id:
        return last.get("noticed") == step.noticed
    same = abs(last["ms"] - step.ms) < STEP_MS and 0 <= tx.now - last["at"] < NOTICED_MS
    return same and not tx.exclusive


def note_start(tx: Transaction, distance: int, alive_at: int) -> None:
    """An engine starts: since when the clock continues by itself, as far as that is known.

    It was watched until `alive_at`. It was not set since if its `distance` from boot time is the same, and not by much
    if little time has passed.
    """
    text = tx.facts.get("clock_steady")
    known = json.loads(text) if text else None
    watched = 0 <= tx.now - alive_at <= UNWATCHED_MS
    steady = known is not None and (watched or abs(distance - known["distance"]) < STEP_MS)
    tx.facts.put(_steady(known["since"] if known is not None and steady else tx.now, distance))


def is_steady(tx: Transaction) -> bool:
    """Whether the clock has gone on by itself for so long that what it says about the age of things is believed."""
    text = tx.facts.get("clock_steady")
    return bool(text) and tx.now - int(json.loads(text or "")["since"]) >= STEADY_MS


def _steady(since: int, distance: int) -> dict[str, object]:
    return {"clock_steady": json.dumps({"since": since, "distance": distance})}


async def carry_on(store: Store, context: Context) -> None:
    """Finish bringing alarms into the new time after a step back, a batch at a time.

    Where it stands is on record: after a crash the next start continues from there.
    """

    def batch(tx: Transaction) -> bool:
        text = tx.facts.of(["clock_carry"]).get("clock_carry")
        if not text:
            return False
        carry = json.loads(text)
        if carry.get("stored") is not None:  # first the definitions, from which the slots are computed
            following = reanchor(tx, context, carry["stored"])
            tx.facts.put({"clock_carry": json.dumps({**carry, "stored": following or None})})
            return True
        _, cursor = rearm(tx, context, carry["back"], carry["cursor"], carry["newer"])
        tx.facts.put({"clock_carry": json.dumps({**carry, "cursor": cursor}) if cursor else ""})
        return cursor != 0

    while await store.write(batch):
        pass
