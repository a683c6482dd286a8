"""The scheduler's life: open the store, become its engine, stop in good order."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from wakeful.errors import SchedulerShutdownError, StoreError
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.engine.clock_watch import refuse_unset
from wakeful.kernel.engine.handlers import CANCEL_GRACE_S
from wakeful.kernel.engine.incarnation import begin_incarnation, leave
from wakeful.scheduler.jobs import JobsApi
from wakeful.scheduler.signals import StopOnSignals

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful")


def _with_context(work: Callable[[Transaction, Context], None], context: Context, tx: Transaction) -> None:
    work(tx, context)


class Life(JobsApi):
    """Opening, starting and stopping. To start is also to store the jobs declared in code."""

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
        self._ids.start_above(await self._store.read(lambda tx: tx.journal.highest_id()))

    async def close(self) -> None:
        """Stop if running, without waiting for jobs, and close the store.

        >>> await scheduler.close()
        >>> scheduler.get_status()
        'stopped'
        """
        if self._status == "running":
            await self.stop(wait_for_jobs=False)
        await self._bus.finish()
        await self._store.close()

    async def start(self) -> None:
        """Start running jobs: record what a crash interrupted, catch up missed starts once, and continue.

        Jobs declared with `job` are stored first. StoreLocked is raised when another process runs this SQLite store.

        >>> async with Scheduler("sqlite:///other.db") as other:
        ...     await other.start()
        ...     print(other.is_running())
        True
        """
        if self._status != "stopped":
            return
        refuse_unset(self._clock)
        self._kinds.handle_builtin(self._log_folder)
        await self._become_engine()
        try:
            incarnation = await begin_incarnation(self._store, self._engine, self._node_name, self._log_folder())
            for prepare in self._preparations:
                await prepare()
            if self._declared:
                await self._add(self._declared, "update", "code")
                await self._warn_about_orphans()
            await self._engine.look_back(incarnation.away_since)
            for work in self._at_start.values():
                await self._store.write(functools.partial(_with_context, work, self._engine.identify()))
        except BaseException:
            await self._store.resign()
            raise
        self._engine.begin(incarnation.node_id)
        self._status = "running"
        self._started_at = self._clock.now()
        self._stopped = asyncio.Event()  # a scheduler may be opened again on another loop
        for companion in self._companions:
            companion.begin()

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
            log.warning("%d more jobs were declared in code and are declared no more", len(found) - MOST_NAMED)

    async def stop(self, *, wait_for_jobs: bool = True, timeout: float = 30) -> None:
        """Stop starting jobs, wait for those that run, then cancel and record the rest.

        Raises SchedulerShutdownError if jobs still run at the timeout; the scheduler is stopped anyway.

        >>> await scheduler.stop(wait_for_jobs=True, timeout=30)
        >>> scheduler.get_status()
        'stopped'
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
            for companion in self._companions:
                await companion.end()
            # Also after an error nothing of this engine goes on; what it could not record, the next start finds.
            await self._engine.end()
            await self._store.resign()
            self._status = "stopped"
            self._stopped.set()
        if left and wait_for_jobs:
            message = f"Scheduler shutdown timed out after {timeout:g}s with {left} job(s) still running"
            raise SchedulerShutdownError(message, {"timed_out": True, "running_count": left})

    async def _wind_down(self, seconds: float) -> int:
        """Return runs that never started, wait for the others, then cancel what is left; how many were cancelled."""
        engine, since = self._engine, self._clock.now()
        await engine.finish_turn()
        back = engine.release_unstarted()
        if back:
            await self._store.write(lambda tx: run_actions.release_runs(tx, back))
        left = 0
        if not await engine.wait_idle(seconds):
            left = len(engine.active)
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

    async def _stop_by_signal(self, wait_for_jobs: bool) -> None:  # noqa: FBT001 - the one thing that signals differ in
        await self.stop(wait_for_jobs=wait_for_jobs)
