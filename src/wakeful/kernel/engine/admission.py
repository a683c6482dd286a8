"""Admission: whether a due job may start now.

In this order: no hold, a handler for its kind, its labels, room in its lanes, and what its kind says. A job that may
not start is parked until what it waits for is there, or refused by its kind. Each reason is counted once per slot.
"""

from __future__ import annotations

import json
from collections import Counter

from wakeful.kernel.context import Context
from wakeful.kernel.kinds import Refused
from wakeful.kernel.parking import GLOBAL_LANE, HANDLER, HOLD, SUSPECT_LANE, place_key
from wakeful.kernel.rules.options import OptionValues
from wakeful.store.interface import Transaction
from wakeful.store.nodes import hold_level
from wakeful.store.records import JobDef, JobState, RunRow, SkipRow

SUSPECT_AFTER = 2  # crashes in a row
ASK_AGAIN_MS = 1_000  # when a kind lets a start wait for a moment that has passed


class Admission:
    """Admits the due jobs of one transaction, and collects what to write about those that wait."""

    def __init__(self, tx: Transaction, context: Context, held: int | None = None) -> None:
        """`held`: how far everything is held, where that was read already."""
        self._held = held
        self._tx = tx
        self._context = context
        self._hooks = context.declared.hooks
        self._used: dict[str, int] = {}
        self._taken: Counter[str] = Counter()
        self._capacity: dict[str, int] = {}
        self.waiting: list[JobState] = []
        self.skips: list[SkipRow] = []
        self.in_hook = False

    def admit(self, job: JobDef, options: OptionValues, state: JobState) -> tuple[str, ...] | Refused | None:
        """The bounded lanes this start takes; None when it was parked instead, Refused when its kind says no."""
        if self._is_held(job):
            self._park(state, HOLD, "held", None)
            return None
        if job.kind not in self._context.kinds:
            self._park(state, HANDLER + job.kind, "no_handler", f"this node has no handler for kind {job.kind}")
            return None
        if not self._context.labels.issuperset(options.labels):
            needs = ", ".join(options.labels)
            self._park(state, place_key(options.labels), "no_node", f"it asks for a node labelled {needs}")
            return None
        if not options.lanes and self._context.max_running is None and state.crashes < SUSPECT_AFTER:
            return self._asked(job, state) or ()
        wanted = dict(options.lanes)
        if self._context.max_running is not None and job.kind not in self._hooks.internal:
            wanted[GLOBAL_LANE] = self._context.max_running
        if state.crashes >= SUSPECT_AFTER:
            wanted[SUSPECT_LANE] = 1
        self._load(wanted)
        for lane in wanted:
            capacity = self._capacity[lane]
            if self._used[lane] + self._taken[lane] >= capacity:
                self._park(state, lane, "at_capacity", f"{lane} holds {capacity}")
                return None
        return self._asked(job, state) or tuple(wanted)

    def refuse(self, state: JobState, refused: Refused) -> bool:
        """A kind does not admit this start; True when that is the end of it, False when it waits."""
        now = self._tx.now
        if not refused.reason and refused.until is not None:  # not decided: it is looked at again in a moment
            self.waiting.append(state._replace(due_at=max(refused.until, now + 1), parked=None))
            return False
        # Once for a start that waits, and once for one that ends. One that waited already says what for now.
        times = int(state.ready_at is None or refused.until is None)
        self.skips.append(SkipRow(state.job_id, refused.reason, times, now, refused.detail))
        if refused.until is None:
            return True
        ready_at = state.ready_at if state.ready_at is not None else state.due_at
        again_at = refused.until if refused.until > now else now + ASK_AGAIN_MS  # at once would be a busy loop
        self.waiting.append(state._replace(due_at=again_at, ready_at=ready_at, parked=None))
        return False

    def take(self, run: RunRow) -> None:
        """The run holds its lanes from here on."""
        if run.lanes is not None:
            self._taken.update(json.loads(run.lanes))

    def write_lanes(self) -> None:
        """Store what was taken, and offer the rest to jobs that wait."""
        self._tx.lanes.add(self._taken)
        for lane, capacity in self._capacity.items():
            # A job requeued by a freed lane may have parked on another; the place it left is offered on.
            free = capacity - self._used[lane] - self._taken[lane]
            if free > 0:
                self._tx.jobs.requeue_parked(lane, self._tx.now, free)

    def _is_held(self, job: JobDef) -> bool:
        if self._held is None:
            self._held = hold_level(self._tx.nodes.held())
        return self._held > 0 and (self._held > 1 or job.kind not in self._hooks.internal)

    def _asked(self, job: JobDef, state: JobState) -> Refused | None:
        """What the job's kind says about starting it now; asked last, when nothing else stands against it."""
        hook = self._hooks.admit.get(job.kind) if self._hooks.admit else None
        if hook is None:
            return None
        self.in_hook = True
        refused = hook(self._tx, self._context, job, state)
        self.in_hook = False
        return refused

    def _load(self, wanted: dict[str, int]) -> None:
        unknown = [lane for lane in wanted if lane not in self._used]
        if unknown:
            for lane, (used, size) in self._tx.lanes.sizes(unknown).items():
                self._used[lane] = used
                if size is not None:
                    self._capacity[lane] = size
        for lane, capacity in wanted.items():
            # Jobs that disagree about a lane's size: the smallest holds.
            self._capacity[lane] = min(capacity, self._capacity.get(lane, capacity))

    def _park(self, state: JobState, key: str, reason: str, detail: str | None) -> None:
        now = self._tx.now
        if state.ready_at is None:
            self.skips.append(SkipRow(state.job_id, reason, 1, now, detail))
        ready_at = state.ready_at if state.ready_at is not None else state.due_at
        self.waiting.append(state._replace(due_at=None, parked=key, ready_at=ready_at))
