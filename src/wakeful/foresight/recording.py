"""What happens in a simulation, as it happens: runs, waits, lanes, refusals and costs. Nothing here grows with time."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.kernel.rules.approval import question_before
from wakeful.kernel.rules.parking import GLOBAL_LANE
from wakeful.kernel.rules.policy import trigger_of
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.foresight.history import History
    from wakeful.kernel.hooks import Refused
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow

HERD = 20  # starts in one second that are many
KEPT_SECONDS = 500
BY_TIME = ("schedule", "catch_up")


class SimulatedRun(NamedTuple):
    """One run of a simulation; without an outcome it had not ended."""

    job: str
    slot: int | None
    started_at: int
    ended_at: int | None
    waited_ms: int
    outcome: str | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC."""
        return {
            "job": self.job,
            "slot": None if self.slot is None else iso(self.slot),
            "started_at": iso(self.started_at),
            "duration_ms": None if self.ended_at is None else self.ended_at - self.started_at,
            "waited_ms": self.waited_ms,
            "outcome": self.outcome,
            "reason": self.reason,
        }


OnRun = Callable[[SimulatedRun], None]


class SimulatedTally:
    """What became of one job."""

    __slots__ = ("longest_wait_ms", "outlasted", "outlasted_at", "runs", "slot_run_at", "slot_runs")

    def __init__(self) -> None:
        self.runs = 0
        self.slot_runs = 0
        self.slot_run_at = 0  # when the last of them started
        self.longest_wait_ms = 0
        self.outlasted = 0  # runs that took longer than the time to the next one
        self.outlasted_at: int | None = None


class LaneTally:
    """How full one lane was."""

    __slots__ = ("busiest", "full_ms", "full_since", "longest_at", "longest_ms", "size", "used")

    def __init__(self, size: int | None) -> None:
        self.size = size
        self.used = 0
        self.busiest = 0
        self.full_since: int | None = None
        self.full_ms = 0
        self.longest_ms = 0
        self.longest_at = 0

    def change(self, by: int, now: int) -> None:
        """More or fewer places are taken from now on."""
        self.used += by
        self.busiest = max(self.busiest, self.used)
        is_full = self.size is not None and self.used >= self.size
        if is_full and self.full_since is None:
            self.full_since = now
        elif not is_full and self.full_since is not None:
            self.end(now)

    def end(self, now: int) -> None:
        """It is no longer full, or the simulation ends."""
        if self.full_since is None:
            return
        lasted = now - self.full_since
        self.full_ms += lasted
        if lasted > self.longest_ms:
            self.longest_ms, self.longest_at = lasted, self.full_since
        self.full_since = None


class Refusal:
    """Starts of a job that its kind refused for one reason."""

    __slots__ = ("at", "detail", "times")

    def __init__(self, at: int, detail: str | None) -> None:
        self.at = at
        self.detail = detail
        self.times = 0


class Recorder:
    """Listens to the engine's transactions."""

    def __init__(
        self,
        ends: int,
        history_of: Callable[[JobDef], History],
        on_run: OnRun,
        most_runs: int | None = None,
        max_running: int | None = None,
    ) -> None:
        self._ends = ends
        self._most_runs = most_runs
        self._max_running = max_running
        self.is_full = asyncio.Event()  # as many runs as were asked for have ended
        self._history_of = history_of
        self._on_run = on_run
        self.jobs: dict[str, SimulatedTally] = {}
        self.lanes: dict[str, LaneTally] = {}
        self.asking: dict[str, int] = {}  # when a job first asked for approval
        self.refusals: dict[tuple[str, str], Refusal] = {}
        self.seconds: Counter[int] = Counter()
        self.herds = 0
        self.cost = 0.0
        self.variance = 0.0
        self.runs = 0
        self._held: dict[int, tuple[str, ...]] = {}  # by run in progress, its lanes
        self._open: dict[int, tuple[JobDef, RunRow]] = {}

    def claimed(self, tx: Transaction, job: JobDef, run: RunRow) -> None:
        """A run starts."""
        lanes = tuple(json.loads(run.lanes)) if run.lanes is not None else ()
        if question_before(job.name, job.options, tx.runs.given(run.id).approval) is not None:
            self.asking.setdefault(job.name, tx.now)
            lanes = ()  # it waits for the answer, and holds none meanwhile
        for lane in lanes:
            if lane not in self.lanes:
                self.lanes[lane] = LaneTally(self._size(tx, lane))
            self.lanes[lane].change(1, tx.now)
        self._held[run.id] = lanes
        self._open[run.id] = (job, run)
        if run.reason in BY_TIME:
            tally = self.tally_of(job)
            tally.slot_runs, tally.slot_run_at = tally.slot_runs + 1, tx.now
        if run.reason == "schedule":
            self._count_second(run.due_at // 1000)

    def ended(self, tx: Transaction, job: JobDef, run: RunRow, result: Result) -> None:
        """A run ends, or a start that waited is given up."""
        for lane in self._held.pop(run.id, ()):
            self.lanes[lane].change(-1, tx.now)
        self._open.pop(run.id, None)
        if run.started_at is None:
            return
        self._emit(job, run, tx.now, result.outcome)
        if result.usage is not None:
            self.cost += json.loads(result.usage).get("cost", 0.0)
            self.variance += self._history_of(job).variance
        took = tx.now - run.started_at
        trigger = trigger_of(job.trigger)
        if run.slot is not None and took > (trigger.min_gap_ms() or took):
            period = trigger.period_at(run.slot)
            if period is not None and took > period and not trigger.relative:
                tally = self.tally_of(job)
                tally.outlasted += 1
                tally.outlasted_at = run.slot if tally.outlasted_at is None else tally.outlasted_at

    def refused(self, tx: Transaction, job: JobDef, refused: Refused) -> None:
        """A kind does not admit a start."""
        if not refused.reason:
            return
        known = self.refusals.setdefault((job.name, refused.reason), Refusal(tx.now, refused.detail))
        known.times += 1

    def lost(self, now: int) -> None:
        """The process ends without a word: nothing holds a lane any more."""
        for lanes in self._held.values():
            for lane in lanes:
                self.lanes[lane].change(-1, now)
        self._held.clear()

    def finish(self, now: int) -> None:
        """The simulation ends: what still runs has no outcome."""
        for job, run in self._open.values():
            self._emit(job, run, None, None)
        for lane in self.lanes.values():
            lane.end(now)

    def tally_of(self, job: JobDef) -> SimulatedTally:
        """What became of a job so far."""
        tally = self.jobs.get(job.name)
        if tally is None:
            tally = self.jobs[job.name] = SimulatedTally()
        return tally

    def _size(self, tx: Transaction, lane: str) -> int | None:
        return self._max_running if lane == GLOBAL_LANE else tx.lanes.loads([lane])[lane].size

    def _emit(self, job: JobDef, run: RunRow, ended_at: int | None, outcome: str | None) -> None:
        if run.started_at is None or run.started_at >= self._ends:
            return
        waited = max(0, run.started_at - run.due_at)
        tally = self.tally_of(job)
        tally.runs += 1
        tally.longest_wait_ms = max(tally.longest_wait_ms, waited)
        self.runs += 1
        if self.runs == self._most_runs:
            self.is_full.set()
        self._on_run(SimulatedRun(job.name, run.slot, run.started_at, ended_at, waited, outcome, run.reason))

    def _count_second(self, second: int) -> None:
        self.seconds[second] += 1
        if self.seconds[second] == HERD:
            self.herds += 1
        if len(self.seconds) > KEPT_SECONDS:
            kept = self.seconds.most_common(10)
            recent = sorted(self.seconds)[-KEPT_SECONDS // 2 :]
            self.seconds = Counter({**dict(kept), **{one: self.seconds[one] for one in recent}})
