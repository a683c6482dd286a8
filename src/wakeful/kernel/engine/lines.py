"""Lines: who gets a place in a lane when several want one.

Each lane has one line: the jobs that are parked on it, and those that reserve a place in it while they wait for another
lane. The highest priority goes first, then who has waited longest. A place goes to a job only if nobody before it in
the line is to have that place: a job that became due just now does not take it, also when the first of the line may not
start after all.

A job that needs several lanes passes them in one order: the lane whose runs take longest first. It is parked on the
first without room for it, and reserves those before: so none stands idle for longer than a run takes in another that is
quicker. A reservation takes no place and binds only those behind it in the line; and nobody while higher priorities
keep its job from the lane where it is parked, which may be for ever. So the first of all that wait is never held up by
another that waits: nobody waits in a ring, and everybody gets a turn.

A lane is as wide as the smallest size any of its jobs gives, from the moment that job is stored. Jobs without lanes pay
nothing here. Sizes are written last in a transaction that locks jobs: no transaction waits for a job while it holds the
lanes. Jobs that waited for a node that can run them, or for a place that others had reserved, are put back here, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import UNSERVED, close_alerts
from wakeful.kernel.rules.option_reading import RESERVED_LANES
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.parking import GLOBAL_LANE, HOLD, SUSPECT_LANE
from wakeful.store.interface import Transaction
from wakeful.store.lanes import Waiter
from wakeful.store.records import JobDef, JobState, RunRow

PATIENCE = 100  # times what runs usually take in the slowest lane that a job needs
UNKNOWN = 64  # bits: a lane in which no run has ended yet is taken for the slowest of all


def turn_of(state: JobState) -> Waiter:
    """The job's place in every line it stands in."""
    since = state.ready_at if state.ready_at is not None else state.due_at
    return Waiter(-state.priority, since or 0, state.job_id)


def by_turn(pair: tuple[JobDef, JobState]) -> tuple[int, int, int, int]:
    """The order in which due jobs are looked at: of those that became due together, the longest idle one goes first."""
    precedence, since, job_id, _ = turn_of(pair[1])
    return precedence, since, pair[1].last_run_at or 0, job_id


class _Lane(NamedTuple):
    capacity: int
    used: int
    contested: bool  # whether anybody waits for it, or reserves a place in it, according to the store
    length: int | None  # how long its runs usually take


class Lines:
    """The lanes that the starts of one transaction want, and their lines."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._lanes: dict[str, _Lane] = {}
        self._taken: Counter[str] = Counter()
        self._stored: dict[str, list[Waiter]] = {}  # the first of a line, according to the store
        self._joined: dict[str, dict[int, Waiter]] = {}  # who joined it in this transaction
        self._left: set[int] = set()  # jobs that the store still shows in lines, and that are out of them
        self._reserved: dict[int, Sequence[str]] = {}

    def load(self, wanted: Mapping[str, int]) -> None:
        """Read how full these lanes are. Where jobs give different sizes, the smallest counts."""
        unknown = [lane for lane in wanted if lane not in self._lanes]
        for lane, load in (self._tx.lanes.loads(unknown) if unknown else {}).items():
            size = wanted[lane] if load.size is None else min(load.size, wanted[lane])
            self._lanes[lane] = _Lane(size, load.used, load.contested, load.length)
        for lane, size in wanted.items():
            if size < self._lanes[lane].capacity:
                self._lanes[lane] = self._lanes[lane]._replace(capacity=size)

    def in_order(self, lanes: Iterable[str], waits_since: int | None) -> list[str]:
        """Lanes that were loaded, in the order in which a job passes them.

        Suspects wait for each other before they reserve anything. The place among all that run comes last: it would
        stand idle for as long as another lane is full. A job that has waited for very long goes by name alone, because
        what runs usually take may change faster than it gets ahead.
        """
        waited = self._tx.now - waits_since if waits_since is not None else 0
        usual = [self._lanes[lane].length or 0 for lane in lanes]
        by_name = waited > PATIENCE * max(usual, default=0) > 0

        def rank(lane: str) -> tuple[bool, bool, int, str]:
            length = self._lanes[lane].length
            longest_first = 0 if by_name else -UNKNOWN if length is None else -length.bit_length()
            return (lane == GLOBAL_LANE, lane != SUSPECT_LANE, longest_first, lane)

        return sorted(lanes, key=rank)

    def has_room(self, lane: str, turn: Waiter) -> bool:
        """Whether a place is free and nobody who goes before this job is to have it."""
        free = self.free(lane)
        return free > 0 and (free > self._most_waiting(lane) or free > self._before(lane, turn, free))

    def free(self, lane: str) -> int:
        """How many places nobody has taken."""
        return self._lanes[lane].capacity - self._lanes[lane].used - self._taken[lane]

    def capacity(self, lane: str) -> int:
        return self._lanes[lane].capacity

    def take(self, job_id: int, lanes: Iterable[str]) -> None:
        """The job starts, and holds these lanes from here on."""
        self._taken.update(lanes)
        self._left.add(job_id)

    def wait(self, turn: Waiter, lane: str, before: Sequence[str]) -> None:
        """The job is parked on that lane, and reserves a place in those that it passed before."""
        for each in (lane, *before):
            self._joined.setdefault(each, {})[turn.job_id] = turn
        self._left.discard(turn.job_id)

    def leave(self, job_id: int) -> None:
        """The job neither starts nor waits for a lane: what it was to have is for those behind it."""
        self._left.add(job_id)
        self._stored.clear()  # further ones count as the first of their lines now

    def reserve(self, job_id: int, lanes: Sequence[str]) -> None:
        """Put on record what the job reserves, and that it reserves nothing else."""
        self._reserved[job_id] = lanes

    def write(self) -> None:
        """Store what was taken and reserved, and offer what is free to the jobs that wait; after their states."""
        self._tx.lanes.add(self._taken)
        self._tx.lanes.reserve(self._reserved)
        for lane, known in self._lanes.items():
            free = self.free(lane)
            if free > 0 and (known.contested or lane in self._joined):
                first = self._tx.lanes.waiters(lane, self._tx.now, free)
                self._tx.jobs.requeue_parked(lane, self._tx.now, sum(waiter.parked for waiter in first))

    def _most_waiting(self, lane: str) -> float:
        """A bound on the line's length that costs nothing to know."""
        return float("inf") if self._lanes[lane].contested else len(self._joined.get(lane, ()))

    def _before(self, lane: str, turn: Waiter, most: int) -> int:
        """How many others in the line go before that job; `most`: counted so far."""
        if self._lanes[lane].contested and lane not in self._stored:
            self._stored[lane] = self._tx.lanes.waiters(lane, self._tx.now, most + len(self._left) + 1)
        joined = self._joined.get(lane, {})
        others = {waiter.job_id: waiter for waiter in self._stored.get(lane, ())} | joined
        gone = self._left - joined.keys()
        return sum(waiter[:3] < turn[:3] for waiter in others.values() if waiter.job_id not in {turn.job_id, *gone})


FACT = "lane_sizes"  # remembered once the sizes of all jobs are on record
BATCH = 1_000


def enter_lanes(tx: Transaction, jobs: Sequence[JobDef]) -> None:
    """These jobs are new in their lanes."""
    wanted = {job.id: dict(lanes) for job in jobs if (lanes := from_text(job.options).lanes)}
    if wanted:
        tx.lanes.enter({job_id: _bounded(lanes) for job_id, lanes in wanted.items()})


def leave_lanes(tx: Transaction, job_ids: Sequence[int], instead: Sequence[JobDef] = ()) -> None:
    """These jobs leave their lanes for those in their new definitions; who waited for a wider lane is requeued."""
    wider = tx.lanes.leave(job_ids) if job_ids else {}
    enter_lanes(tx, instead)
    for lane, free in sorted(wider.items()):
        tx.jobs.requeue_parked(lane, tx.now, free)


def size_all(tx: Transaction) -> None:
    """Put the sizes on record of jobs that were stored before sizes were: once, at the first start after that."""
    if tx.facts.of([FACT]):
        return
    cursor = 0
    while found := tx.jobs.laned(cursor, BATCH):
        cursor = found[-1].id
        tx.lanes.leave([job.id for job in found])
        enter_lanes(tx, found)
    tx.facts.put({FACT: 1})


def _bounded(lanes: dict[str, int]) -> dict[str, int]:
    return {lane: size for lane, size in lanes.items() if lane not in RESERVED_LANES}


class Claimed(NamedTuple):
    """A run that is on record as active and must now be started."""

    job: JobDef
    state: JobState
    run: RunRow
    payload: str
    approval: str | None = None  # what was asked and approved before this attempt

    def event(self) -> dict[str, object]:
        """What is emitted when it starts."""
        job, run = self.job, self.run
        return {"type": "started", "run": run.id, "job_id": job.id, "job": job.name, "reason": run.reason}


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
