"""Admission: whether a due job may start now.

In this order: no hold, a handler for its kind, its labels, room in its lanes, and what its kind says. A job that may
not start is parked until what it waits for is there, or refused by its kind. Each reason is counted once per slot.

A start is refused, too, if every node that could make it is draining or stopping. The job then stays due: the next node
that may start something starts it, late or as `catch_up` says. Only the reason is written, once for each slot.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.kernel.context import Context
from wakeful.kernel.engine.lines import Lines, turn_of
from wakeful.kernel.hooks import Refused
from wakeful.kernel.rules.approval import APPROVAL, is_approved
from wakeful.kernel.rules.options import OptionValues, from_text
from wakeful.kernel.rules.parking import FILE, GLOBAL_LANE, HANDLER, HOLD, SUSPECT_LANE, place_key
from wakeful.kernel.rules.policy import LATE_MS
from wakeful.store.interface import Transaction
from wakeful.store.lanes import Waiter
from wakeful.store.nodes import hold_level
from wakeful.store.records import JobDef, JobState, RunRow, SkipRow

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Store


HELD = "held"  # why nothing starts while everything is paused
SUSPECT_AFTER = 2  # crashes in a row
MOST_TRIED = 50  # of a job's queued runs, where the first waits for a lane of its own
ASK_AGAIN_MS = 1_000  # when a kind lets a start wait for a moment that has passed


class Admission:
    """Admits the due jobs of one transaction, and collects what to write about those that wait."""

    def __init__(self, tx: Transaction, context: Context, held: int | None = None) -> None:
        """`held`: how far everything is held, where that was read already."""
        self._held = held
        self._tx = tx
        self._context = context
        self._hooks = context.declared.hooks
        self._lines = Lines(tx)
        self._together: Counter[tuple[int, int]] = Counter()  # how many became due at a moment and wait, by priority
        self.waiting: list[JobState] = []
        self.skips: list[SkipRow] = []
        self.in_hook = False

    def admit(
        self, job: JobDef, options: OptionValues, state: JobState, run: RunRow | None = None
    ) -> tuple[str, ...] | Refused | None:
        """The bounded lanes this start takes; None when it was parked instead, Refused when its kind says no.

        `run`: the one that is queued, where it is not a slot that starts.
        """
        if self.is_held(job):
            self._park(state, HOLD, HELD, None)
            return None
        unsettled = self._context.unsettled
        if unsettled is not None and job.id in unsettled.jobs:
            self._park(state, FILE + unsettled.fleet, "held", f"the file of the fleet {unsettled.fleet} is not settled")
            return None
        if job.kind not in self._context.kinds:
            self._park(state, HANDLER + job.kind, "no_handler", f"this node has no handler for kind {job.kind}")
            return None
        if not self._context.labels.issuperset(options.labels):
            needs = ", ".join(options.labels)
            self._park(state, place_key(options.labels), "no_node", f"it asks for a node labelled {needs}")
            return None
        wanted = self._wanted(job, options, state, run)
        if not wanted:
            return self._asked(job, state) or ()
        self._lines.load(wanted)
        turn, passed = self._turn(state), list[str]()
        for lane in self._lines.in_order(wanted, state.ready_at):
            if not self._lines.has_room(lane, turn):
                reserved = [] if lane == GLOBAL_LANE else passed
                self._lines.wait(turn, lane, reserved)
                self._park(state, lane, "at_capacity", self._full(lane), turn.since)
                self._together[turn_of(state)[:2]] += 1
                if reserved or self._may_reserve(job, state, wanted):
                    self._lines.reserve(job.id, reserved)
                return None
            passed.append(lane)
        refused = self._asked(job, state)
        if refused is None and self._may_reserve(job, state, wanted):
            self._lines.reserve(job.id, ())
        return refused or tuple(wanted)

    def first_with_room(self, job: JobDef, state: JobState, runs: Sequence[RunRow]) -> RunRow:
        """Of queued runs in their order, the first whose own lanes have room; the first of all where none has."""
        if len(runs) > 1 and job.kind in self._hooks.takes_lanes:
            for run in runs[:MOST_TRIED]:
                own = self._lanes_of_kind(job, run)
                self._lines.load(own)
                if all(self._lines.has_room(lane, turn_of(state)) for lane in own):
                    return run
        return runs[0]

    def pass_on(self, job: JobDef, state: JobState) -> None:
        """The job had waited, and neither starts nor waits for a lane now: its places are for those behind it."""
        wanted = self._wanted(job, from_text(job.options), state, None)
        self._lines.leave(job.id)
        self._lines.load(wanted)
        if self._may_reserve(job, state, wanted):
            self._lines.reserve(job.id, ())

    def refuse(self, state: JobState, refused: Refused) -> bool:
        """A kind does not admit this start; True when that is the end of it, False when it waits."""
        now = self._tx.now
        if not refused.reason and refused.until is not None:  # not decided: it is looked at again in a moment
            self.waiting.append(state._replace(due_at=max(refused.until, now + 1), parked=None))
            return False
        # Once for a start that waits, and once for one that ends. One that waited already says what for now.
        times = int(self._is_first(state) or refused.until is None)
        self.skips.append(SkipRow(state.job_id, refused.reason, times, now, refused.detail))
        if refused.until is None:
            return True
        ready_at = state.ready_at if state.ready_at is not None else state.due_at
        again_at = refused.until if refused.until > now else now + ASK_AGAIN_MS  # at once would be a busy loop
        self.waiting.append(state._replace(due_at=again_at, ready_at=ready_at, parked=None))
        return False

    def take(self, run: RunRow) -> None:
        """The run holds its lanes from here on."""
        self._lines.take(run.job_id, json.loads(run.lanes) if run.lanes is not None else ())

    def write_lanes(self) -> None:
        """Store what was taken, and offer the rest to jobs that wait."""
        self._lines.write()

    def is_held(self, job: JobDef) -> bool:
        """Whether nothing of this kind starts, because everything is held."""
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

    def _lanes_of_kind(self, job: JobDef, run: RunRow | None) -> dict[str, int]:
        """What the start works on that only one run may work on at once."""
        hook = self._hooks.takes_lanes.get(job.kind) if self._hooks.takes_lanes else None
        return {} if hook is None else dict.fromkeys(hook(self._tx, job, run), 1)

    def _wanted(self, job: JobDef, options: OptionValues, state: JobState, run: RunRow | None) -> dict[str, int]:
        """The lanes that the start needs with the sizes that are given for it."""
        wanted = {**dict(options.lanes), **self._lanes_of_kind(job, run)}
        if self._context.max_running is not None and job.kind not in self._hooks.internal:
            wanted[GLOBAL_LANE] = self._context.max_running
        if state.crashes >= SUSPECT_AFTER:
            wanted[SUSPECT_LANE] = 1
        return wanted

    def _turn(self, state: JobState) -> Waiter:
        """The job's place in line; those that became due at one moment stand in the order in which they are looked at.

        A millisecond apart, so that they keep it.
        """
        turn = turn_of(state)
        if state.ready_at is not None:
            return turn
        return turn._replace(since=turn.since + self._together[turn[:2]])

    def _may_reserve(self, job: JobDef, state: JobState, wanted: dict[str, int]) -> bool:
        """Whether reservations of the job may be on record from when it was looked at before."""
        several = len(wanted.keys() - {GLOBAL_LANE}) > 1 or job.kind in self._hooks.takes_lanes
        return several and state.ready_at is not None

    def _full(self, lane: str) -> str:
        free = self._lines.free(lane)
        return f"{lane} holds {self._lines.capacity(lane)}" + (", and others go first" if free > 0 else "")

    def _is_first(self, state: JobState) -> bool:
        """Whether this start was not refused before, also not while everything was paused: each counts once."""
        since = state.next_at
        if state.ready_at is not None or since is None or self._tx.now - since <= LATE_MS:
            return state.ready_at is None
        return not any(skip.reason == HELD and skip.last_at >= since for skip in self._tx.skips.of(state.job_id))

    def _park(self, state: JobState, key: str, reason: str, detail: str | None, since: int | None = None) -> None:
        """`since`: since when it waits in a line, if it stands in one."""
        now = self._tx.now
        if self._is_first(state):
            self.skips.append(SkipRow(state.job_id, reason, 1, now, detail))
        ready_at = since if since is not None else state.ready_at if state.ready_at is not None else state.due_at
        self.waiting.append(state._replace(due_at=None, parked=key, ready_at=ready_at))


def in_order(tx: Transaction, job: JobDef, runs: Sequence[RunRow], *, slot_due: bool) -> tuple[Sequence[RunRow], bool]:
    """A job's queued runs in the order of their starts: first what a person has approved.

    Where every start asks, another one would ask next and hold the job until it is answered, perhaps for days: then it
    is what was approved, and its further attempts, alone (True).
    """
    asks = from_text(job.options).approval
    approved = approved_of(tx, runs) if len(runs) > 1 or (slot_due and asks) else frozenset()
    if asks and approved:
        runs = [run for run in runs if run.id in approved]
    return sorted(runs, key=lambda run: (run.id not in approved, run.due_at, run.id)), bool(asks and approved)


def approved_of(tx: Transaction, runs: Sequence[RunRow]) -> frozenset[int]:
    """Which of these queued runs go on with what a person has approved."""
    further = [run.id for run in runs if run.retry_of is not None and run.reason not in ("manual", APPROVAL)]
    details = tx.runs.details_of(further) if further else {}
    again = [run_id for run_id, said in details.items() if is_approved(said.approval)]
    return frozenset([*again, *(run.id for run in runs if run.reason == APPROVAL)])


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
