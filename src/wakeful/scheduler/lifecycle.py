"""The scheduler's life: open the store, become its engine, stop in good order."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import logging
import shlex
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Self

from wakeful.counting import counted
from wakeful.errors import SchedulerShutdownError, StoreError, StoreLocked
from wakeful.scheduler.core import refuse_unset
from wakeful.scheduler.jobs import JobsApi
from wakeful.scheduler.signals import StopOnSignals
from wakeful.services import Service
from wakeful.store.process_identity import Home

if TYPE_CHECKING:
    from wakeful.errors import StoreGone
    from wakeful.kernel.context import Context
    from wakeful.kernel.loop.handlers import Active
    from wakeful.scheduler.hung_calls import HungCalls
    from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful")
STANDBY_S = 1.0  # between two looks whether another process still runs the store
PATIENCE_S = 30.0  # how long a stop waits for what runs
MACHINERY_S = 5.0  # of that, for what is no job of anybody, such as a message on its way


def _with_context(work: Callable[[Transaction, Context], None], context: Context, tx: Transaction) -> None:
    work(tx, context)


class Lifecycle(JobsApi):
    """Opening, starting and stopping. To start is also to store the jobs declared in code."""

    _hung_calls: HungCalls | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, *, create: bool = True) -> None:
        """Open the store, creating it where there is none. Nothing fires yet. `async with scheduler:` does the same.

        >>> scheduler = Scheduler("sqlite:///other.db")
        >>> await scheduler.open()
        >>> await scheduler.close()
        """
        refuse_unset(self._clock)
        await self._store.open(create=create)
        self._home = Home()
        self._ids.start_above(await self._store.read(lambda tx: tx.facts.highest_id()))

    async def close(self) -> None:
        """Stop if running, without waiting for jobs, and close the store.

        >>> await scheduler.close()
        >>> scheduler.get_status()
        'stopped'
        """
        if self._home.left:
            return  # it is not ours to stop
        asker = self._asker()
        if asker is not None:
            self._begin_aside(self._close(asker))
            return
        while self._asides:
            await asyncio.wait(self._asides)
        await self._close(None)

    async def _close(self, asker: Active | None) -> None:
        if self._status in ("running", "standby"):
            await self._stop(asker, wait_for_jobs=False, timeout=PATIENCE_S)
        elif self._status == "stopping":
            await self._stopped.wait()
        await self._bus.finish()
        await self._store.close()

    async def start(self, *, standby: bool = False) -> None:
        """Start running jobs: record what a crash interrupted, catch up missed starts once, and continue.

        Jobs declared with `job` are stored first. StoreLocked is raised when another process runs this SQLite store.
        With `standby` this one then waits, with status `standby`, until the place is free, and takes over within
        seconds. Meanwhile everything else works: what is added or requested here is run by the other process.

        >>> async with Scheduler("sqlite:///other.db") as other:
        ...     await other.start()
        ...     print(other.is_running())
        True
        """
        self._home.refuse_child()
        if self._status != "stopped":
            return
        self._stopped = asyncio.Event()  # a scheduler may be opened again on another loop
        try:
            await self._start()
        except StoreLocked as error:
            if not standby:
                raise
            log.info("standing by: %s", error)
            self._status = "standby"
            self._standby = Service("the start from standby", STANDBY_S, first=STANDBY_S, step=self._try_start)
            self._standby.begin()

    async def _try_start(self) -> None:
        """Start, if no other process runs the store."""
        if self._store.exclusive and self._store.holder() is not None:
            return
        try:
            await self._start()
        except StoreLocked:
            return
        if self._standby is not None:
            self._standby.cancel()

    async def _end_standby(self) -> None:
        standby, self._standby = self._standby, None
        if standby is not None:
            await standby.end()

    async def _start(self) -> None:
        from wakeful.kernel.loop.incarnation import begin_incarnation, look_back  # loads what runs jobs
        from wakeful.scheduler.hung_calls import HungCalls

        refuse_unset(self._clock)
        self._kinds.handle_builtin(self._log_folder)
        await self._become_engine()
        try:
            incarnation = await begin_incarnation(self._store, self._engine, self._node_name, self._log_folder())
            for prepare in self.host.preparations:
                await prepare()
            if self._declared:
                await self._add(self._declared, "update", "code")
                await self._warn_about_orphans()
            await look_back(self._store, self._engine, incarnation.away_since)
            here = self._identify()._replace(id=incarnation.node_id)
            for work in self.host.at_start.values():
                await self._store.write(functools.partial(_with_context, work, here))
        except BaseException:
            self._engine.node_lease.end()
            await self._store.resign()
            raise
        self._engine.begin(incarnation.node_id)
        self._status, self._lost = "running", None
        self._started_at = self._clock.now()
        if self._hung_calls is None:
            self._hung_calls = HungCalls(self._node_name, self._store.read, self._change)
            self.host.companions.append(self._hung_calls)
        for companion in self.host.companions:
            companion.begin()

    async def _change(self, work: Callable[[Transaction, Context], None]) -> None:
        context = self._identify()
        await self._write(lambda tx: work(tx, context))

    async def _warn_about_orphans(self) -> None:
        """Name the jobs that code declared under a name it no longer uses: they would be due and never run."""
        from wakeful.kernel.views.orphans import MOST_NAMED, orphans

        handled = self._kinds.handled()
        found = await self._store.read(lambda tx: orphans(tx, handled))
        for name in found[:MOST_NAMED]:
            log.warning(
                "job %s was declared in code, but no running program declares it: if it was renamed or dropped, remove "
                "it with wakeful remove %s; if another program declares it, start that program",
                name,
                shlex.quote(name),
            )
        if len(found) > MOST_NAMED:
            log.warning("also declared by no running program: %s", counted(len(found) - MOST_NAMED, "more job"))

    async def stop(self, *, wait_for_jobs: bool = True, timeout: float = PATIENCE_S) -> None:
        """Stop starting jobs, wait for those that run, then cancel and record the rest.

        Raises SchedulerShutdownError if jobs still run at the timeout; the scheduler is stopped anyway. A handler that
        calls it continues at once: its scheduler stops when its run has ended and is recorded, at the latest at the
        timeout.

        >>> await scheduler.stop(wait_for_jobs=True, timeout=30)
        >>> scheduler.get_status()
        'stopped'
        """
        self._home.refuse_child()
        asker = self._asker()
        stopping = self._stop(asker, wait_for_jobs=wait_for_jobs, timeout=timeout)
        if asker is None:
            await stopping
        else:
            self._begin_aside(stopping)

    def _asker(self) -> Active | None:
        """The run whose handler calls this, if it is one of ours: it cannot wait for its own end."""
        engine = self._made_engine()
        if engine is None:
            return None
        from wakeful.kernel.loop.handlers import inside_of

        return inside_of(engine.active.values())

    def _begin_aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it alongside the handler that asks for it, and not as a part of that."""
        task = asyncio.get_running_loop().create_task(work, name="wakeful-stop", context=contextvars.Context())
        self._asides.add(task)
        task.add_done_callback(self._end_aside)

    def _end_aside(self, task: asyncio.Task[None]) -> None:
        self._asides.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("a stop that a handler asked for: %s", error)

    async def _stop(self, asker: Active | None, *, wait_for_jobs: bool, timeout: float) -> None:
        await self._end_standby()
        if self._status == "standby":
            self._status = "stopped"
            self._stopped.set()
        if self._status == "stopping" and not wait_for_jobs:  # asked again, without the patience
            self._engine.interrupt_all(asker)
        if self._status != "running":
            return
        self._status = "stopping"
        self._engine.stop_admitting()
        try:
            if asker is not None and not wait_for_jobs:
                self._engine.interrupt_all(asker)
            left = await self._wind_down(timeout if wait_for_jobs or asker is not None else 0)
        finally:
            await self._end()
        if left and wait_for_jobs:
            message = f"Scheduler shutdown timed out after {timeout:g}s with {left} job(s) still running"
            raise SchedulerShutdownError(message, {"timed_out": True, "running_count": left})

    def _lose(self, error: StoreGone) -> None:
        if self._status == "running":
            self._status, self._lost = "stopping", error
            self._begin_aside(self._abandon())

    async def _abandon(self) -> None:
        """The store is gone: end what runs, because nothing of it can be recorded, and let go of the store's place."""
        from wakeful.kernel.loop.handlers import CANCEL_GRACE_S

        self._engine.stop_admitting()
        self._engine.interrupt_all()
        running = [active.task for active in self._engine.active.values() if active.task is not None]
        try:
            if running:
                await asyncio.wait(running, timeout=CANCEL_GRACE_S)
        finally:
            await self._end()

    async def _end(self) -> None:
        """Nothing of this engine continues, also after an error; what it could not record, the next start finds."""
        for companion in self.host.companions:
            await companion.end()
        await self._engine.end()
        await self._store.resign()
        self._status = "stopped"
        self._stopped.set()

    async def _wind_down(self, seconds: float) -> int:
        """Return runs that never started, wait for the others, then cancel what is left; how many jobs that cut off."""
        from wakeful.kernel.actions.runs import release_runs
        from wakeful.kernel.loop.handlers import CANCEL_GRACE_S
        from wakeful.kernel.loop.incarnation import leave

        engine, since = self._engine, self._clock.now()
        await engine.finish_turn()
        back = engine.release_unstarted()
        if back:
            await self._store.write(lambda tx: release_runs(tx, engine.context, back))
        first, left = min(seconds, MACHINERY_S), 0
        idle = await engine.wait_idle(first)
        if not idle:
            engine.interrupt_internal()
            idle = await engine.wait_idle(seconds - first)
        if not idle:
            left = engine.others_left()
            engine.interrupt_all()
            await engine.wait_idle(CANCEL_GRACE_S, but_for_threads=True)
        await engine.end()
        try:
            await engine.record_left()
            step = engine.clock_watch.step()
            await self._store.write(lambda tx: leave(tx, engine.context, step, since))
        except StoreError as error:
            log.warning("stopped without signing off in the database: %s", error)
        return left

    async def run_forever(self) -> None:
        """Start, and return when the scheduler is stopped: by `stop`, Ctrl-C or SIGTERM.

        StoreGone is raised when the file of the store is removed or replaced meanwhile.

        The first signal waits for running jobs, the second cancels them. Signals for which the program has handlers of
        its own are left to it. Cancelling the task stops the scheduler, too.

        >>> async def main():
        ...     async with Scheduler("sqlite:///wakeful.db") as scheduler:
        ...         await scheduler.run_forever()
        >>> asyncio.run(main())
        """
        await self.start()
        signals = contextlib.nullcontext(None) if self._virtual else StopOnSignals(self._stop_by_signal)
        with signals as heard:
            try:
                await self._stopped.wait()
            except asyncio.CancelledError:
                await self.stop()
                raise
            if heard is not None:
                await heard.finish()
        if self._lost is not None:
            raise self._lost

    async def _stop_by_signal(self, wait_for_jobs: bool) -> None:  # noqa: FBT001 - the one thing that signals differ in
        await self.stop(wait_for_jobs=wait_for_jobs)
