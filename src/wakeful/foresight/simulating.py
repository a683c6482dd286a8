"""`simulate`: answer a question with the real engine in virtual time, on a snapshot."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import clock as clocks
from wakeful.errors import InvalidSetting
from wakeful.foresight.notes import Note, NotePeriod, notes_of
from wakeful.foresight.question import (
    NEXT_CHANGE,
    Setup,
    SimulationRequest,
    before_next_change,
    checked,
    faults_of,
    refuse_unknown,
)
from wakeful.foresight.recording import OnRun, Recorder
from wakeful.foresight.world import Prepare, World
from wakeful.kernel.views.ledger import Tally, ledger_of_all
from wakeful.triggers.moments import from_ms, iso
from wakeful.virtual_time import VirtualClock, VirtualLoop

if TYPE_CHECKING:
    from wakeful.foresight.history import History
    from wakeful.foresight.question import Faults
    from wakeful.foresight.snapshot import Snapshot
    from wakeful.store.records import JobDef

LATEST_MS = 7_258_118_400_000  # 2200-01-01T00:00:00Z
MOST_RUNS = 200_000  # what a list of runs holds at most
LIKELY = 1.645  # standard deviations to either side of the mean that hold nine of ten cases


SHORTEST_LOOK_S = 60
LOOKS = 500  # how often a simulation says how far it is

Watch = Callable[[float], bool]
"""Called now and then with the part that is done, from 0 to 1; False ends the simulation there."""


class SimulatedJob(NamedTuple):
    """What a job did in a simulation."""

    name: str
    runs: int
    skipped: dict[str, int]
    longest_wait_ms: int


class SimulatedLane(NamedTuple):
    """How full a lane was; `size` is None where nothing limits it."""

    name: str
    size: int | None
    busiest: int
    full_ms: int


class Cost(NamedTuple):
    """What the runs cost together, and what they cost at least and at most in nine of ten cases."""

    expected: float
    low: float
    high: float


class Simulation(NamedTuple):
    """The answer, without its runs, which are reported as they end."""

    begins: int
    ends: int
    seed: int
    total: int  # of its runs
    jobs: Sequence[SimulatedJob]
    lanes: Sequence[SimulatedLane]
    notes: Sequence[Note]
    cost: Cost
    truncated: bool = False  # it ended before its time

    def head(self) -> dict[str, Any]:
        """What is known before it begins."""
        return head(self.begins, self.ends, self.seed)

    def tail(self) -> dict[str, Any]:
        """What is known when it has ended."""
        return {
            "jobs": [one._asdict() for one in self.jobs],
            "lanes": [one._asdict() for one in self.lanes],
            "notes": [one.to_dict() for one in self.notes],
            "cost": self.cost._asdict(),
            "truncated": self.truncated,
        }


def head(begins: int, ends: int, seed: int) -> dict[str, Any]:
    """The first fields of the answer."""
    return {"from": iso(begins), "to": iso(ends), "seed": seed}


def span_of(snapshot: Snapshot, question: SimulationRequest, setup: Setup) -> tuple[int, int]:
    """From when to when a question is about."""
    begins = snapshot.at if question.begins is None else question.begins
    if not clocks.EARLIEST_MS <= begins <= LATEST_MS:
        raise InvalidSetting("A simulation begins between the years 2000 and 2200.")
    if NEXT_CHANGE in question.clock:
        begins = before_next_change(begins, setup.zone)
    return begins, begins + question.for_ms


def simulate(
    snapshot: Snapshot,
    question: SimulationRequest,
    setup: Setup,
    *,
    prepare: Prepare | None = None,
    on_run: OnRun = lambda _: None,
    watch: Watch = lambda _: True,
) -> Simulation:
    """What happens from the snapshot on. `prepare` changes the copy first, for example by applying a file to it.

    It opens nothing and starts nothing, and keeps its thread until it is done. `on_run` is called with every run when
    it ends. `watch` is told how far it is, and may end it early.
    """
    begins, ends = span_of(snapshot, checked(question), setup)
    clock = VirtualClock(from_ms(begins))

    def history_of(job: JobDef) -> History:
        return world.history_of(job.id)

    recorder = Recorder(ends, history_of, on_run, question.most_runs, setup.max_running)
    with _quiet(), _no_loop(), contextlib.closing(VirtualLoop(clock)) as loop:
        world = World(clock, snapshot, question, setup, recorder)
        try:
            asked = _Asked(begins, ends, question, setup, faults_of(question, begins, setup.zone), watch)
            return loop.run_until_complete(_live(world, recorder, asked, prepare))
        finally:
            _cancel_all(loop)


class _Asked(NamedTuple):
    begins: int
    ends: int
    question: SimulationRequest
    setup: Setup
    faults: Faults
    watch: Watch


async def _live(world: World, recorder: Recorder, asked: _Asked, prepare: Prepare | None) -> Simulation:
    begins, ends, question, setup, faults, watch = asked
    await world.furnish(prepare)
    jobs = await world.read(lambda tx: tx.slots.jobs(world.host.hidden_kinds))
    known = [*(placed.name for placed in jobs), *world.over]
    refuse_unknown(question, known)
    await world.start()
    for at, happens in _course(world, faults, ends):
        await _until(world.clock, at, recorder.is_full, lambda now: watch((now - begins) / (asked.ends - begins)))
        if recorder.is_full.is_set():
            ends = world.clock.now()
            break
        await happens()
    recorder.finish(ends)
    # Before anything is stopped: the slots of this very moment are not due yet.
    ledger = await world.read(lambda tx: ledger_of_all(tx, begins - 1, world.host.hidden_kinds))
    span = NotePeriod(begins, ends, setup.zone)
    notes = await world.read(lambda tx: notes_of(tx, recorder, jobs, span, ledger.jobs))
    over = [Note("never", name, begins, f"{name} never runs: by then, its last time is over.") for name in world.over]
    await world.crash()
    await world.close()
    names = sorted({*recorder.jobs, *known})
    return Simulation(
        begins,
        ends,
        question.seed,
        recorder.runs,
        [_job(recorder, name, ledger.jobs.get(name)) for name in names],
        [SimulatedLane(name, lane.size, lane.busiest, lane.full_ms) for name, lane in sorted(recorder.lanes.items())],
        [*over, *notes],
        cost_of(recorder.cost, recorder.variance),
        recorder.is_full.is_set(),
    )


Happening = Callable[[], Any]


def _course(world: World, faults: Faults, ends: int) -> Iterator[tuple[int, Happening]]:
    """What befalls the server, in order; each outage begins just before its time, so that nothing starts at it."""
    happenings: list[tuple[int, int, Happening]] = []
    for outage in faults.outages:
        happenings.append((outage.begins - 1, 0, world.crash))
        if outage.ends < ends:
            happenings.append((outage.ends, 1, world.start))
    happenings += [(step.at, 2, _setting(world.clock, step.by)) for step in faults.steps]
    yield from ((at, happens) for at, _, happens in sorted(happenings, key=lambda one: one[:2]))
    yield ends - 1, _nothing


def _setting(clock: Any, by: int) -> Happening:
    async def set_clock() -> None:
        clock.step(from_ms(by) - from_ms(0))

    return set_clock


async def _nothing() -> None:
    pass


async def _until(clock: Any, at: int, enough: asyncio.Event, goes_on: Callable[[int], bool]) -> None:
    """Let everything happen that happens before or at a moment, unless it is enough before."""
    step = clock.until(at) / LOOKS
    while (left := clock.until(at)) > 0 and not enough.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(left, max(step, SHORTEST_LOOK_S))):
                await enough.wait()
        if not goes_on(clock.now()):
            enough.set()
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        await loop.settle()


def _job(recorder: Recorder, name: str, tally: Tally | None) -> SimulatedJob:
    found = recorder.jobs.get(name)
    skipped = {} if tally is None else {**tally.passed_over, "merged": tally.merged, "missed": tally.missing}
    left_out = {reason: number for reason, number in sorted(skipped.items()) if number}
    return SimulatedJob(name, found.runs if found else 0, left_out, found.longest_wait_ms if found else 0)


def cost_of(expected: float, variance: float) -> Cost:
    """A sum of costs with where it lies in nine of ten cases."""
    spread = LIKELY * math.sqrt(variance)
    return Cost(round(expected, 6), round(max(0.0, expected - spread), 6), round(expected + spread, 6))


@contextlib.contextmanager
def _no_loop() -> Iterator[None]:
    """An event loop of this thread, such as one in virtual time, waits meanwhile."""
    outer = asyncio._get_running_loop()  # noqa: SLF001 - meant for those who bring a loop of their own
    asyncio._set_running_loop(None)  # noqa: SLF001
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)  # noqa: SLF001


def _cancel_all(loop: VirtualLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What the engine logs in this thread did not happen."""
    quiet = _Quiet()
    ours = [logging.getLogger(name) for name in ("wakeful", *logging.root.manager.loggerDict) if _is_ours(name)]
    # The handlers, too, for loggers that are made when modules are first imported meanwhile.
    handlers = {*logging.root.handlers, *(handler for log in ours for handler in log.handlers), logging.lastResort}
    filtered: list[logging.Filterer] = [*ours, *(handler for handler in handlers if handler is not None)]
    for one in filtered:
        one.addFilter(quiet)
    try:
        yield
    finally:
        for one in filtered:
            one.removeFilter(quiet)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == "wakeful"


class _Quiet(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        return threading.get_ident() != self._thread or not _is_ours(record.name)
