"""The scheduler's jobs: say who handles them, add, change, pause, resume, remove and read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from wakeful import ids
from wakeful.errors import InvalidJob, JobNotFound
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.actions import lookup, pausing
from wakeful.kernel.actions.drafts import NewJob, check_limit, check_name, check_note, draft
from wakeful.kernel.kinds import Handler
from wakeful.kernel.views.models import Job, job_views
from wakeful.scheduler.core import Core
from wakeful.store.jobs import STATUS_SQL, JobFilter
from wakeful.triggers import Trigger

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

H = TypeVar("H", bound=Handler)
IF_EXISTS = ("error", "update", "keep")


class JobsApi(Core):
    """What can be done to jobs, by id or name."""

    @overload
    def on_job_due(self, kind: str) -> Callable[[H], H]: ...
    @overload
    def on_job_due(self, kind: str, handler: H) -> H: ...

    def on_job_due(self, kind: str, handler: Handler | None = None) -> Any:
        """Say who runs jobs of a kind; as a decorator, or with the handler as second argument."""
        check_name("kind", kind)

        def register(function: H) -> H:
            self._kinds.handle(kind, function)
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
            draft(new, "code", self._kinds)  # a mistake is reported where it was made
            self._kinds.handle(called, function)
            self._declared.append(new)
            return function

        return register

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
        drafts = [self._draft(new, source) for new in jobs]
        context, zone = self._engine.identify(), self._default_zone()
        found = await self._write(lambda tx: job_actions.add_jobs(tx, context, drafts, if_exists, zone))
        return [ids.job_text(job_id) for job_id in found]

    async def update_job(self, id: str, /, *, revision: int | None = None, **changes: Any) -> Job:  # noqa: A002
        """Change a job: name, trigger, kind, payload, owner, enabled or any option. A run in progress goes on."""
        context, zone = self._engine.identify(), self._default_zone()
        return await self._write(
            lambda tx: job_actions.update_job(tx, context, id, changes, revision=revision, zone=zone)
        )

    async def remove_job(self, id: str) -> None:  # noqa: A002
        """Remove a job; a run in progress finishes, and history stays under its name."""
        context = self._engine.identify()
        await self._write(lambda tx: job_actions.remove_job(tx, context, id))

    async def pause_job(self, id: str, note: str | None = None) -> None:  # noqa: A002
        """No start by time until resumed."""
        text, context = check_note(note), self._engine.identify()
        await self._write(lambda tx: pausing.pause_job(tx, context, id, text))

    async def resume_job(self, id: str) -> None:  # noqa: A002
        """Errors forgotten, idle again, a fresh next time; nothing is caught up."""
        context = self._engine.identify()
        await self._write(lambda tx: pausing.resume_job(tx, context, id))

    async def get_job(self, id: str) -> Job | None:  # noqa: A002
        """The job of that id or name, or None."""

        def work(tx: Transaction) -> Job | None:
            try:
                return job_views(tx, [lookup.find_job(tx, id)], self._min_interval)[0]
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
        internal: bool = False,
    ) -> list[Job]:
        """Jobs by name, filtered; `after` is the name the previous page ended with.

        Jobs of internal kinds, such as deliveries, are left out unless `internal` or their kind asks for them.
        """
        if status is not None and status not in STATUS_SQL:
            message = f"status is one of {', '.join(sorted(STATUS_SQL))}, not {status!r}."
            raise InvalidJob(message)
        if limit is not None:
            check_limit(limit)
        hidden = () if internal else self.hidden_kinds
        wanted = JobFilter(kind, owner, source, status, enabled, after, limit, hidden=hidden)
        return await self._store.read(lambda tx: job_views(tx, tx.jobs.matching(wanted), self._min_interval))
