"""The scheduler at a glance: what it is doing, what is stored, what needs a person, and events as they happen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.errors import AlertNotFound, StoreError
from wakeful.kernel.actions.drafts import check_limit
from wakeful.kernel.actions.recording import acknowledge, origin_of
from wakeful.kernel.rules.outcome import APPROVAL
from wakeful.kernel.views.bus import Bus
from wakeful.kernel.views.events import Listener
from wakeful.scheduler.core import Core
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.kernel.rules.verdict import Verdict
    from wakeful.kernel.views.records import Alert
    from wakeful.store.interface import Transaction


class SchedulerState(NamedTuple):
    """What the engine is doing; `check_count` and `trigger_count` since it was started."""

    status: str
    started_at: datetime | None
    check_count: int
    trigger_count: int
    last_check_at: datetime | None
    trouble: str | None = None  # the current problem of the store; nothing starts until it is over
    draining: bool = False  # a person asked this node to start nothing more
    store_gone: bool = False  # its file was removed or replaced, and the engine stops


class Summary(NamedTuple):
    """How many jobs there are by status, what waits for what, and what is open."""

    jobs: dict[str, int]
    parked: dict[str, int]
    open_runs: int
    open_alerts: int
    alive_at: datetime | None  # when an engine last said that it runs
    open_approvals: int = 0  # runs that wait for a person
    cut_off: int = 0  # runs that count as running, and whose server has ended


class Overview(Core):
    """What can be asked about the scheduler as a whole."""

    @property
    def url(self) -> str:
        """The address of the store this scheduler works on.

        >>> scheduler.url
        'sqlite:///...wakeful.db'
        """
        return str(getattr(self._store, "url", ""))

    def is_running(self) -> bool:
        """Whether this scheduler runs jobs: started, and not stopping.

        >>> scheduler.is_running()
        True
        """
        return self._status == "running"

    def get_status(self) -> str:
        """`stopped`, `standby`, `running` or `stopping`.

        >>> scheduler.get_status()
        'running'
        """
        return self._status

    def get_state(self) -> SchedulerState:
        """What the engine is doing, and since when.

        >>> state = scheduler.get_state()
        >>> state.status, state.trouble
        ('running', None)
        """
        counters = self._engine.counters
        return SchedulerState(
            self._status,
            from_ms(self._started_at) if self._started_at is not None else None,
            counters.checks,
            counters.starts,
            from_ms(counters.last_check) if counters.last_check is not None else None,
            self._engine.trouble,
            self._engine.node_lease.draining,
            self._lost is not None,
        )

    def running_count(self, owner: str | None = None) -> int:
        """How many runs are active in this process, of one owner or of all; internal kinds are left out.

        >>> scheduler.running_count()
        0
        """
        jobs = [active.claimed.job for active in self._engine.active.values()]
        return sum(1 for job in jobs if job.kind not in self._hidden_kinds and owner in (None, job.owner))

    def engine_holder(self) -> dict[str, object] | None:
        """Which process runs this store's jobs right now (pid, host, node, since), or None.

        >>> scheduler.engine_holder()["node"]
        'here'
        """
        holder = self._store.holder()
        if holder is not None and isinstance(since := holder.get("since"), int):
            return {**holder, "since": from_ms(since)}
        return holder

    async def get_summary(self) -> Summary:
        """The store at a glance, whichever process runs it; jobs of internal kinds are left out.

        >>> (await scheduler.get_summary()).open_alerts
        0
        """
        from wakeful.kernel.views.cut_off import cut_off_runs

        seen = self._seen()

        def work(tx: Transaction) -> Summary:
            hidden = self._hidden_kinds
            alive_at = tx.facts.of(["alive_at"]).get("alive_at")
            runs = tx.runs.open_counts(hidden)
            return Summary(
                tx.jobs.counts(hidden),
                tx.jobs.parked_counts(hidden),
                sum(runs.values()),
                tx.alerts.count_open(),
                from_ms(int(alive_at)) if alive_at is not None else None,
                runs.get(APPROVAL, 0),
                sum(run.kind not in hidden for run in cut_off_runs(tx, seen).values()),
            )

        return await self._store.read(work)

    async def get_verdict(self) -> Verdict:
        """Whether all is well, in one sentence, the most serious problem first. An unknown state is never called well.

        >>> (await scheduler.get_verdict()).sentence
        'All well. ...'
        """
        from wakeful.kernel.rules.verdict import VerdictInput, judge
        from wakeful.kernel.views.verdict_facts import standing

        zone, seen = self._default_zone(), self._seen()
        try:
            facts = await self._store.read(lambda tx: standing(tx, zone, seen, self._silence_ms, self._hidden_kinds))
        except StoreError as error:
            facts = VerdictInput(self._clock.now(), trouble=str(error))
        trouble = self._engine.trouble if self._status == "running" else None
        return judge(facts if trouble is None else facts._replace(trouble=trouble))

    @property
    def _silence_ms(self) -> int:
        """For how long a server that works may give no sign: it does so with every sweep, between two sleeps."""
        return 3 * self._tuning.sweep_ms

    async def list_alerts(self, *, open_only: bool = True, limit: int = 50) -> list[Alert]:
        """Alerts that need a person, newest first.

        >>> await scheduler.list_alerts()
        []
        """
        from wakeful.kernel.views.records import alert_views

        check_limit(limit)
        return await self._store.read(lambda tx: alert_views(tx, tx.alerts.latest(limit, open_only=open_only)))

    async def ack_alert(self, id: str) -> Alert:  # noqa: A002
        """Note that a person has seen an alert. It stays open until the incident is over.

        >>> for alert in await scheduler.list_alerts():
        ...     alert = await scheduler.ack_alert(alert.id)
        """
        from wakeful.kernel.views.records import alert_views

        number = ids.alert_number(id)
        if number is None:
            message = f"There is no alert {id}: see the list of open alerts."
            raise AlertNotFound(message)
        return await self.transact(
            lambda tx, context: alert_views(tx, [acknowledge(tx, number, origin_of(context))[0]])[0]
        )

    @property
    def events(self) -> Bus:
        """Events as they happen.

        >>> unsubscribe = scheduler.events.subscribe(lambda event: print(event.type), "job")
        >>> unsubscribe()
        """
        return self._bus

    def subscribe(self, listener: Listener, stream: str | None = None) -> Callable[[], None]:
        """Call a listener with events after they are stored, of one stream or of all; call the result to stop.

        >>> events = []
        >>> unsubscribe = scheduler.subscribe(events.append, "run")
        >>> run = await scheduler.wait_for_run(await scheduler.run_job("backup"))
        >>> unsubscribe()
        >>> events[-1].data["outcome"]
        'success'
        """
        return self._bus.subscribe(listener, stream)
