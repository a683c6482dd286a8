"""One node of a simulated fleet: its clocks, its handle on the shared database, and everything that can befall it."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from wakeful.errors import StoreUnreachable
from wakeful.store.postgres import PostgresStore
from wakeful.store.postgres_writer import PostgresWriter
from wakeful.testing import VirtualClock

if TYPE_CHECKING:
    import psycopg

    from wakeful import Scheduler
    from wakeful.store.interface import Transaction

T = TypeVar("T")

TIME_MS = 5_000  # how often a node asks the database what time it is, as its beat does in life

#: Whose code runs: every task belongs to the node that made it, and dies with it.
OWNER: contextvars.ContextVar[Node | None] = contextvars.ContextVar("OWNER", default=None)


class NodeClock(VirtualClock):
    """A machine's own clocks: time passes as everywhere, but they were set independently, at some other time."""

    def __init__(self, world: VirtualClock, rng: random.Random) -> None:
        super().__init__()
        self._world = world
        self._wall_us = rng.randrange(-600, 600) * 1_000_000
        self._since_boot_us = rng.randrange(10**12)

    def now(self) -> int:
        return self._world.now() + self._wall_us // 1000

    def boot(self) -> int:
        return self.boot_us() // 1000

    def boot_us(self) -> int:
        return self._world.boot_us() + self._since_boot_us

    def until(self, wall_ms: int) -> float:
        return self._world.until(wall_ms - self._wall_us // 1000)

    def step(self, delta: timedelta) -> None:
        self._wall_us += int(delta.total_seconds()) * 1_000_000


class Weather:
    """What goes wrong, how often, and who is notified; shared by all nodes of a world."""

    max_delay = 0.05  # seconds a request or a reply may take

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.crash_rate = 0.0
        self.lost_rate = 0.0  # of answers that never come, though the work is stored
        self.on_commit: Callable[[NodeStore], None] = lambda _: None
        self.on_announce: Callable[[NodeStore], None] = lambda _: None


class _Writer(PostgresWriter):
    """Remembers that it announced something, so that the world can carry the news at a time of its own choice."""

    announced = False
    _announces = False  # the transaction under way

    def _begin(self, connection: psycopg.Connection[Any]) -> str:
        self._announces = False
        return super()._begin(connection)

    def _notice(self) -> str:
        self._announces = True
        return super()._notice()

    def _end(self, connection: psycopg.Connection[Any], number: str) -> None:
        super()._end(connection, number)
        self.announced = self.announced or self._announces


class NodeStore(PostgresStore):
    """The handle of one incarnation; without a node (a command line) it never fails."""

    def __init__(self, url: str, database_clock: VirtualClock, clock: VirtualClock, weather: Weather) -> None:
        self._weather = weather
        self.node: Node | None = None
        self.dead = False
        self._asked_time_at = 0
        super().__init__(url, clock, inline=True, database_clock=database_clock)

    def _new_writer(self) -> PostgresWriter:
        writer = _Writer(self._address, self._clock, self._database_clock)
        writer.types = self._types
        return writer

    def discard(self) -> None:
        """What the operating system does when a process is gone."""
        self._open = False
        self._readers.shutdown()
        self._writer.close()
        for connection in self._idle_readers:
            connection.close()
        self._idle_readers.clear()

    async def write(self, work: Callable[[Transaction], T], *, not_before: int | None = None) -> T:
        await self._pause()
        self._perhaps_die("before commit")
        await self._pause()
        result = await super().write(work, not_before=not_before)
        self._ask_time()
        if isinstance(self._writer, _Writer) and self._writer.announced:
            self._writer.announced = False
            self._weather.on_announce(self)
        self._weather.on_commit(self)
        self._perhaps_die("after commit")
        await self._pause()
        if self.node is not None and self._weather.rng.random() < self._weather.lost_rate:
            raise StoreUnreachable("simulated: stored, and the answer was lost")
        return result

    async def read(self, work: Callable[[Transaction], T]) -> T:
        await self._pause()
        return await super().read(work)

    def _perhaps_die(self, where: str) -> None:
        if self.node is not None and self._weather.rng.random() < self._weather.crash_rate:
            self.node.die(where)

    def _ask_time(self) -> None:
        if self._shared is not None and self._shared.boot() - self._asked_time_at >= TIME_MS:
            self._asked_time_at = self._shared.boot()
            database_us = self._database_clock.now() * 1000 if self._database_clock is not None else 0
            self._shared.hear(self._shared.boot_us(), database_us, self._shared.boot_us())

    async def _pause(self) -> None:
        """Who comes first is decided here; a frozen node stays until it thaws, a dead one for ever."""
        await asyncio.sleep(self._weather.rng.random() * self._weather.max_delay)
        if self.node is None:
            return
        await self.node.thawed()
        if self.node.cut_off():
            raise StoreUnreachable("simulated: the server cannot be reached")


class Node:
    """A place where incarnations of a node live, one after the other."""

    def __init__(self, name: str, clock: NodeClock, kinds: tuple[str, ...], labels: tuple[str, ...]) -> None:
        self.name = name
        self.clock = clock
        self.kinds = kinds
        self.labels = labels
        self.store: NodeStore | None = None
        self.scheduler: Scheduler | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        self.started_at: float | None = None  # this and what follows: in seconds of the world
        self.frozen_until = 0.0
        self.away_until = 0.0
        self.on_death: Callable[[Node, str], None] = lambda _, __: None

    @property
    def id(self) -> int:
        """The id of its incarnation."""
        assert self.scheduler is not None
        return self.scheduler._engine.context.id

    def die(self, where: str) -> None:
        """Nothing this incarnation does from here on reaches the database, and it never hears a reply."""
        if self.store is not None and not self.store.dead:
            self.store.dead = True
            self.on_death(self, where)

    def alive(self) -> bool:
        return self.store is not None and not self.store.dead

    def well_since(self) -> float | None:
        """From when on it could do its part without a break; None when it cannot."""
        if not self.alive() or self.started_at is None:
            return None
        return max(self.started_at, self.frozen_until, self.away_until)

    def cut_off(self) -> bool:
        return asyncio.get_running_loop().time() < self.away_until

    async def thawed(self) -> None:
        """Go on only while this node does."""
        loop = asyncio.get_running_loop()
        while self.frozen_until > loop.time():  # noqa: ASYNC110 - it may freeze again, or thaw early
            await asyncio.sleep(min(1.0, self.frozen_until - loop.time()))
        if not self.alive():
            await asyncio.sleep(10**9)  # its tasks are cancelled long before


def own_tasks(loop: asyncio.AbstractEventLoop, coro: Any, context: contextvars.Context | None = None) -> Any:
    """A factory of tasks that notes whose they are."""
    owner = OWNER.get() if context is None else context.get(OWNER)
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, context=context)
    if owner is not None:
        owner.tasks.add(task)
        task.add_done_callback(owner.tasks.discard)
    return task


def on_behalf_of(node: Node, coro: Any) -> asyncio.Task[Any]:
    """Start a task that belongs to the node, as will all that it starts."""
    context = contextvars.copy_context()
    context.run(OWNER.set, node)
    return asyncio.get_running_loop().create_task(coro, context=context)
