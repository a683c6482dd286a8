"""The scheduler's runs: start, cancel, retry, complete and approve them, and read what they did and why."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.errors import RunNotFound
from wakeful.kernel.actions import lookup
from wakeful.kernel.actions.drafts import check_limit
from wakeful.kernel.engine.long_output import log_path
from wakeful.kernel.rules.outcome import from_return, reported
from wakeful.scheduler.core import Core
from wakeful.triggers.moments import to_ms

if TYPE_CHECKING:
    from wakeful.kernel.model.run import Run
    from wakeful.kernel.views.explain import Explanation
    from wakeful.kernel.views.history import RunStats
    from wakeful.store.interface import Transaction


# How often a change by another process is looked for: there it may run, or only be cancelled.
RUNS_ELSEWHERE_S, RUNS_HERE_S = 0.5, 5.0


class RunsApi(Core):
    """What can be done to runs, and asked about them."""

    async def run_job(self, id: str, payload: Any = None) -> str:  # noqa: A002
        """Start a job now and return the run's id. ScheduleTriggerError is raised if it is already running.

        `payload` replaces the payload of the job for this run.

        >>> id = await scheduler.run_job("backup", payload={"full": True})
        >>> (await scheduler.wait_for_run(id)).outcome
        'success'
        """
        from wakeful.kernel.actions import runs as run_actions

        return ids.run_text(await self.transact(lambda tx, context: run_actions.run_now(tx, context, id, payload)))

    async def run_here(self, id: str, *, payload: Any = None) -> Run:  # noqa: A002
        """Run one job in this process to its end and start nothing else; for use without a running engine.

        `payload` replaces the payload of the job for this run.

        >>> await scheduler.stop()
        >>> (await scheduler.run_here("backup")).output
        {'files': 3}
        """
        from wakeful.kernel.loop.incarnation import begin_incarnation, leave, run_alone  # loads what runs jobs

        self._kinds.handle_builtin(self._log_folder)
        await self._become_engine()
        try:
            incarnation = await begin_incarnation(self._store, self._engine, self._node_name, self._log_folder())
            context = self._identify()._replace(id=incarnation.node_id)
            run_id = await run_alone(self._store, context, self._kinds, id, payload, virtual=self._virtual)
            job = await self._store.read(lambda tx: lookup.find_run(tx, run_id)[0])
            await self._engine.housekeeping.ended_alone(context, job)
            step = self._engine.clock_watch.step()
            await self._store.write(lambda tx: leave(tx, context, step))
        finally:
            await self._store.resign()
        found = await self.get_run(ids.run_text(run_id))
        assert found is not None  # noqa: S101 - it was just settled
        return found

    async def cancel_run(self, id: str) -> None:  # noqa: A002
        """End a run: one that is queued, one that runs (also in another process), or one that waits.

        >>> [waiting] = await scheduler.get_run_log("publish")
        >>> await scheduler.cancel_run(waiting.id)
        >>> (await scheduler.wait_for_run(waiting.id)).outcome
        'cancelled'
        """
        from wakeful.kernel.actions import runs as run_actions

        number = lookup.require_run(id)
        await self.transact(lambda tx, context: run_actions.cancel_run(tx, context, number), cancels=True)

    async def retry_run(self, id: str) -> str:  # noqa: A002
        """Retry a run that has ended, and return the new run's id.

        >>> run = await scheduler.wait_for_run(await scheduler.run_job("flaky"))
        >>> id = await scheduler.retry_run(run.id)
        >>> (await scheduler.get_run(id)).retry_of == run.id
        True
        """
        from wakeful.kernel.actions import runs as run_actions

        number = lookup.require_run(id)
        return ids.run_text(await self.transact(lambda tx, context: run_actions.retry_run(tx, context, number)))

    async def complete_run(self, id: str, output: Any = None, *, error: str | None = None) -> None:  # noqa: A002
        """Report how a waiting run ended: with `output`, or with an `error`.

        A run waits when its handler raises `Wait`.

        >>> [waiting] = await scheduler.get_run_log("export")
        >>> await scheduler.complete_run(waiting.id, {"rows": 7})
        >>> (await scheduler.get_run(waiting.id)).output
        {'rows': 7}
        """
        from wakeful.kernel.actions import runs as run_actions

        number = lookup.require_run(id)
        result = reported(error) if error is not None else from_return(output)
        await self.transact(lambda tx, context: run_actions.complete_run(tx, context, number, result))

    async def approve_run(self, id: str, *, by: str, note: str | None = None) -> str:  # noqa: A002
        """Approve a run that waits for approval. It continues as a new run, whose id is returned.

        >>> [waiting] = await scheduler.get_run_log("publish")
        >>> id = await scheduler.approve_run(waiting.id, by="ada", note="looks good")
        >>> run = await scheduler.wait_for_run(id)
        >>> run.outcome, run.approved_by
        ('success', 'ada')
        """
        from wakeful.kernel.actions import runs as run_actions

        number = lookup.require_run(id)
        again = await self.transact(lambda tx, context: run_actions.approve_run(tx, context, number, by, note))
        return ids.run_text(again)

    async def reject_run(self, id: str, *, by: str, note: str | None = None) -> None:  # noqa: A002
        """Reject a run that waits for approval: it is cancelled, and its job continues as scheduled.

        >>> [waiting] = await scheduler.get_run_log("publish")
        >>> await scheduler.reject_run(waiting.id, by="ada", note="not today")
        >>> (await scheduler.get_run(waiting.id)).outcome
        'cancelled'
        """
        from wakeful.kernel.actions import runs as run_actions

        number = lookup.require_run(id)
        await self.transact(lambda tx, context: run_actions.reject_run(tx, context, number, by, note))

    async def get_run(self, id: str) -> Run | None:  # noqa: A002
        """The run of that id, or None.

        >>> run = await scheduler.get_run(await scheduler.run_job("backup"))
        >>> run.job, run.reason, run.attempt
        ('backup', 'manual', 1)
        """
        from wakeful.kernel.model.run import run_views

        run_id = lookup.run_number(id)

        def work(tx: Transaction) -> Run | None:
            row = tx.runs.get(run_id) if run_id is not None else None
            return run_views(tx, [row])[0] if row is not None else None

        return await self._store.read(work)

    async def wait_for_run(self, id: str, *, timeout: float | None = None) -> Run:  # noqa: A002
        """Wait until a run has ended, in this process or another, and return it.

        Raises TimeoutError when it has not ended after `timeout` seconds. A retry is another run.

        >>> run = await scheduler.wait_for_run(await scheduler.run_job("backup"), timeout=30)
        >>> run.outcome, run.output
        ('success', {'files': 3})
        """
        lookup.require_run(id)
        changed = asyncio.Event()
        unsubscribe = self._bus.subscribe(lambda _: changed.set(), "run")
        here = self._store.exclusive and self._status == "running"
        try:
            async with asyncio.timeout(timeout):
                while (run := await self.get_run(id)) is not None and run.status != "done":
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), RUNS_HERE_S if here else RUNS_ELSEWHERE_S)
                    changed.clear()
        finally:
            unsubscribe()
        if run is None:
            message = f"There is no run {id} any more."
            raise RunNotFound(message)
        return run

    async def get_run_log(self, id: str | None = None, limit: int = 50, before: str | None = None) -> list[Run]:  # noqa: A002
        """The newest runs first, of one job (also a removed one), or of all jobs except internal kinds.

        `before` is the id of the run that the previous page ended with.

        >>> run = await scheduler.wait_for_run(await scheduler.run_job("backup"))
        >>> [(run.outcome, run.output) for run in await scheduler.get_run_log("backup", limit=5)]
        [('success', {'files': 3})]
        """
        from wakeful.kernel.model.run import run_views

        below = lookup.require_run(before) if before is not None else None
        check_limit(limit)

        def work(tx: Transaction) -> list[Run]:
            job_id = None if id is None else lookup.history_of(tx, id)
            return run_views(tx, tx.runs.log(job_id, limit, below, hidden=self._hidden_kinds))

        return await self._store.read(work)

    def log_path(self, id: str) -> Path:  # noqa: A002
        """Where a command's run writes its output; kept after its end only if the record cannot hold it all.

        >>> path = scheduler.log_path(await scheduler.run_job("backup"))
        >>> path.suffix
        '.log'
        """
        lookup.require_run(id)
        return log_path(self._log_folder(), id)

    async def get_run_stats(self, id: str, since: datetime | None = None) -> RunStats:  # noqa: A002
        """Counts per outcome, average and 95th percentile of the duration.

        >>> run = await scheduler.wait_for_run(await scheduler.run_job("backup"))
        >>> stats = await scheduler.get_run_stats("backup")
        >>> stats.total, stats.success, stats.error
        (1, 1, 0)
        """
        from wakeful.kernel.views.history import stats

        start = to_ms(since, "since") if since is not None else 0
        return await self._store.read(lambda tx: stats(tx, lookup.history_of(tx, id), start))

    async def explain(self, id: str) -> Explanation:  # noqa: A002
        """Why a job ran or did not run and when it will, or why a run was started and how it ended.

        >>> print(await scheduler.explain("backup"))
        backup runs every 6 hours...
        """
        from wakeful.kernel.views.explain import explain_job, explain_run

        number, view = lookup.run_number(id), self._viewpoint()

        def work(tx: Transaction) -> Explanation:
            if number is not None:
                job, _, run = lookup.find_run(tx, number)
                return explain_run(tx, job, run, view)
            return explain_job(tx, *lookup.find_job(tx, id), view)

        return await self._store.read(work)
