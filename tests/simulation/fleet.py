"""A world of several nodes on one PostgreSQL database, each with clocks of its own, in virtual time.

Transactions of the nodes are interleaved by a seeded delay before each. Nodes freeze for longer than their lease and
thaw, die before or after a commit, lose the server and find it again, are drained and restarted; the database's clock
is set. What may never be seen meanwhile is in `watched.py`; when the faults stop, what is due settles.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.simulation.invariants import Broken, check_live
from tests.simulation.node import Node, NodeClock, NodeStore, on_behalf_of, own_tasks
from tests.simulation.watched import MAX_RUNNING, Watched
from tests.store.postgres_server import emptied_url
from wakeful import Defer, Noop, Retention, Run, Scheduler, SchedulerError, Skip, TransientError, Wait
from wakeful.testing import run

KINDS = ("good", "slow", "flaky", "crasher", "chatty", "rare")
FIRST_JOBS = 5
LOOK_S = 15  # news may get lost, so every node looks by itself; in life each second
LONGEST_RUN_MS = 200_000


class Fleet(Watched):
    """A seed and what became of it."""

    options = ""  # of the command that lives through it again
    grids = ("3s", "20s", "1m", "7m", "1h")
    intervals = ("15s", "1m", "5m")
    crons = ("* * * * *", "*/5 * * * *", "*/20 * * * * *", "0 * * * *")
    moments = (-60, 0, 5, 60)
    timeouts = ("30s", "2m")
    absences: tuple[float, ...] = (0.5, 10, 40, 120)  # seconds until somebody starts a dead node again

    def __init__(self, seed: int, nodes: int | None = None) -> None:
        self._url = emptied_url()
        super().__init__(seed, self._url)
        self.weather.on_announce = self._announced
        count = nodes if nodes is not None else self.rng.randrange(2, 5)
        self.nodes = [self._place(number) for number in range(count)]
        self.steps_the_clock = self.rng.random() < 0.25
        self._over = False

    def _place(self, number: int) -> Node:
        """The first can run everything; what the others can differs."""
        rare, label = number == 0 or self.rng.random() < 0.3, number == 0 or self.rng.random() < 0.5
        kinds = KINDS if rare else tuple(kind for kind in KINDS if kind != "rare")
        node = Node(f"node-{number}", NodeClock(self.clock, self.rng), kinds, ("gpu",) if label else ())
        node.on_death = self._died
        return node

    # -- the course of things ------------------------------------------------------------------------------------------

    async def live(self, steps: int) -> None:
        """Live through `steps` things that happen, then let the faults stop and see everything settle."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(own_tasks)
        await self._open_shell()
        for node in self.nodes:
            self._birth(node)
        for _ in range(FIRST_JOBS):
            with contextlib.suppress(SchedulerError):
                await self._add()
        looking = loop.create_task(self._look_by_themselves())
        for _ in range(steps):
            await self._step()
            self._look()
        await self._calm()
        looking.cancel()
        await self._look_at_ledger()
        self._over = True
        for node in self.nodes:
            assert node.scheduler is not None
            await on_behalf_of(node, node.scheduler.close())
        self._look()

    async def _look_at_ledger(self) -> None:
        """What was due on any node is accounted for."""
        ledger = await self._shell.get_ledger(since="3650d")
        for name, tally in ledger.jobs.items():
            if tally.unaccounted:
                raise Broken(f"X25: {tally.unaccounted} slots of {name} have no record: {tally}")

    async def _calm(self) -> None:
        """The faults stop; a job that kills its process is found and stopped within a few crashes."""
        loop = asyncio.get_running_loop()
        self.weather.crash_rate = self.weather.lost_rate = 0.0
        for node in self.nodes:
            node.frozen_until = node.away_until = loop.time()
        for _ in range(12):
            deaths = self.deaths
            await asyncio.sleep(60)
            for node in self.nodes:
                with contextlib.suppress(SchedulerError):
                    await self._shell.drain_node(node.name, drain=False)
            await asyncio.sleep(240)
            self._look()
            if self.deaths == deaths:
                break
        check_live(self.eye, self.clock.now(), LONGEST_RUN_MS)

    async def _step(self) -> None:
        actions: list[tuple[int, Callable[[], Any]]] = [
            (30, self._pass_time),
            (14, self._add),
            (3, self._pause),
            (4, self._resume),
            (3, self._edit),
            (2, self._remove),
            (8, self._run_now),
            (4, self._cancel),
            (3, self._retry),
            (4, self._complete),
            (4, self._kill),
            (5, self._freeze),
            (4, self._cut),
            (3, self._drain),
            (3, self._restart),
            (2, self._step_clock),
            (3, self._change_weather),
        ]
        action = self.rng.choices([a for _, a in actions], [weight for weight, _ in actions])[0]
        self._note(action.__name__)
        with contextlib.suppress(SchedulerError):  # refusals are part of life; what they leave behind is checked
            await action()

    async def _open_shell(self) -> None:
        """Somebody's command line, on a machine of its own: it never fails."""
        clock = NodeClock(self.clock, self.rng)
        store = NodeStore(self._url, self.clock, clock, self.weather)
        self._shell = self._scheduler = Scheduler(
            store, clock=clock, node="shell", seed=self.rng.getrandbits(32), timezone="UTC"
        )
        await self._shell.open()

    # -- life and death ------------------------------------------------------------------------------------------------

    def _birth(self, node: Node) -> None:
        store = NodeStore(self._url, self.clock, node.clock, self.weather)
        store.node = node
        node.store, node.started_at = store, None
        node.scheduler = Scheduler(
            store,
            clock=node.clock,
            node=node.name,
            seed=self.rng.getrandbits(32),
            timezone="UTC",
            max_running=MAX_RUNNING,
            labels=node.labels,
            retention=Retention(days=100_000, runs_per_job=20),
        )
        for kind in node.kinds:
            node.scheduler.on_job_due(kind, self._handler(node, kind))
        self._furnish(node)
        on_behalf_of(node, self._start(node))

    def _furnish(self, node: Node) -> None:
        """What else a node of this world has before it starts."""

    async def _start(self, node: Node) -> None:
        assert node.scheduler is not None
        while not node.scheduler.is_running():
            try:
                await node.scheduler.open()
                await node.scheduler.start()
            except SchedulerError:
                await asyncio.sleep(1)  # whoever watches over it tries again
        node.started_at = asyncio.get_running_loop().time()
        self._note(f"{node.name} is there")

    def _died(self, node: Node, where: str) -> None:
        loop = asyncio.get_running_loop()
        self.deaths += 1
        self._note(f"{node.name} died {where}")
        self.dead[node.id] = loop.time()
        loop.call_soon(self._take_over_runs, node)

    def _take_over_runs(self, node: Node) -> None:
        """The process is gone, and its tasks with it; after a while somebody starts it again."""
        loop = asyncio.get_running_loop()
        assert node.store is not None
        for task in list(node.tasks):
            task.cancel()
        node.tasks.clear()
        loop.call_later(0.001, node.store.discard)
        node.frozen_until = node.away_until = loop.time()
        loop.call_later(self.rng.choice(self.absences), self._birth, node)

    def _somebody(self) -> Node | None:
        living = [node for node in self.nodes if node.alive() and node.started_at is not None]
        return self.rng.choice(living) if living else None

    async def _kill(self) -> None:
        if (node := self._somebody()) is not None:
            node.die("killed")

    async def _freeze(self) -> None:
        if (node := self._somebody()) is not None:
            seconds = self.rng.choice((3, 12, 18, 24, 60))
            self._note(f"{node.name} freezes for {seconds} s")
            node.frozen_until = asyncio.get_running_loop().time() + seconds

    async def _cut(self) -> None:
        if (node := self._somebody()) is not None:
            seconds = self.rng.choice((2, 10, 17, 45))
            self._note(f"{node.name} cannot reach the database for {seconds} s")
            node.away_until = asyncio.get_running_loop().time() + seconds

    async def _drain(self) -> None:
        await self._shell.drain_node(self.rng.choice(self.nodes).name, drain=self.rng.random() < 0.5)

    async def _restart(self) -> None:
        if (node := self._somebody()) is not None:
            await asyncio.wait({on_behalf_of(node, self._stop_and_start(node))}, timeout=60)

    async def _stop_and_start(self, node: Node) -> None:
        assert node.scheduler is not None
        node.started_at = None
        with contextlib.suppress(SchedulerError):
            await node.scheduler.stop(wait_for_jobs=self.rng.random() < 0.5, timeout=self.rng.choice((0.5, 20)))
        self._note(f"{node.name} stopped")
        await self._start(node)

    async def _change_weather(self) -> None:
        self.weather.crash_rate = self.rng.choice((0.0, 0.0, 0.005, 0.02))
        self.weather.lost_rate = self.rng.choice((0.0, 0.0, 0.01, 0.05))
        self._bad_weather_until = asyncio.get_running_loop().time()

    # -- time ----------------------------------------------------------------------------------------------------------

    async def _pass_time(self) -> None:
        await asyncio.sleep(self.rng.choice((0.01, 0.5, 3, 3, 10, 10, 25, 60)))

    async def _step_clock(self) -> None:
        """Of a node: nobody may notice. Of the database, in some worlds: everybody does."""
        minutes = self.rng.choice((-1440, -5, -1, 1, 5, 1440))
        if self.steps_the_clock and self.rng.random() < 0.5:
            self._note(f"the database's clock is set by {minutes:+} min")
            self.clock.step(timedelta(minutes=minutes))
        elif (node := self._somebody()) is not None:
            node.clock.step(timedelta(minutes=minutes))

    # -- people --------------------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, object]:
        return {**super()._options(), "backoff": ["1s", "5s"], "max_errors": 3}

    def _needs(self) -> dict[str, object]:
        return {"labels": ["gpu"]} if self.rng.random() < 0.2 else {}

    # -- handlers ------------------------------------------------------------------------------------------------------

    def _handler(self, node: Node, kind: str) -> Callable[[Run], object]:
        async def rest(seconds: float) -> None:
            await asyncio.sleep(seconds)
            await node.thawed()

        async def handle(found: Run) -> object:
            await node.thawed()
            self._started(node, found)
            rng = self.rng
            await rest(rng.choice((0, 0, 0.05, 2)))
            if kind in ("slow", "rare"):
                await rest(rng.choice((5, 20, 50, 150)))
            elif kind == "flaky":
                raise rng.choice((ValueError("no"), TransientError("later"), KeyError("x")))
            elif kind == "crasher":
                node.die("by its handler")
                await asyncio.sleep(10**9)
            elif kind == "chatty":
                later = datetime.fromtimestamp(self.clock.now() / 1000, UTC) + timedelta(seconds=rng.choice((5, 90)))
                return rng.choice((Skip("why"), Noop("none"), Defer(later), Wait(later), {"deep": [1, None]}, object()))
            return {"attempt": found.attempt}

        return handle

    # -- news ----------------------------------------------------------------------------------------------------------

    def _announced(self, by: NodeStore) -> None:
        """The others hear of it a little later; now and then one does not."""
        for node in self.nodes:
            if node.store is not by and node.alive() and self.rng.random() < 0.95:
                asyncio.get_running_loop().call_later(self.rng.random() * 0.1, self._hear, node)

    @staticmethod
    def _hear(node: Node) -> None:
        if node.alive() and node.started_at is not None and node.store is not None:
            node.store._on_change()

    async def _look_by_themselves(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for node in self.nodes:
                self._hear(node)

    def close(self) -> None:
        for node in self.nodes:
            if node.store is not None:
                node.store.discard()
        if self._scheduler is not None and isinstance(self._scheduler._store, NodeStore):
            self._scheduler._store.discard()
        self.eye.close()


def live_together(seed: int, steps: int = 40, nodes: int | None = None, world: type[Fleet] = Fleet) -> Fleet:
    """Live through one seed; raises Broken, with the seed and the last things that happened, if a promise breaks."""
    fleet = world(seed, nodes)
    try:
        run(fleet.live(steps), fleet.clock)
    except BaseException as error:
        recent = "\n  ".join(fleet.steps[-25:])
        options = world.options + (f" --nodes {nodes}" if nodes is not None else "")
        again = f"python -m tests.simulation --store postgres{options} --seed {seed} --steps {steps}"
        error.add_note(f"{again}\n  {recent}")
        raise
    finally:
        fleet.close()
    return fleet
