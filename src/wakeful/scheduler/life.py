"""The scheduler's life: open the store, become its engine, stop in good order."""

from __future__ import annotations

import asyncio
import logging
from typing import Self

from wakeful.errors import SchedulerShutdownError, StoreError
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.engine.clock_watch import refuse_unset
from wakeful.kernel.engine.handlers import CANCEL_GRACE_S
from wakeful.kernel.engine.incarnation import begin_incarnation, leave
from wakeful.scheduler.jobs import JobsApi

log = logging.getLogger("wakeful")


class Life(JobsApi):
    """Opening, starting and stopping. To start is also to store the jobs declared in code."""

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
        self._kinds.handle_builtin(self._log_folder)
        await self._become_engine()
        try:
            incarnation = await begin_incarnation(self._store, self._engine, self._node_name, self._log_folder())
            for prepare in self._preparations:
                await prepare()
            if self._declared:
                await self._add(self._declared, "update", "code")
        except BaseException:
            await self._store.resign()
            raise
        self._engine.begin(incarnation.node_id)
        self._status = "running"
        self._started_at = self._clock.now()
        self._stopped.clear()
        for companion in self._companions:
            companion.begin()

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
            for companion in self._companions:
                await companion.end()
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
            await self._store.write(lambda tx: leave(tx, engine.context.id))
        except StoreError as error:
            log.warning("stopped without signing off in the database: %s", error)
        return left

    async def run_forever(self) -> None:
        """Start, and return when stopped; a cancelled task stops the scheduler in good order."""
        await self.start()
        try:
            await self._stopped.wait()
        except asyncio.CancelledError:
            await self.stop()
            raise
