"""One simulated world: a store, a node that dies and comes back, people who meddle, and a clock that jumps.

Everything random comes from one seed, so a failing world can be lived through again, step by step.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import sqlite3
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.simulation.faulty_store import Faults, FaultyStore
from tests.simulation.invariants import Broken, check, check_live
from wakeful import (
    After,
    Cron,
    Defer,
    Every,
    Interval,
    Noop,
    Once,
    Retention,
    Run,
    Scheduler,
    SchedulerError,
    Skip,
    TransientError,
    Trigger,
    Wait,
)
from wakeful.testing import VirtualClock, run
from wakeful.triggers.moments import to_ms

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - only faster; any directory will do
LANES = {"press": 1, "oven": 2}
FOR_EVER = 100_000
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")


class World:
    """A seed and what became of it."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.path = folder / f"world-{seed}.db"
        self.clock = VirtualClock(datetime(2026, 3, 27, tzinfo=UTC) + timedelta(minutes=self.rng.randrange(20_000)))
        self.faults = Faults(self.rng)
        self.faults.on_death = self._died
        self.days = self.rng.choice((7, FOR_EVER))
        self.trace = hashlib.sha256()
        self.steps: list[str] = []
        self.acknowledged: set[str] = set()
        self.removed: set[str] = set()
        self.started: dict[str, int] = {}
        self.violations: list[str] = []  # seen inside handlers, where an exception would only fail the run
        self.deaths = 0
        self.starts = 0
        self._names = 0
        self._dead = asyncio.Event()
        self._scheduler: Scheduler | None = None
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
        check_live(self._watch(), self.clock.now())
        await self._bounded(self._end())

    async def _settle_down(self, ours: set[asyncio.Task[object] | None]) -> None:
        if self._dead.is_set():
            await self._rebirth(ours)
        await self.clock.sleep("70m")

    async def _step(self) -> None:
        actions: list[tuple[int, Callable[[], object]]] = [
            (30, self._pass_time),
            (12, self._add),
            (4, self._pause),
            (5, self._resume),
            (4, self._edit),
            (2, self._remove),
            (8, self._run_now),
            (4, self._cancel),
            (3, self._retry),
            (4, self._complete),
            (4, self._kill),
            (3, self._restart),
            (2, self._step_clock),
            (2, self._trouble),
        ]
        action = self.rng.choices([a for _, a in actions], [weight for weight, _ in actions])[0]
        self._note(action.__name__)
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
        while True:
            store = FaultyStore(f"sqlite:///{self.path}", self.clock, self.faults)
            scheduler = Scheduler(
                store,
                clock=self.clock,
                node=f"node-{self.deaths}",
                seed=self.rng.getrandbits(32),
                timezone="UTC",
                retention=Retention(days=self.days, runs_per_job=20),
            )
            for kind in ("good", "slow", "flaky", "crasher", "chatty"):
                scheduler.on_job_due(kind, self._handler(kind))
            if self.rng.random() < 0.9:
                scheduler.on_job_due("rare", self._handler("good"))
            self._store, self._scheduler = store, scheduler
            calm, self.faults.full_rate = self.faults.full_rate, 0.0
            await scheduler.open()
            await self._bounded(scheduler.start())
            self.faults.full_rate = calm
            if not self._dead.is_set():
                return
            store.bury()
            self._dead.clear()

    async def _rebirth(self, ours: set[asyncio.Task[object] | None]) -> None:
        """The process is gone: its tasks with it; after a while somebody starts it again."""
        store = self._store
        assert store is not None
        for task in asyncio.all_tasks() - ours:
            task.cancel()
        await asyncio.sleep(0)
        store.bury()
        self._look()
        if self.rng.random() < 0.3:
            await asyncio.sleep(self.rng.choice((60, 3600, 86_400, 7 * 86_400)))
        await self._birth()

    def _died(self, where: str) -> None:
        self.deaths += 1
        self._note(f"died {where}")
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
        minutes = self.rng.choice((-1440, -60, -5, -1, 1, 5, 60, 1440))
        self._note(f"clock {minutes:+} min")
        self.clock.step(timedelta(minutes=minutes))

    # -- people --------------------------------------------------------------------------------------------------------

    def _trigger(self) -> Trigger:
        rng = self.rng
        now = datetime.fromtimestamp(self.clock.now() / 1000, UTC)
        modifiers: dict[str, object] = {}
        if rng.random() < 0.2:
            modifiers["jitter"] = rng.choice((1, 10))
        if rng.random() < 0.1:
            modifiers["max_runs"] = rng.randrange(1, 6)
        kind = rng.randrange(5)
        if kind == 0:
            return Every(rng.choice(("3s", "1m", "7m", "1h", "1h", "6h")), **modifiers)  # type: ignore[arg-type]
        if kind == 1:
            return Interval(rng.choice(("15s", "5m", "20m", "2h")))
        if kind == 2:
            expression = rng.choice(
                ("* * * * *", "*/5 * * * *", "0 * * * *", "30 2 * * *", "*/20 * * * * *", "0 9 * * 1-5")
            )
            return Cron(expression, tz=rng.choice(ZONES), **modifiers)  # type: ignore[arg-type]
        if kind == 3:
            return Once(now + timedelta(seconds=rng.choice((-60, 0, 5, 300, 7200))))
        return After(f"job-{rng.randrange(max(1, self._names))}", on=rng.choice(("success", "failure", "any")))

    def _options(self) -> dict[str, object]:
        rng = self.rng
        options: dict[str, object] = {"timeout": rng.choice(("30s", "5m", "1h"))}
        if rng.random() < 0.3:
            lane = rng.choice(tuple(LANES))
            options["lanes"] = {lane: LANES[lane]} if rng.random() < 0.7 else dict(LANES)
        if rng.random() < 0.3:
            options["overlap"] = rng.choice(("skip", "queue", "cancel_other"))
        if rng.random() < 0.3:
            options["catch_up"] = rng.choice(("once", "skip", {"within": "2h"}))
        if rng.random() < 0.3:
            options["retry"] = rng.choice((1, 3, ["5s", "1m"]))
        if rng.random() < 0.2:
            options["on_crash"] = "skip"
        return options

    async def _add(self) -> None:
        assert self._scheduler is not None
        name = f"job-{self._names}"
        self._names += 1
        kind = self.rng.choices(("good", "slow", "flaky", "crasher", "chatty", "rare"), (30, 15, 15, 2, 10, 5))[0]
        await self._scheduler.add_job(name, self._trigger(), kind=kind, payload={"n": self._names}, **self._options())
        self.acknowledged.add(name)

    def _any(self) -> str:
        return f"job-{self.rng.randrange(max(1, self._names))}"

    async def _pause(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.pause_job(self._any(), note="for a while" if self.rng.random() < 0.5 else None)

    async def _resume(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.resume_job(self._any())

    async def _edit(self) -> None:
        assert self._scheduler is not None
        changes = self._options() if self.rng.random() < 0.5 else {"trigger": self._trigger()}
        await self._scheduler.update_job(self._any(), **changes)

    async def _remove(self) -> None:
        assert self._scheduler is not None
        name = self._any()
        self.removed.add(name)
        await self._scheduler.remove_job(name)

    async def _run_now(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.run_job(self._any())

    async def _some_run(self) -> str | None:
        assert self._scheduler is not None
        runs = await self._scheduler.get_run_log(limit=20)
        return self.rng.choice(runs).id if runs else None

    async def _cancel(self) -> None:
        assert self._scheduler is not None
        run_id = await self._some_run()
        if run_id is not None:
            await self._scheduler.cancel_run(run_id)

    async def _retry(self) -> None:
        assert self._scheduler is not None
        run_id = await self._some_run()
        if run_id is not None:
            await self._scheduler.retry_run(run_id)

    async def _complete(self) -> None:
        assert self._scheduler is not None
        for found in await self._scheduler.get_run_log(limit=30):
            if found.status == "waiting":
                await self._scheduler.complete_run(found.id, {"ok": True})
                return

    # -- handlers ------------------------------------------------------------------------------------------------------

    def _handler(self, kind: str) -> Callable[[Run], object]:
        async def handle(found: Run) -> object:
            self._started(found)
            rng = self.rng
            await asyncio.sleep(rng.choice((0, 0, 0.05, 2)))
            if kind == "slow":
                await asyncio.sleep(rng.choice((20, 200, 4000)))
            elif kind == "flaky":
                raise rng.choice((ValueError("no"), TransientError("later"), KeyError("x")))
            elif kind == "crasher":
                assert self._store is not None
                self._store.die("by its handler")
                await asyncio.sleep(10**9)
            elif kind == "chatty":
                later = datetime.fromtimestamp(self.clock.now() / 1000, UTC) + timedelta(seconds=rng.choice((5, 900)))
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
        row = (
            self._watch()
            .execute(
                "SELECT status, outcome FROM runs WHERE id = ?",
                (found._row.id,),
            )
            .fetchone()
        )
        if row is None or row[0] not in ("active", "done"):
            self.violations.append(f"H12: {found.id} was started before it was on record")
        if to_ms(found.due_at) > found._row.started_at:
            self.violations.append(f"{found.id} was started early")

    # -- looking -------------------------------------------------------------------------------------------------------

    def _watch(self) -> sqlite3.Connection:
        if self._eye is None:
            self._eye = sqlite3.connect(self.path)
        return self._eye

    def _look(self) -> None:
        if self.violations:
            raise Broken(self.violations[0])
        check(self._watch(), LANES)
        names = {row[0] for row in self._watch().execute("SELECT name FROM jobs")}
        lost = self.acknowledged - names
        if lost and self.days == FOR_EVER:
            raise Broken(f"H12: {sorted(lost)} were acknowledged and are gone")

    def _note(self, what: str) -> None:
        line = f"{self.clock.now()} {what}"
        self.steps.append(line)
        self.trace.update(line.encode())

    def close(self) -> None:
        if self._store is not None:
            self._store.bury()
        if self._eye is not None:
            self._eye.close()


def live(seed: int, steps: int = 60) -> World:
    """Live through one seed; raises Broken, with the seed and the last things that happened, if a promise breaks."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        world = World(seed, Path(folder))
        try:
            run(world.live(steps), world.clock)
        except BaseException as error:
            recent = "\n  ".join(world.steps[-25:])
            error.add_note(f"seed {seed}: python -m tests.simulation --seed {seed}\n  {recent}")
            raise
        finally:
            world.close()
        return world
