"""The scheduler at a glance: what it is doing, what is stored, what needs a person, and events as they come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from wakeful.kernel.views.bus import Bus
from wakeful.kernel.views.events import Listener
from wakeful.scheduler.core import Core
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import Alert


class SchedulerState(NamedTuple):
    """What the engine is doing; `check_count` and `trigger_count` since it was started."""

    status: str
    started_at: datetime | None
    check_count: int
    trigger_count: int
    last_check_at: datetime | None
    trouble: str | None = None  # what is wrong with the store right now; nothing starts until it is over
    draining: bool = False  # a person asked this node to start nothing more


class Summary(NamedTuple):
    """How many jobs there are by status, what waits for what, and what is open."""

    jobs: dict[str, int]
    parked: dict[str, int]
    open_runs: int
    open_alerts: int
    facts: dict[str, str]


class Overview(Core):
    """What can be asked about the scheduler as a whole."""

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
            self._engine.trouble,
            self._engine.node_lease.draining,
        )

    def running_count(self, owner: str | None = None) -> int:
        """How many runs are active in this process, of one owner or of all."""
        runs = self._engine.active.values()
        return sum(1 for active in runs if owner is None or active.claimed.job.owner == owner)

    def engine_holder(self) -> dict[str, object] | None:
        """Which process runs this store's engine right now (pid, host, node, since), or None."""
        return self._store.holder()

    async def get_summary(self) -> Summary:
        """The store at a glance, whichever process runs it; jobs of internal kinds are left out."""

        def work(tx: Transaction) -> Summary:
            hidden = self.hidden_kinds
            facts = tx.journal.get_meta(["incarnation", "alive_at", "clock_steps"])
            return Summary(
                tx.jobs.counts(hidden),
                tx.jobs.parked_counts(hidden),
                sum(tx.runs.open_counts(hidden).values()),
                tx.journal.open_alert_count(),
                facts,
            )

        return await self._store.read(work)

    async def list_alerts(self, *, open_only: bool = True, limit: int = 50) -> list[Alert]:
        """What needs a person, the newest first."""

        def work(tx: Transaction) -> list[Alert]:
            return tx.journal.open_alerts()[::-1][:limit] if open_only else tx.journal.alerts(limit=limit)

        return await self._store.read(work)

    @property
    def events(self) -> Bus:
        """What happens, as it happens: `scheduler.events.subscribe(listener, stream=None)`."""
        return self._bus

    def subscribe(self, listener: Listener, stream: str | None = None) -> Callable[[], None]:
        """Call a listener with events after they are stored; call the answer to stop. As `events.subscribe`."""
        return self._bus.subscribe(listener, stream)
