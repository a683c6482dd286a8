"""The scheduler as a library: open a store, add jobs, say who handles what, start.

This file only wires: rules live in the kernel, SQL in the store.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from wakeful import ids
from wakeful.clock import SystemClock, VirtualClock
from wakeful.errors import InvalidJob, JobNotFound, SchedulerShutdownError
from wakeful.kernel import control, edits, refs
from wakeful.kernel.bus import Bus, Listener
from wakeful.kernel.clockwatch import refuse_unset
from wakeful.kernel.drafts import COMMAND, NewJob, check_limit, check_name, check_payload, draft
from wakeful.kernel.engine import Engine, EngineConfig
from wakeful.kernel.explain import Explanation, explain_job, explain_run
from wakeful.kernel.handlers import Handler, Handlers
from wakeful.kernel.history import RunStats, stats, view
from wakeful.kernel.long_output import keep_long_output, log_path, remove_files
from wakeful.kernel.models import Job, Run
from wakeful.kernel.outcome import clean, from_return, reported
from wakeful.kernel.start import begin_incarnation, leave, run_alone
from wakeful.kernel.sweep import Retention
from wakeful.store import make_store
from wakeful.store.jobs import STATUS_SQL, JobFilter
from wakeful.triggers import Trigger, system_zone, zone_name
from wakeful.triggers.moments import from_ms, to_ms

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Store, Transaction
    from wakeful.store.records import Alert

T = TypeVar("T")
H = TypeVar("H", bound=Handler)
IF_EXISTS = ("error", "update", "keep")
CANCEL_GRACE_S = 5.0


class SchedulerState(NamedTuple):
    """What the engine is doing; `check_count` and `trigger_count` since it was started."""

    status: str
    started_at: datetime | None
    check_count: int
    trigger_count: int
    last_check_at: datetime | None


class Summary(NamedTuple):
    """How many jobs there are by status, what waits for what, and what is open."""

    jobs: dict[str, int]
    parked: dict[str, int]
    open_runs: int
    open_alerts: int
    facts: dict[str, str]


class Scheduler:
    """Wakes jobs at the right time, once, and remembers.

    `async with scheduler:` opens the store; nothing fires until `start()`. All methods belong to the event loop the
    scheduler was opened on.
    """

    def __init__(
        self,
        url: str | Store,
        *,
        clock: Clock | None = None,
        node: str | None = None,
        timezone: str | None = None,
        max_running: int | None = None,
        retention: Retention | None = None,
        seed: int | None = None,
    ) -> None:
        self._clock = clock if clock is not None else SystemClock()
        self._virtual = isinstance(self._clock, VirtualClock)
        self._zone = zone_name(timezone) if timezone is not None else None
        self._node_name = node if node is not None else f"{socket.gethostname()}-{os.getpid()}"
        self._rng = random.Random(seed)
        self._max_running = max_running
        self._retention = retention if retention is not None else Retention()
        self._store = make_store(url, self._clock, inline=self._virtual) if isinstance(url, str) else url
        self._handlers = Handlers()
        self._declared: list[NewJob] = []
        self._ids = ids.IdSource(self._clock.now, self._rng)
        self._bus = Bus()
        self._store.on_events(self._bus.tell)
        self._engine = self._new_engine()
        self._status = "stopped"
        self._started_at: int | None = None
        self._stopped = asyncio.Event()

    # -- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, *, create: bool = True) -> None:
        """Open the store, creating it where there is none. Nothing fires yet."""
        refuse_unset(self._clock)
        await self._store.open(create=create)
        self._ids.start_above(await self._store.read(lambda tx: tx.journal.highest_id()))

    async def close(self) -> None:
        """Stop if running, without waiting for jobs, and let go of the store."""
        if self._status == "running":
            await self.stop(wait_for_jobs=False)
        await self._store.close()

    async def start(self) -> None:
        """Become this store's engine: record what a crash cut off, catch up what is overdue once, and go on."""
        if self._status != "stopped":
            return
        refuse_unset(self._clock)
        self._add_command_kind()
        who = {"pid": os.getpid(), "host": socket.gethostname(), "node": self._node_name, "since": self._clock.now()}
        await self._store.become_engine(who)
        try:
            born = await begin_incarnation(
                self._store, self._engine.identify(), self._node_name, self._log_folder(), self._engine.active.keys()
            )
            if self._declared:
                await self._add(self._declared, "update", "code")
        except BaseException:
            await self._store.resign()
            raise
        self._engine.begin(born.node_id, born.token)
        self._status = "running"
        self._started_at = self._clock.now()
        self._stopped.clear()

    async def stop(self, *, wait_for_jobs: bool = True, timeout: float = 30) -> None:
        """Start nothing more; wait for what runs; cancel and record what is left.

        Raises SchedulerShutdownError when jobs still ran at the timeout; the scheduler is stopped all the same.
        """
        if self._status == "stopping" and not wait_for_jobs:  # asked again, without the patience
            self._engine.interrupt_all()
        if self._status != "running":
            return
        self._status = "stopping"
        self._engine.stop_admitting()
        try:
            left = await self._wind_down(timeout if wait_for_jobs else 0)
        finally:
            # Whatever happened above, nothing of this engine goes on; what it could not record, the next start finds.
            await self._engine.end()
            await self._store.resign()
            self._status = "stopped"
            self._stopped.set()
        if left and wait_for_jobs:
            message = f"Scheduler shutdown timed out after {timeout:g}s with {left} job(s) still running"
            raise SchedulerShutdownError(message, {"timed_out": True, "running_count": left})

    async def _wind_down(self, seconds: float) -> int:
        """Return what never started, wait for the rest, cancel what is left; how many had to be cancelled."""
        engine = self._engine
        await engine.finish_turn()
        back = engine.give_back()
        if back:
            await self._store.write(lambda tx: control.release_runs(tx, back))
        left = 0
        if not await engine.wait_idle(seconds):
            left = len(engine.active)
            engine.interrupt_all()
            await engine.wait_idle(CANCEL_GRACE_S)
        await engine.end()
        await self._store.write(lambda tx: leave(tx, engine.node.id))
        return left

    async def run_forever(self) -> None:
        """Start, and return when stopped; a cancelled task stops the scheduler in good order."""
        await self.start()
        try:
            await self._stopped.wait()
        except asyncio.CancelledError:
            await self.stop()
            raise

    @property
    def url(self) -> str:
        """The address of the store this scheduler works on."""
        return str(getattr(self._store, "url", ""))

    def is_running(self) -> bool:
        return self._status == "running"

    def get_status(self) -> str:
        """stopped, running or stopping."""
        return self._status

    def get_state(self) -> SchedulerState:
        counters = self._engine.counters
        return SchedulerState(
            self._status,
            from_ms(self._started_at) if self._started_at is not None else None,
            counters.checks,
            counters.starts,
            from_ms(counters.last_check) if counters.last_check is not None else None,
        )

    def running_count(self, owner: str | None = None) -> int:
        """How many runs are active in this process, of one owner or of all."""
        runs = self._engine.active.values()
        return sum(1 for active in runs if owner is None or active.claimed.job.owner == owner)

    # -- handlers -----------------------------------------------------------------------------------------------------

    def on_job_due(self, kind: str, handler: Handler | None = None) -> Any:
        """Say who runs jobs of a kind; as a decorator, or with the handler as second argument."""
        check_name("kind", kind)

        def register(function: H) -> H:
            self._handlers.register(kind, function)
            if self._status == "running":
                self._engine.handlers_changed()
            return function

        return register if handler is None else register(handler)

    def job(
        self,
        trigger: Trigger,
        *,
        name: str | None = None,
        payload: Any = None,
        owner: str | None = None,
        **options: Any,
    ) -> Callable[[H], H]:
        """Declare a job in code: stored when the scheduler starts, updated when it changed."""

        def register(function: H) -> H:
            called = name if name is not None else getattr(function, "__name__", "job")
            new = NewJob(called, trigger, kind=called, payload=payload, owner=owner, **options)
            draft(new, "code")  # a mistake is told where it was made
            self._handlers.register(called, function)
            self._declared.append(new)
            return function

        return register

    def subscribe(self, listener: Listener, stream: str | None = None) -> Callable[[], None]:
        """Be told of events after they are stored; call the answer to stop."""
        return self._bus.subscribe(listener, stream)

    # -- jobs ---------------------------------------------------------------------------------------------------------

    async def add_job(
        self,
        name: str,
        trigger: Trigger,
        *,
        kind: str = "job",
        payload: Any = None,
        owner: str | None = None,
        source: str = "code",
        if_exists: str = "error",
        **options: Any,
    ) -> str:
        """Store a job; its id. `if_exists`: error, update or keep."""
        new = NewJob(name, trigger, kind=kind, payload=payload, owner=owner, **options)
        return (await self._add([new], if_exists, source))[0]

    async def add_jobs(self, jobs: Iterable[NewJob], *, if_exists: str = "error", source: str = "code") -> list[str]:
        """Store many in one transaction: all of them or none."""
        return await self._add(list(jobs), if_exists, source)

    async def _add(self, jobs: Sequence[NewJob], if_exists: str, source: str) -> list[str]:
        if if_exists not in IF_EXISTS:
            message = f"if_exists is one of {', '.join(IF_EXISTS)}, not {if_exists!r}."
            raise InvalidJob(message)
        drafts = [draft(new, source) for new in jobs]
        node, zone = self._engine.identify(), self._default_zone()
        found = await self._write(lambda tx: edits.add_jobs(tx, node, drafts, if_exists, zone))
        return [ids.job_text(job_id) for job_id in found]

    async def update_job(self, id: str, /, *, revision: int | None = None, **changes: Any) -> Job:  # noqa: A002
        """Change a job: name, trigger, kind, payload, owner, enabled or any option. A run in progress goes on."""
        node, zone = self._engine.identify(), self._default_zone()
        return await self._write(lambda tx: edits.update_job(tx, node, id, changes, revision=revision, zone=zone))

    async def remove_job(self, id: str) -> None:  # noqa: A002
        """Remove a job; a run in progress finishes, and history stays under its name."""
        await self._write(lambda tx: edits.remove_job(tx, id))

    async def pause_job(self, id: str, note: str | None = None) -> None:  # noqa: A002
        """No start by time until resumed."""
        text = clean(note) if note is not None else None
        await self._write(lambda tx: edits.pause_job(tx, id, text))

    async def resume_job(self, id: str) -> None:  # noqa: A002
        """Errors forgotten, idle again, a fresh next time; nothing is caught up."""
        node = self._engine.identify()
        await self._write(lambda tx: edits.resume_job(tx, node, id))

    async def get_job(self, id: str) -> Job | None:  # noqa: A002
        """The job of that id or name, or None."""

        def work(tx: Transaction) -> Job | None:
            try:
                return Job(*refs.find_job(tx, id), tx.now)
            except JobNotFound:
                return None

        return await self._store.read(work)

    async def list_jobs(
        self,
        *,
        kind: str | None = None,
        owner: str | None = None,
        source: str | None = None,
        status: str | None = None,
        enabled: bool | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """Jobs by name, filtered; `after` is the name the previous page ended with."""
        if status is not None and status not in STATUS_SQL:
            message = f"status is one of {', '.join(sorted(STATUS_SQL))}, not {status!r}."
            raise InvalidJob(message)
        if limit is not None:
            check_limit(limit)
        wanted = JobFilter(kind, owner, source, status, enabled, after, limit)
        return await self._store.read(lambda tx: [Job(*pair, tx.now) for pair in tx.jobs.matching(wanted)])

    # -- runs ---------------------------------------------------------------------------------------------------------

    async def run_job(self, id: str, payload: Any = None) -> str:  # noqa: A002
        """Start a job now, through the same admission as everything else; the run's id. Refused while it runs."""
        node = self._engine.identify()
        text = None if payload is None else check_payload(payload, "")
        run_id = await self._write(lambda tx: control.run_now(tx, node, id, text))
        return ids.run_text(run_id)

    async def run_here(self, id: str) -> Run:  # noqa: A002
        """Run one job in this process to its end and start nothing else; for use without a server."""
        self._add_command_kind()
        who = {"pid": os.getpid(), "host": socket.gethostname(), "node": self._node_name, "since": self._clock.now()}
        await self._store.become_engine(who)
        try:
            born = await begin_incarnation(self._store, self._engine.identify(), self._node_name, self._log_folder())
            node = self._engine.identify()._replace(id=born.node_id, token=born.token)
            run_id = await run_alone(self._store, node, self._handlers, id, virtual=self._virtual)
            await self._store.write(lambda tx: leave(tx, born.node_id))
        finally:
            await self._store.resign()
        found = await self.get_run(ids.run_text(run_id))
        assert found is not None  # noqa: S101 - it was just settled
        return found

    async def get_run(self, id: str) -> Run | None:  # noqa: A002
        """The run of that id, or None."""
        run_id = refs.run_number(id)

        def work(tx: Transaction) -> Run | None:
            row = tx.runs.get(run_id) if run_id is not None else None
            return view(tx, [row])[0] if row is not None else None

        return await self._store.read(work)

    async def get_run_log(self, id: str | None = None, limit: int = 50, before: str | None = None) -> list[Run]:  # noqa: A002
        """The newest runs first, of one job (also a removed one) or of all."""
        below = refs.require_run(before) if before is not None else None
        check_limit(limit)

        def work(tx: Transaction) -> list[Run]:
            job_id = None if id is None else refs.history_of(tx, id)
            return view(tx, tx.runs.log(job_id, limit, below))

        return await self._store.read(work)

    def log_path(self, id: str) -> Path:  # noqa: A002
        """Where a command's run writes its output; kept after its end only if the record cannot hold it all."""
        refs.require_run(id)
        return log_path(self._log_folder(), id)

    async def get_run_stats(self, id: str, since: datetime | None = None) -> RunStats:  # noqa: A002
        """Counts per outcome, average and p95 duration."""
        start = to_ms(since, "since") if since is not None else 0
        return await self._store.read(lambda tx: stats(tx, refs.history_of(tx, id), start))

    async def cancel_run(self, id: str) -> None:  # noqa: A002
        """End a run: one that waits for its turn, one that runs (also in another process), one that waits."""
        number, node = refs.require_run(id), self._engine.identify()
        await self._write(lambda tx: control.cancel_run(tx, node, number), cancels=True)

    async def retry_run(self, id: str) -> str:  # noqa: A002
        """Try again what a finished run did not do; the new run's id."""
        number, node = refs.require_run(id), self._engine.identify()
        return ids.run_text(await self._write(lambda tx: control.retry_run(tx, node, number)))

    async def complete_run(self, id: str, output: Any = None, *, error: str | None = None) -> None:  # noqa: A002
        """Report how a waiting run ended."""
        number, node = refs.require_run(id), self._engine.identify()
        result = reported(error) if error is not None else from_return(output)
        await self._write(lambda tx: control.complete_run(tx, node, number, result))

    async def explain(self, id: str) -> Explanation:  # noqa: A002
        """Why a job ran, did not, and when it will; or why a run was and how it ended."""
        number = refs.run_number(id)

        def work(tx: Transaction) -> Explanation:
            if number is not None:
                job, _, run = refs.find_run(tx, number)
                return explain_run(tx, job, run)
            return explain_job(tx, *refs.find_job(tx, id))

        return await self._store.read(work)

    async def list_alerts(self, *, open_only: bool = True, limit: int = 50) -> list[Alert]:
        """What needs a person, the newest first."""

        def work(tx: Transaction) -> list[Alert]:
            return tx.journal.open_alerts()[::-1][:limit] if open_only else tx.journal.alerts(limit=limit)

        return await self._store.read(work)

    async def get_summary(self) -> Summary:
        """The store at a glance, whichever process runs it."""

        def work(tx: Transaction) -> Summary:
            facts = tx.journal.facts(["incarnation", "alive_at", "clock_steps"])
            return Summary(
                tx.jobs.counts(), tx.jobs.parked_counts(), len(tx.runs.all_open()), len(tx.journal.open_alerts()), facts
            )

        return await self._store.read(work)

    def engine_holder(self) -> dict[str, object] | None:
        """Which process runs this store's engine right now (pid, host, node, since), or None."""
        return self._store.holder()

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _write(self, work: Callable[[Transaction], T], *, cancels: bool = False) -> T:
        refuse_unset(self._clock)
        result = await self._store.write(work)
        if self._status == "running":
            self._engine.poke(cancels=cancels)
        return result

    def _default_zone(self) -> str:
        return self._zone if self._zone is not None else system_zone()

    def _log_folder(self) -> Path:
        return self._store.folder

    def _add_command_kind(self) -> None:
        if COMMAND not in self._handlers.kinds():
            from wakeful.kernel.command.kind import command_handler  # loaded when an engine is started

            self._handlers.register(COMMAND, command_handler(self._log_folder))

    def _new_engine(self) -> Engine:
        config = EngineConfig(self._node_name, self._max_running, self._retention, self._virtual)
        engine = Engine(self._store, self._clock, self._handlers, config, self._ids)
        engine.on_deleted = lambda run_ids: remove_files(self._log_folder(), run_ids)
        engine.shorten = lambda run_id, result: keep_long_output(self._log_folder(), run_id, result)
        return engine
