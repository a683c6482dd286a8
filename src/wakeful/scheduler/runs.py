"""The scheduler's runs: start, cancel, retry, complete and approve them, and read what they did and why."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.kernel.actions import lookup
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.actions.drafts import check_limit
from wakeful.kernel.engine.incarnation import begin_incarnation, leave, run_alone
from wakeful.kernel.engine.long_output import log_path
from wakeful.kernel.rules.outcome import from_return, reported
from wakeful.kernel.views.explain import Explanation, explain_job, explain_run
from wakeful.kernel.views.history import RunStats, stats, view
from wakeful.kernel.views.models import Run
from wakeful.scheduler.core import Core
from wakeful.triggers.moments import to_ms

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction


class RunsApi(Core):
    """What can be done to runs, and asked about them."""

    async def run_job(self, id: str, payload: Any = None) -> str:  # noqa: A002
        """Start a job now, through the same admission as everything else; the run's id. Refused while it runs."""
        context = self._engine.identify()
        run_id = await self._write(lambda tx: run_actions.run_now(tx, context, id, payload))
        return ids.run_text(run_id)

    async def run_here(self, id: str) -> Run:  # noqa: A002
        """Run one job in this process to its end and start nothing else; for use without a server."""
        self._kinds.handle_builtin(self._log_folder)
        await self._become_engine()
        try:
            incarnation = await begin_incarnation(self._store, self._engine, self._node_name, self._log_folder())
            context = self._engine.identify()._replace(id=incarnation.node_id)
            run_id = await run_alone(self._store, context, self._kinds, id, virtual=self._virtual)
            step = self._engine.clock_step()
            await self._store.write(lambda tx: leave(tx, context, step))
        finally:
            await self._store.resign()
        found = await self.get_run(ids.run_text(run_id))
        assert found is not None  # noqa: S101 - it was just settled
        return found

    async def cancel_run(self, id: str) -> None:  # noqa: A002
        """End a run: one that waits for its turn, one that runs (also in another process), one that waits."""
        number, context = lookup.require_run(id), self._engine.identify()
        await self._write(lambda tx: run_actions.cancel_run(tx, context, number), cancels=True)

    async def retry_run(self, id: str) -> str:  # noqa: A002
        """Try again what a finished run did not do; the new run's id."""
        number, context = lookup.require_run(id), self._engine.identify()
        return ids.run_text(await self._write(lambda tx: run_actions.retry_run(tx, context, number)))

    async def complete_run(self, id: str, output: Any = None, *, error: str | None = None) -> None:  # noqa: A002
        """Report how a waiting run ended."""
        number, context = lookup.require_run(id), self._engine.identify()
        result = reported(error) if error is not None else from_return(output)
        await self._write(lambda tx: run_actions.complete_run(tx, context, number, result))

    async def approve_run(self, id: str, *, by: str, note: str | None = None) -> str:  # noqa: A002
        """Say yes to a run that asked: the same slot goes on as a new run, whose id this is."""
        number, context = lookup.require_run(id), self._engine.identify()
        return ids.run_text(await self._write(lambda tx: run_actions.approve_run(tx, context, number, by, note)))

    async def reject_run(self, id: str, *, by: str, note: str | None = None) -> None:  # noqa: A002
        """Say no to a run that asked: it is cancelled, and its job goes on with the next slot."""
        number, context = lookup.require_run(id), self._engine.identify()
        await self._write(lambda tx: run_actions.reject_run(tx, context, number, by, note))

    async def get_run(self, id: str) -> Run | None:  # noqa: A002
        """The run of that id, or None."""
        run_id = lookup.run_number(id)

        def work(tx: Transaction) -> Run | None:
            row = tx.runs.get(run_id) if run_id is not None else None
            return view(tx, [row])[0] if row is not None else None

        return await self._store.read(work)

    async def get_run_log(self, id: str | None = None, limit: int = 50, before: str | None = None) -> list[Run]:  # noqa: A002
        """The newest runs first, of one job (also a removed one), or of all but those of internal kinds."""
        below = lookup.require_run(before) if before is not None else None
        check_limit(limit)

        def work(tx: Transaction) -> list[Run]:
            job_id = None if id is None else lookup.history_of(tx, id)
            return view(tx, tx.runs.log(job_id, limit, below, hidden=self.hidden_kinds))

        return await self._store.read(work)

    def log_path(self, id: str) -> Path:  # noqa: A002
        """Where a command's run writes its output; kept after its end only if the record cannot hold it all."""
        lookup.require_run(id)
        return log_path(self._log_folder(), id)

    async def get_run_stats(self, id: str, since: datetime | None = None) -> RunStats:  # noqa: A002
        """Counts per outcome, average and p95 duration."""
        start = to_ms(since, "since") if since is not None else 0
        return await self._store.read(lambda tx: stats(tx, lookup.history_of(tx, id), start))

    async def explain(self, id: str) -> Explanation:  # noqa: A002
        """Why a job ran, did not, and when it will; or why a run was and how it ended."""
        number = lookup.run_number(id)

        def work(tx: Transaction) -> Explanation:
            if number is not None:
                job, _, run = lookup.find_run(tx, number)
                return explain_run(tx, job, run)
            return explain_job(tx, *lookup.find_job(tx, id))

        return await self._store.read(work)
