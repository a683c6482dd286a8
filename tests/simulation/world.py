"""One simulated world: a store, a node that dies and comes back, people who meddle, and a clock that jumps.

Everything random comes from one seed, so a failing world can be lived through again, step by step.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from tests.simulation.accounts import check_slots, check_sums
from tests.simulation.consequences import Consequences
from tests.simulation.deaf import Deaf
from tests.simulation.faulty_store import Faults, FaultyStore
from tests.simulation.hooks import Hooks
from tests.simulation.invariants import Broken, check, check_places, see_live
from tests.simulation.liveness import Liveness
from tests.simulation.order import Order
from tests.simulation.people import LANES, People
from tests.simulation.verdicts import check_verdict
from wakeful import (
    Defer,
    NewJob,
    Noop,
    Once,
    Retention,
    Run,
    Scheduler,
    SchedulerError,
    Skip,
    TransientError,
    Wait,
    ids,
)
from wakeful.ids import run_text
from wakeful.store.interface import Transaction
from wakeful.store.sqlite_session import SqliteSession
from wakeful.testing import VirtualLoop
from wakeful.triggers.moments import to_ms

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - only faster; any directory will do
FOR_EVER = 100_000
CROWDED = 10_000  # from this seed on, jobs come in crowds and have priorities, and turns may be small
PICKY = 20_000  # from this seed on, kinds refuse some starts
EDITS = ("_resume", "_edit", "_pause", "_remove", "_add", "_cancel", "_retry")  # what people do to jobs
SLACK_MS = 61_000  # a step goes unnoticed for as long as the loop sleeps


class World(People):
    """A seed and what became of it."""

    follows_merges = False  # whether each slot that is merged is followed to its run

    loop: type[VirtualLoop] = VirtualLoop  # what its time passes on
    zone = "UTC"  # of what names none
    kinds = (*People.kinds, ("deaf", 8))
    laters: tuple[int, ...] = (5, 900)  # for how many seconds runs are deferred, or wait
    labels: tuple[str, ...] = ("gpu", "eu", "[1]")  # what nodes may have and jobs may ask for

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed)
        self.path = folder / f"world-{seed}.db"
        self.faults = Faults(self.rng)
        self.faults.on_death = self._died
        self.days = self.rng.choice((7, FOR_EVER))
        self.history = self.rng.choice((3, 20))  # runs kept of a job
        self.slots: set[tuple[str, datetime]] = set()  # every slot a first attempt was made at
        self.patience: dict[str, int] = {}  # until when, by boot time, each waiting run may be reported
        self.started: dict[str, int] = {}
        self.deaf = Deaf(self.rng)
        self.carried: list[str] = []  # the labels of the node that lives
        self.violations: list[str] = []  # seen inside handlers, where an exception would only fail the run
        self.prioritizes = seed >= CROWDED
        self.order = Order(self.ranks.choice((1, 2, 3, 256)) if seed >= CROWDED else 256, self.violations.append)
        self.hooks = Hooks(random.Random(f"hooks {seed}") if seed >= PICKY else None)
        self.liveness = Liveness(self._is_begun)
        self.consequences = Consequences(
            self.cancelled, self._watch, self.violations.append, merges=self.follows_merges
        )
        self.faults.on_commit = self.consequences.see_ended
        self._begun_of: Counter[int] = Counter()  # how many runs of a job the schedule started for a slot
        self._by_hand: set[str] = set()  # runs that a person started, and those that recover them
        self._lives = 0  # how often a node began to run
        self._action = ""
        self._stepped = -SLACK_MS
        self._dead = asyncio.Event()
        self._store: FaultyStore | None = None
        self._eye: sqlite3.Connection | None = None

    # -- the course of things ------------------------------------------------------------------------------------------

    async def live(self, steps: int) -> None:
        """Live through `steps` things that happen, then let the faults stop and see everything settle."""
        ours = {asyncio.current_task()}
        await self._birth()
        for _ in range(steps):
            await self._step()
            if self._dead.is_set():
                await self._rebirth(ours)
            self._look()
        self.faults.crash_rate = self.faults.full_rate = 0.0
        for _ in range(40):  # a job that kills its process is found and stopped within a few crashes
            await self._settle_down(ours)
            if not self._dead.is_set():
                break
        self._look()
        check_slots(self._ledger(), self._begun())
        await see_live(self._watch(), self.clock)
        await self._bounded(self._end())

    async def _settle_down(self, ours: set[asyncio.Task[object] | None]) -> None:
        if self._dead.is_set():
            await self._rebirth(ours)
        await self.clock.sleep("70m")

    #: How often each thing happens beside the others.
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 30, "_add": 12, "_pause": 4, "_resume": 5, "_edit": 4, "_remove": 2, "_run_now": 8, "_cancel": 4,
        "_retry": 3, "_complete": 4, "_kill": 4, "_restart": 3, "_step_clock": 2, "_trouble": 2,
    }  # fmt: skip

    async def _step(self) -> None:
        name = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
        action = getattr(self, name)
        self._note(action.__name__)
        self._action = name
        with contextlib.suppress(SchedulerError):  # refusals are part of life; what they leave behind is checked
            await self._bounded(action())

    async def _bounded(self, work: object) -> None:
        """Wait for it, unless the node dies first."""
        task = asyncio.ensure_future(work)  # type: ignore[arg-type]
        death = asyncio.ensure_future(self._dead.wait())
        try:
            await asyncio.wait({task, death}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            death.cancel()
        if task.done():
            task.result()
        else:
            task.cancel()

    # -- life and death ------------------------------------------------------------------------------------------------

    async def _birth(self) -> None:
        self._dead.clear()
        self._lives += 1
        self.carried = [label for label in self.labels if self.rng.random() < 0.6]
        while True:
            store = FaultyStore(f"sqlite:///{self.path}", self.clock, self.faults, self.order)
            scheduler = Scheduler(
                store,
                clock=self.clock,
                node=f"node-{self.deaths}",
                seed=self.rng.getrandbits(32),
                timezone=self.zone,
                labels=self.carried,
                kinds=self.hooks.kinds(kind for kind, _ in self.kinds),
                retention=Retention(days=self.days, runs_per_job=self.history, check_every=self.history),
            )
            for kind in ("good", "slow", "flaky", "crasher", "chatty", "deaf"):
                scheduler.on_job_due(kind, self._handler(kind))
            if self.rng.random() < 0.9:
                scheduler.on_job_due("rare", self._handler("good"))
            self._store, self._scheduler = store, scheduler
            calm, self.faults.full_rate = self.faults.full_rate, 0.0
            await scheduler.open()
            await self._furnish(scheduler)
            await self._bounded(scheduler.start())
            self.faults.full_rate = calm
            if not self._dead.is_set():
                return
            store.discard()
            self._dead.clear()

    async def _furnish(self, scheduler: Scheduler) -> None:
        """What else a node of this world has before it starts."""

    async def _rebirth(self, ours: set[asyncio.Task[object] | None]) -> None:
        """The process is gone: its tasks with it; after a while it is started again."""
        store = self._store
        assert store is not None
        self.deaf = Deaf(self.rng)  # nothing outlives its process
        for task in asyncio.all_tasks() - ours:
            task.cancel()
        await asyncio.sleep(0)
        store.discard()
        self._look()
        if self.rng.random() < 0.3:
            await asyncio.sleep(self.rng.choice((60, 3600, 86_400, 7 * 86_400)))
        await self._birth()

    def _died(self, where: str) -> None:
        self.deaths += 1
        self._note(f"died {where}")
        if self.clock.boot() - self._stepped < SLACK_MS:
            self.patience.clear()  # a step that died with the process looks like downtime to the next one
        self._dead.set()

    async def _end(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.stop(wait_for_jobs=False)
        await self._scheduler.close()

    async def _kill(self) -> None:
        assert self._store is not None
        self._store.die("killed")

    async def _restart(self) -> None:
        assert self._scheduler is not None
        with contextlib.suppress(SchedulerError):
            await self._scheduler.stop(wait_for_jobs=self.rng.random() < 0.5, timeout=self.rng.choice((0.5, 30)))
        self._lives += 1
        while not self._scheduler.is_running():
            with contextlib.suppress(SchedulerError):  # a full disk: try again, as an operator would
                await self._scheduler.start()

    async def _trouble(self) -> None:
        self.faults.full_rate = self.rng.choice((0.0, 0.2))
        self.faults.crash_rate = self.rng.choice((0.0, 0.01, 0.05))

    # -- time ----------------------------------------------------------------------------------------------------------

    async def _pass_time(self) -> None:
        await asyncio.sleep(self.rng.choice((0.01, 1, 15, 60, 60, 600, 600, 3600)))

    async def _step_clock(self) -> None:
        minutes = self.rng.choice((-14_400, -4320, -1440, -60, -5, -1, 1, 5, 60, 1440, 4320, 14_400))
        self._note(f"clock {minutes:+} min")
        self.clock.step(timedelta(minutes=minutes))
        self._stepped = self.clock.boot()

    # -- people --------------------------------------------------------------------------------------------------------

    async def _add(self) -> None:
        await super()._add()
        if self.prioritizes and self.ranks.random() < 0.3:
            await self._add_crowd()

    async def _add_crowd(self) -> None:
        """Jobs that all want to start at once: more than a turn takes, or than their lane holds."""
        assert self._scheduler is not None
        moment = Once(
            datetime.fromtimestamp(self.clock.now() / 1000, UTC) + timedelta(seconds=self.ranks.choice((0, 9)))
        )
        lane = self.ranks.choice(({}, {"press": LANES["press"]}))
        names = [f"job-{self._names + number}" for number in range(self.ranks.randrange(3, 8))]
        self._names += len(names)
        await self._scheduler.add_jobs(
            [
                NewJob(
                    name, moment, kind="good", payload={}, lanes=lane, priority=self.ranks.choice((-100, 0, 0, 1, 100))
                )
                for name in names
            ]
        )
        self.acknowledged.update(names)

    def _needs(self) -> dict[str, object]:
        asked = [label for label in self.labels if self.rng.random() < 0.15]
        return {"labels": asked} if asked else {}

    # -- handlers ------------------------------------------------------------------------------------------------------

    def _handler(self, kind: str) -> Callable[[Run], object]:
        async def handle(found: Run) -> object:
            self._started(found)
            rng = self.rng
            await asyncio.sleep(rng.choice((0, 0, 0.05, 2)))
            if kind == "slow":
                await asyncio.sleep(rng.choice((20, 200, 4000)))
            elif kind == "deaf":
                await self.deaf.sleep(found._row.id, rng.choice((1, 200, 4000)))
            elif kind == "flaky":
                raise rng.choice((ValueError("no"), TransientError("later"), KeyError("x")))
            elif kind == "crasher":
                assert self._store is not None
                self._store.die("by its handler")
                await asyncio.sleep(10**9)
            elif kind == "chatty":
                seconds = rng.choice(self.laters)
                later = datetime.fromtimestamp(self.clock.now() / 1000, UTC) + timedelta(seconds=seconds)
                self.patience[found.id] = self.clock.boot() + seconds * 1000
                return rng.choice((Skip("why"), Noop("none"), Defer(later), Wait(later), {"deep": [1, None]}, object()))
            return {"attempt": found.attempt}

        return handle

    def _started(self, found: Run) -> None:
        """On record before it is acted upon, never early, never twice."""
        self.starts += 1
        self._note(f"start {found.id} {found.job} {found.reason} {found.attempt}")
        if found.id in self.started:
            self.violations.append(f"{found.id} was started twice")
        self.started[found.id] = self.clock.now()
        sql = "SELECT status, outcome FROM runs WHERE id = ?"
        row = self._watch().execute(sql, (found._row.id,)).fetchone()
        if row is None or row[0] not in ("active", "done"):
            self.violations.append(f"H12: {found.id} was started before it was on record")
        if to_ms(found.due_at) > found._row.started_at:
            self.violations.append(f"{found.id} was started early")
        self._started_slot(found)
        if found.reason == "manual" or (found.reason == "recovery" and found.retry_of in self._by_hand):
            self._by_hand.add(found.id)
        elif found.slot is not None:
            self._begun_of[found._row.job_id] += 1
        if not set(self.carried).issuperset(found.payload.get("labels", ())):
            self.violations.append(f"X13: {found.id} was started without the labels it needs")

    def _started_slot(self, found: Run) -> None:
        """A slot is begun once, however little history is kept; a further attempt is not made beside a newer slot."""
        if found.slot is not None and found.attempt == 1 and found.reason != "manual":
            if (found.job_id, found.slot) in self.slots:
                self.violations.append(f"H2: {found.job} ran the slot {found.slot} twice")
            self.slots.add((found.job_id, found.slot))
        if found.reason == "retry" and found.slot is not None:
            state = self._watch().execute(
                "SELECT s.next_at, p.outcome FROM job_state s JOIN runs p ON p.id = ? WHERE s.job_id = ?",
                (found._row.retry_of, found._row.job_id),
            )
            next_at, before = state.fetchone()
            if next_at is not None and next_at <= found._row.started_at and before != "deferred":
                self.violations.append(f"X9: {found.id} was tried again though a new slot had come")

    # -- looking -------------------------------------------------------------------------------------------------------

    def _watch(self) -> sqlite3.Connection:
        if self._eye is None:
            self._eye = sqlite3.connect(self.path)
            self._eye.row_factory = sqlite3.Row
        return self._eye

    def _ledger(self) -> Transaction:
        """The store as a reader sees it now."""
        return Transaction(SqliteSession(self._watch()), self.clock.now())

    def _is_begun(self, job_id: int, slot: int) -> bool:
        """Whether a slot of a job was given to a handler."""
        return (ids.encode("job", job_id), datetime.fromtimestamp(slot / 1000, UTC)) in self.slots

    def _begun(self) -> list[tuple[int, int]]:
        """Every slot that was given to a handler."""
        return [(ids.decode(job_id)[1], to_ms(slot)) for job_id, slot in self.slots]  # type: ignore[index]

    def _look(self) -> None:
        if self.violations:
            raise Broken(self.violations[0])
        check(self._watch(), LANES)
        check_sums(self._ledger())
        check_verdict(self._ledger(), self._watch())
        self.hooks.check(self._watch())
        self.consequences.check(self._begun_of, edited=self._action in EDITS)
        life = (self._lives, self.deaths, self.clock.now() - self.clock.boot())
        self.liveness.check(self._watch(), self.clock.now(), life)
        self._look_at_waiting()
        check_places(self._watch(), self.carried)
        self.deaf.check(self._watch(), asyncio.get_running_loop().time())
        names = {row[0] for row in self._watch().execute("SELECT name FROM jobs")}
        lost = self.acknowledged - names
        if lost and self.days == FOR_EVER:
            raise Broken(f"H12: {sorted(lost)} were acknowledged and are gone")

    def _look_at_waiting(self) -> None:
        """No monitor's time to report is cut short, however the clock is set."""
        for number, finished in self._watch().execute(
            "SELECT r.id, r.finished_at FROM runs r JOIN run_details d ON d.run_id = r.id "
            "WHERE r.outcome = 'unknown' AND d.error LIKE 'no report of its end%'"
        ):
            left = self.patience.pop(run_text(number), 0) - self.clock.boot()
            if left > SLACK_MS:
                raise Broken(f"H2: {run_text(number)} was given up at {finished}, {left} ms too early")

    def close(self) -> None:
        if self._store is not None:
            self._store.discard()
        if self._eye is not None:
            self._eye.close()


def live(seed: int, steps: int = 60, kind: type[World] = World) -> World:
    """Live through one seed; raises Broken, with the seed and the last things that happened, if a promise breaks."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        world = kind(seed, Path(folder))
        try:
            with asyncio.Runner(loop_factory=lambda: kind.loop(world.clock)) as runner:
                runner.run(world.live(steps))
        except BaseException as error:
            recent = "\n  ".join(world.steps[-25:])
            error.add_note(f"seed {seed}: python -m tests.simulation --seed {seed}\n  {recent}")
            raise
        finally:
            world.close()
        return world
