"""The scheduler's jobs: say who handles them, add, change, pause, resume, remove and read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, get_args, overload

from wakeful import ids
from wakeful.errors import InvalidJob, JobNotFound
from wakeful.kernel.actions import lookup
from wakeful.kernel.actions.drafts import NewJob, check_limit, check_name, draft
from wakeful.kernel.actions.recording import on_record, origin_of
from wakeful.kernel.kinds import AnyHandler
from wakeful.kernel.model.job import Job, job_views
from wakeful.kernel.rules.option_fields import IfExists, JobChanges, JobOptions
from wakeful.scheduler.core import Core
from wakeful.store.jobs import STATUS_SQL, JobFilter
from wakeful.triggers import Trigger

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

H = TypeVar("H", bound=AnyHandler)
IF_EXISTS: tuple[str, ...] = get_args(IfExists)


class JobsApi(Core):
    """What can be done to jobs, by id or name."""

    @overload
    def on_job_due(self, kind: str) -> Callable[[H], H]: ...
    @overload
    def on_job_due(self, kind: str, handler: H) -> H: ...

    def on_job_due(self, kind: str, handler: AnyHandler | None = None) -> Any:
        """Set the handler of a kind of jobs, as a decorator or with the handler as second argument.

        The handler is a coroutine function, or a plain function, which runs in a thread. It takes the run, or nothing.
        InvalidJob is raised for any other.

        >>> @scheduler.on_job_due("report")
        ... async def report(run):
        ...     return f"sent to {run.payload['to']}"
        >>> id = await scheduler.add_job("weekly", Every("7d"), kind="report", payload={"to": "team"})
        >>> run = await scheduler.wait_for_run(await scheduler.run_job("weekly"))
        >>> run.output
        'sent to team'
        """
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
        **options: Unpack[JobOptions],
    ) -> Callable[[H], H]:
        """Declare a job in code, as a decorator: stored when the scheduler starts, updated when it changed.

        Its name is the function's, unless `name` gives another. Options are those of `JobOptions`.

        >>> @scheduler.job(Cron("0 2 * * *", tz="Europe/Berlin"), timeout="10m", retry=2)
        ... async def nightly(run):
        ...     return {"rows": 42}
        """

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
        if_exists: IfExists = "error",
        **options: Unpack[JobOptions],
    ) -> str:
        """Store a job and return its id. `if_exists`: `"error"`, `"update"` or `"keep"`.

        Options are those of `JobOptions`; an unknown one is refused with the closest valid name.

        >>> id = await scheduler.add_job("tidy", Every("1h"), kind="report", timeout="5m", if_exists="update")
        >>> (await scheduler.get_job(id)).name
        'tidy'
        """
        new = NewJob(name, trigger, kind=kind, payload=payload, owner=owner, **options)
        return (await self._add([new], if_exists, source))[0]

    async def add_jobs(
        self, jobs: Iterable[NewJob], *, if_exists: IfExists = "error", source: str = "code"
    ) -> list[str]:
        """Store many jobs in one transaction, all of them or none, and return their ids.

        >>> ids = await scheduler.add_jobs([NewJob("a", Every("5m")), NewJob("b", Every("1h"), priority=10)])
        >>> len(ids)
        2
        """
        given: object = jobs
        listed: list[Any] = list(given) if isinstance(given, Iterable) else [given]
        if wrong := [item for item in listed if not isinstance(item, NewJob)]:
            message = f'add_jobs takes a list of NewJob, such as NewJob("a", Every("5m")), not {wrong[0]!r:.100}.'
            raise InvalidJob(message)
        return await self._add(listed, if_exists, source)

    async def _add(self, jobs: Sequence[NewJob], if_exists: str, source: str) -> list[str]:
        from wakeful.kernel.actions import jobs as job_actions

        if if_exists not in IF_EXISTS:
            message = f"if_exists is one of {', '.join(IF_EXISTS)}, not {if_exists!r}."
            raise InvalidJob(message)
        drafts = [self._draft(new, source) for new in jobs]
        found = await self.transact(
            lambda tx, context: job_actions.add_jobs(tx, context, drafts, if_exists, context.zone())
        )
        return [ids.job_text(job_id) for job_id in found]

    async def update_job(self, id: str, /, *, revision: int | None = None, **changes: Unpack[JobChanges]) -> Job:  # noqa: A002
        """Change a job: name, trigger, kind, payload, owner, enabled or any option. A run in progress is not affected.

        With `revision`, ChangedSinceRead is raised if the job has changed since it had that revision.

        >>> job = await scheduler.update_job("backup", trigger=Every("12h"), timeout="1h")
        >>> job.schedule, job.options
        ('every 12 hours', {'timeout': '1h'})
        """
        from wakeful.kernel.actions import jobs as job_actions

        others: dict[str, Any] = dict(changes)
        switch = {"enabled": others.pop("enabled")} if "enabled" in others else {}

        def work(tx: Transaction, context: Context) -> Job:
            zone = context.zone()
            if others:
                context.declared.refuse_managed(lookup.find_job(tx, id)[0])
            job = job_actions.update_job(tx, context, id, others, revision=revision, zone=zone)
            if not switch:
                return job
            what, pair = "resume" if switch["enabled"] else "disable", lookup.find_job(tx, job.id)
            change = partial(job_actions.update_job, tx, context, job.id, switch, revision=None, zone=zone)
            return on_record(tx, origin_of(context), what, [pair], change)[0]

        return await self.transact(work)

    async def remove_job(self, id: str) -> None:  # noqa: A002
        """Remove a job. A run in progress finishes, and history stays under its name.

        >>> await scheduler.remove_job("backup")
        >>> await scheduler.get_job("backup") is None
        True
        """
        from wakeful.kernel.actions import authorized

        await self.transact(lambda tx, context: authorized.remove_job(tx, context, id))

    async def pause_job(self, id: str, note: str | None = None) -> None:  # noqa: A002
        """Stop scheduled starts of a job until it is resumed. It can still be started by hand.

        >>> await scheduler.pause_job("backup", "disk is being replaced")
        >>> (await scheduler.get_job("backup")).status
        'paused'
        """
        from wakeful.kernel.actions.selections import JobSelection, pause_many

        await self.transact(lambda tx, context: pause_many(tx, context, JobSelection((id,)), note))

    async def resume_job(self, id: str) -> None:  # noqa: A002
        """Resume a paused or disabled job. Its errors are reset, and missed starts are not caught up.

        >>> await scheduler.pause_job("backup")
        >>> await scheduler.resume_job("backup")
        >>> (await scheduler.get_job("backup")).status
        'idle'
        """
        from wakeful.kernel.actions import pausing

        def work(tx: Transaction, context: Context) -> None:
            pairs = [lookup.find_job(tx, id)]
            resume = partial(pausing.resume_all, tx, context, pairs)
            refused, _ = on_record(tx, origin_of(context), "resume", pairs, resume)
            for refusal in refused.values():
                raise refusal

        await self.transact(work)

    async def get_job(self, id: str) -> Job | None:  # noqa: A002
        """The job of that id or name, or None.

        >>> await scheduler.get_job("backup")
        <Job backup idle every 6 hours>
        """

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

        >>> await scheduler.list_jobs(kind="backup", limit=1)
        [<Job backup idle every 6 hours>]
        """
        if status is not None and status not in STATUS_SQL:
            message = f"status is one of {', '.join(sorted(STATUS_SQL))}, not {status!r}."
            raise InvalidJob(message)
        if limit is not None:
            check_limit(limit)
        hidden = () if internal else self._hidden_kinds
        wanted = JobFilter(kind, owner, source, status, enabled, after, limit, hidden=hidden)
        return await self._store.read(lambda tx: job_views(tx, tx.jobs.matching(wanted), self._min_interval))
