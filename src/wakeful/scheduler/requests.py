"""What callers from outside ask of the scheduler: within their rights, under conditions, once per key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from wakeful import ids
from wakeful.errors import JobNotFound
from wakeful.kernel.actions import authorized, lookup
from wakeful.kernel.actions.authorization import Rights, own_job
from wakeful.kernel.actions.authorized import ALWAYS, BulkResult, Changed, Condition, JobSelection, WriteTerms
from wakeful.kernel.actions.drafts import NewJob, check_note
from wakeful.kernel.actions.idempotency import IdempotentRequest, run_idempotent
from wakeful.kernel.views.explain import Explanation, explain_job, explain_run
from wakeful.kernel.views.history import view
from wakeful.kernel.views.models import Job, Run, job_views
from wakeful.kernel.views.statistics import Figures, figures
from wakeful.scheduler.core import Core
from wakeful.store.jobs import JobFilter
from wakeful.store.runs import RunFilter

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import Alert, EventGroup

T = TypeVar("T")
SOURCE = "api"


class Requests(Core):
    """The same things users of the library do, for callers whose rights end somewhere.

    With `once` a request that was done before raises Replayed, with what it was answered.
    """

    async def _ask(
        self, work: Callable[[Transaction, Context], T], once: IdempotentRequest | None = None, *, cancels: bool = False
    ) -> T:
        context = self._engine.identify()
        return await self._write(lambda tx: run_idempotent(tx, once, lambda: work(tx, context)), cancels=cancels)

    # -- jobs ---------------------------------------------------------------------------------------------------------

    async def request_jobs(self, wanted: JobFilter, rights: Rights) -> list[Job]:
        """Jobs by name; of those whose owner the caller is, where it is limited to them."""
        if rights.owner is not None:
            if wanted.owner not in (None, rights.owner):
                return []
            wanted = wanted._replace(owner=rights.owner)
        return await self._store.read(lambda tx: job_views(tx, tx.jobs.matching(wanted), self._min_interval))

    async def request_job(self, ref: str, rights: Rights) -> Job:
        """The job of that id or name; JobNotFound where there is none for this caller."""
        return await self._store.read(lambda tx: job_views(tx, [own_job(tx, ref, rights)], self._min_interval)[0])

    async def request_create(
        self, new: NewJob, rights: Rights, *, enabled: bool = True, once: IdempotentRequest | None = None
    ) -> Job:
        """Store a new job under a free name."""
        made, terms = self._draft(new, SOURCE), WriteTerms(rights, self._default_zone())
        return await self._ask(
            lambda tx, context: authorized.create_job(tx, context, made, terms, enabled=enabled), once
        )

    async def request_put(
        self, new: NewJob, rights: Rights, condition: Condition = ALWAYS, *, enabled: bool | None = None
    ) -> Changed:
        """Store a job under its name, whether there is one or not."""
        made, terms = self._draft(new, SOURCE), WriteTerms(rights, self._default_zone(), condition)
        return await self._ask(lambda tx, context: authorized.put_job(tx, context, made, terms, enabled=enabled))

    async def request_patch(
        self, ref: str, changes: dict[str, Any], rights: Rights, condition: Condition = ALWAYS
    ) -> Job:
        """Change some of a job."""
        terms = WriteTerms(rights, self._default_zone(), condition)
        return await self._ask(lambda tx, context: authorized.patch_job(tx, context, ref, changes, terms))

    async def request_remove(self, ref: str, rights: Rights, condition: Condition = ALWAYS) -> None:
        terms = WriteTerms(rights, self._default_zone(), condition)
        await self._ask(lambda tx, context: authorized.remove_job(tx, context, ref, terms))

    async def request_pause(
        self, many: JobSelection, note: str | None, rights: Rights, once: IdempotentRequest | None = None
    ) -> BulkResult:
        """Pause many in one transaction."""
        text = check_note(note)
        return await self._ask(lambda tx, context: authorized.pause_many(tx, context, many, text, rights), once)

    async def request_resume(
        self, many: JobSelection, rights: Rights, once: IdempotentRequest | None = None
    ) -> BulkResult:
        """Resume many in one transaction."""
        return await self._ask(lambda tx, context: authorized.resume_many(tx, context, many, rights), once)

    # -- runs ---------------------------------------------------------------------------------------------------------

    async def request_start(self, ref: str, payload: Any, rights: Rights, once: IdempotentRequest | None = None) -> Run:
        """Start a job now, through the same admission as everything else."""
        return await self._ask(lambda tx, context: authorized.run_job(tx, context, ref, payload, rights), once)

    async def request_retry(self, run: str, rights: Rights, once: IdempotentRequest | None = None) -> Run:
        number = lookup.require_run(run)
        return await self._ask(lambda tx, context: authorized.retry_run(tx, context, number, rights), once)

    async def request_cancel(self, run: str, rights: Rights) -> Run:
        number = lookup.require_run(run)
        return await self._ask(lambda tx, context: authorized.cancel_run(tx, context, number, rights), cancels=True)

    async def request_approval(
        self, run: str, note: str | None, rights: Rights, once: IdempotentRequest | None = None
    ) -> Run:
        """Say yes to a run that asked; the run that goes on."""
        number = lookup.require_run(run)
        return await self._ask(lambda tx, context: authorized.approve_run(tx, context, number, note, rights), once)

    async def request_rejection(self, run: str, note: str | None, rights: Rights) -> Run:
        """Say no to a run that asked."""
        number = lookup.require_run(run)
        return await self._ask(lambda tx, context: authorized.reject_run(tx, context, number, note, rights))

    async def request_runs(self, wanted: RunFilter, rights: Rights, *, job: str | None = None) -> list[Run]:
        """Runs, the newest first; `job` by id or name, also a removed one."""

        def work(tx: Transaction) -> list[Run]:
            chosen = wanted._replace(hidden=self.hidden_kinds)
            if rights.owner is not None:
                chosen = chosen._replace(owner=rights.owner)
            if job is not None:
                if rights.owner is not None:
                    own_job(tx, job, rights)
                chosen = chosen._replace(job_id=lookup.history_of(tx, job))
            return view(tx, tx.runs.matching(chosen))

        return await self._store.read(work)

    async def request_run(self, run: str, rights: Rights) -> Run:
        """The run of that id; JobNotFound where there is none for this caller."""
        number = lookup.require_run(run)

        def work(tx: Transaction) -> Run:
            authorized.ensure_own_run(tx, number, rights)
            row = tx.runs.get(number)
            assert row is not None  # noqa: S101 - just found, in the same snapshot
            return view(tx, [row])[0]

        return await self._store.read(work)

    async def request_explanation(self, ref: str, rights: Rights) -> Explanation:
        """Why a job ran, did not, and when it will; or why a run was and how it ended."""
        number = lookup.run_number(ref)

        def work(tx: Transaction) -> Explanation:
            if number is not None:
                authorized.ensure_own_run(tx, number, rights)
                job, _, run = lookup.find_run(tx, number)
                return explain_run(tx, job, run)
            return explain_job(tx, *own_job(tx, ref, rights))

        return await self._store.read(work)

    # -- the whole ----------------------------------------------------------------------------------------------------

    async def get_figures(self) -> Figures:
        return await self._store.read(lambda tx: figures(tx, self.hidden_kinds))

    async def page_alerts(self, *, open_only: bool, before: int | None, limit: int) -> list[Alert]:
        """What needs a person, the newest first."""
        return await self._store.read(lambda tx: tx.journal.alerts_before(before, limit, open_only=open_only))

    async def ack_alert(self, alert_id: int) -> Alert:
        """A person has seen it; it stays open until what it is about is over."""

        def work(tx: Transaction) -> Alert:
            tx.journal.ack_alert(alert_id, tx.now)
            found = tx.journal.alert(alert_id)
            if found is None:
                message = f"There is no alert {ids.encode('alr', alert_id)}."
                raise JobNotFound(message)
            return found

        return await self._write(work)

    # -- events -------------------------------------------------------------------------------------------------------

    def on_commit(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every transaction of this process that emitted an event; for as long as both live."""
        self._store.on_events(lambda _: listener())

    async def read_events(self, after: int, streams: Sequence[str] | None, limit: int) -> list[EventGroup]:
        """What any process stored after that group, in order."""
        return await self._store.read(lambda tx: tx.journal.events_of(after, streams, limit))

    async def event_ids(self) -> tuple[int, int]:
        """The oldest and the newest group on record; zeros when there is none."""
        return await self._store.read(lambda tx: tx.journal.event_ids())
