"""What every part of the scheduler works with: the store, the clock, the handlers and the engine, wired once."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from wakeful import ids
from wakeful.clock import EARLIEST_MS, ManualClock, SystemClock
from wakeful.domains import domains
from wakeful.errors import SchedulerError, StartRefused, StoreGone, StoreUnusable
from wakeful.kernel.actions.drafts import NewJob, draft
from wakeful.kernel.cluster.nodes import Seen
from wakeful.kernel.context import OWN_RIGHTS, Context, Rights
from wakeful.kernel.hooks import Draft
from wakeful.kernel.kinds import Kind, Kinds
from wakeful.kernel.loop.config import EngineConfig, Retention, Tuning
from wakeful.kernel.rules.option_reading import read_labels
from wakeful.kernel.rules.options import read_options
from wakeful.kernel.rules.policy import MIN_INTERVAL_MS
from wakeful.kernel.views.bus import Bus
from wakeful.scheduler.host import Host
from wakeful.store import make_store
from wakeful.store.process_identity import Home, unique_name
from wakeful.triggers import system_zone, zone_name
from wakeful.triggers.durations import interval_ms
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.loop.loop import Engine
    from wakeful.kernel.views.explain import Viewpoint
    from wakeful.scheduler.server_side import ServerSide
    from wakeful.services import Service
    from wakeful.store.interface import Store, Transaction

T = TypeVar("T")


def refuse_unset(clock: Clock) -> None:
    """A clock before 2000 was never set: every slot computed from it would be wrong."""
    if clock.now() < EARLIEST_MS:
        message = f"The clock shows {iso(clock.now())}, a time before 2000: set it, then start again."
        raise SchedulerError(message)


class Write(Protocol):
    """Run `work` in one durable transaction and wake the engine; with `cancels` it looks for runs to end as well."""

    async def __call__(self, work: Callable[[Transaction], T], *, cancels: bool = False) -> T: ...


class MakeDraft(Protocol):
    """The job as it can be stored, with the scheduler's defaults, or others, for options that it leaves out."""

    def __call__(self, new: NewJob, source: str, job_defaults: Mapping[str, Any] | None = None) -> Draft: ...


class Wiring(NamedTuple):
    """The scheduler's parts, for the objects that work with them."""

    store: Store
    made_engine: Callable[[], Engine]
    identify: Callable[[], Context]
    min_interval: int | None
    write: Write
    draft: MakeDraft
    default_zone: Callable[[], str]
    seen: Callable[[], Seen]
    viewpoint: Callable[[], Viewpoint]
    is_running: Callable[[], bool]
    hidden_kinds: tuple[str, ...]  # those that listings and counts leave out unless requested
    admin_kinds: tuple[str, ...]  # those whose jobs only callers with full rights write over the network
    kinds_apart: tuple[str, ...]  # those whose jobs have owners that are not tokens

    @property
    def engine(self) -> Engine:
        """What runs the jobs."""
        return self.made_engine()


class Core:
    """The wiring. Every change goes through `_write`, so that a running engine looks at it at once."""

    def __init__(
        self,
        url: str | Store,
        *,
        clock: Clock | None = None,
        node: str | None = None,
        timezone: str | None = None,
        max_running: int | None = None,
        min_interval: str | float | timedelta | None = MIN_INTERVAL_MS / 1000,
        labels: Iterable[str] = (),
        retention: Retention | None = None,
        job_defaults: Mapping[str, Any] | None = None,
        seed: int | None = None,
        kinds: Iterable[Kind] = (),
        tuning: Tuning | None = None,
    ) -> None:
        """`kinds`: kinds with rules or hooks of their own, besides those of the domains."""
        own_clock = clock if clock is not None else SystemClock()
        self._virtual = isinstance(own_clock, ManualClock)
        self._zone = zone_name(timezone) if timezone is not None else None
        self._node_name = node if node is not None else unique_name()
        self._rng = random.Random(seed)
        self._max_running = max_running
        self._min_interval = interval_ms(min_interval) if min_interval else None
        self._labels = read_labels("labels", labels)
        self._tuning = tuning if tuning is not None else Tuning()
        self._retention = retention if retention is not None else Retention()
        if not isinstance(url, str) and not hasattr(url, "clock"):
            raise StoreUnusable(f"{url!r:.80} is not a store's address: write sqlite:///file.db in quotes.")
        self._store = make_store(url, own_clock, inline=self._virtual) if isinstance(url, str) else url
        self._clock = self._store.clock  # where nodes share the store, they share its time
        self._job_defaults = dict(job_defaults or {})
        read_options(self._job_defaults)  # a mistake is reported where it was made
        self._kinds = self._known_kinds(kinds)
        self._declared: list[NewJob] = []
        self._ids = ids.IdSource(self._clock.now, self._rng)
        self._bus = Bus(self._clock)
        self._store.on_events(self._bus.notify)
        self._store.on_change(self._look_again)
        self._status = "stopped"
        self._home = Home()
        self._standby: Service | None = None  # waits for the place of the process that runs the store
        self._lost: StoreGone | None = None  # why the engine stopped by itself
        self._asides: set[asyncio.Task[None]] = set()  # stops that handlers asked for, and that outlast them
        self._started_at: int | None = None
        self._stopped = asyncio.Event()

    @cached_property
    def host(self) -> Host:
        """What domains and surfaces need beyond what users do: services, drafts, labels, what this node knows."""
        return Host(self._wiring(), self._kinds, self._job_defaults, self._max_running)

    @cached_property
    def server_side(self) -> ServerSide:
        """What a server needs beyond all this: requests within a caller's rights, callbacks, token checks."""
        from wakeful.scheduler.server_side import ServerSide

        return ServerSide(self._wiring())

    @property
    def clock(self) -> Clock:
        return self._clock

    async def transact(
        self,
        work: Callable[[Transaction, Context], T],
        *,
        rights: Rights | None = None,
        wakes: bool = True,
        cancels: bool = False,
    ) -> T:
        """Run `work` in one durable transaction, within the rights of a caller; without any, this program acts.

        The engine looks at what was changed at once, unless not `wakes`; with `cancels` it looks for runs to end as
        well. A start by hand that the job's kind refuses is counted.
        """
        context = self._identify()
        if rights is not None:
            context = context._replace(rights=rights)
        try:
            return await self._write(lambda tx: work(tx, context), wakes=wakes, cancels=cancels)
        except StartRefused as refused:
            from wakeful.kernel.actions.runs import note_refused

            name = str(refused.context["job"])
            await self._write(lambda tx: note_refused(tx, context, name))
            raise

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent snapshot; it must not write."""
        return await self._store.read(work)

    @property
    def _hidden_kinds(self) -> tuple[str, ...]:
        """The kinds that listings and counts leave out unless requested."""
        return tuple(sorted(self._kinds.hooks.internal))

    def _lose(self, error: StoreGone) -> None:
        """The store is gone for good."""
        raise NotImplementedError

    def _wiring(self) -> Wiring:
        return Wiring(
            self._store,
            lambda: self._engine,
            self._identify,
            self._min_interval,
            self._write,
            self._draft,
            self._default_zone,
            self._seen,
            self._viewpoint,
            lambda: self._status == "running",
            self._hidden_kinds,
            self._kinds.for_admins(),
            self._kinds.apart(),
        )

    def _known_kinds(self, own: Iterable[Kind]) -> Kinds:
        """The kinds of all domains and this scheduler's own, with the hooks of domains."""
        return Kinds(
            [*(kind for domain in domains() for kind in domain.kinds), *own],
            [domain.delivers for domain in domains() if domain.delivers is not None],
            [domain.alerted for domain in domains() if domain.alerted is not None],
            [domain.released for domain in domains() if domain.released is not None],
            swept=[domain.swept for domain in domains() if domain.swept is not None],
            joined=[domain.joined for domain in domains() if domain.joined is not None],
        )

    @cached_property
    def _engine(self) -> Engine:
        """What runs the jobs: made when it is first asked for, because most commands run none."""
        return self._new_engine()

    def _made_engine(self) -> Engine | None:
        made: Engine | None = vars(self).get("_engine")
        return made

    def _look_again(self) -> None:
        """The store was changed from elsewhere."""
        if (engine := self._made_engine()) is not None:
            engine.wake(recheck_store=True)

    def _identify(self) -> Context:
        """Who acts through this object, for a transaction: the engine, once there is one."""
        engine = self._made_engine()
        return self._context() if engine is None else engine.identify()

    def _context(self) -> Context:
        return Context(
            0,
            self._kinds,
            self._kinds.handled(),
            self._max_running,
            self._ids.next,
            self._ids.rng,
            labels=self._labels,
            min_interval=self._min_interval,
            lease=self._tuning.lease,
            rights=OWN_RIGHTS._replace(caller=self._node_name),
            zone=self._default_zone,
        )

    def _new_engine(self) -> Engine:
        from wakeful.kernel.engine.long_output import keep_long_output, remove_files, remove_older_files
        from wakeful.kernel.loop.loop import Engine
        from wakeful.kernel.loop.sweep import DomainRows
        from wakeful.kernel.views.audit import Audit

        config = EngineConfig(
            self._node_name,
            self._max_running,
            self._labels,
            self._retention,
            self._min_interval,
            self._virtual,
            self._tuning,
            self._lose,
        )
        engine = Engine(self._store, self._clock, self._context(), config)
        engine.housekeeping.rows = DomainRows(
            tuple(table for domain in domains() for table in domain.job_tables),
            tuple(domain.prune for domain in domains() if domain.prune is not None and domain.name != "delivery"),
            next((domain.prune for domain in domains() if domain.name == "delivery"), None),
            tuple(domain.thin for domain in domains() if domain.thin is not None),
            tuple(domain.runs_pruned for domain in domains() if domain.runs_pruned is not None),
        )
        engine.housekeeping.trim = lambda *older: remove_older_files(self._log_folder(), *older)
        engine.housekeeping.on_deleted = lambda run_ids: remove_files(self._log_folder(), run_ids)
        engine.housekeeping.audit = Audit(self._store, self._hidden_kinds).look
        engine.shorten = lambda run_id, result: keep_long_output(self._log_folder(), run_id, result)
        return engine

    async def _write(self, work: Callable[[Transaction], T], *, cancels: bool = False, wakes: bool = True) -> T:
        refuse_unset(self._clock)
        result = await self._store.write(work)
        if wakes and self._status == "running":
            self._engine.wake(recheck_store=cancels)
        return result

    async def _become_engine(self) -> None:
        """Take this store's engine lock, or fail with who holds it."""
        who = {"pid": os.getpid(), "host": socket.gethostname(), "node": self._node_name, "since": self._clock.now()}
        await self._store.become_engine(who)

    def _draft(self, new: NewJob, source: str, job_defaults: Mapping[str, Any] | None = None) -> Draft:
        """The job as it can be stored, with this scheduler's defaults, or others, for options that it leaves out."""
        chosen = self._job_defaults if job_defaults is None else job_defaults
        defaults = {**self._kinds.declared(new.kind).options, **chosen}
        if defaults:
            options = {**defaults, **new.options}
            new = NewJob(new.name, new.trigger, kind=new.kind, payload=new.payload, owner=new.owner, **options)
        return draft(new, source, self._kinds)

    def _default_zone(self) -> str:
        return self._zone if self._zone is not None else system_zone()

    def _seen(self) -> Seen:
        """Which servers are alive, as far as this process can see."""
        own = self._identify().id if self._status == "running" else None
        return Seen(self._store.holder() if self._store.exclusive else None, self._tuning.lease, own)

    def _viewpoint(self) -> Viewpoint:
        from wakeful.kernel.views.explain import Viewpoint

        return Viewpoint(self._default_zone(), self._seen())

    def _log_folder(self) -> Path:
        return self._store.folder
