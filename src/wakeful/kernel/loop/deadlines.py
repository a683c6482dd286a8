"""How long runs may take: a run past its limit is asked to end, and one that does not end is recorded."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from wakeful.kernel.engine.alerts import open_alert
from wakeful.kernel.loop.handlers import CANCEL_GRACE_S, Active
from wakeful.kernel.rules.outcome import GOES_ON, Result, past_limit

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Store, Transaction

log = logging.getLogger("wakeful.engine")

FEW_DEADLINES = 64  # not worth tidying
GRACE_MS = int(CANCEL_GRACE_S * 1000)


class Deadlines:
    """The deadlines of the engine's active runs, by boot time. Their number is bound by that of active runs."""

    def __init__(self, clock: Clock, active: dict[int, Active]) -> None:
        self._clock = clock
        self._active = active
        self._heap: list[tuple[int, int]] = []
        self._stuck: list[Active] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, active: Active) -> None:
        """A run began."""
        heapq.heappush(self._heap, (active.deadline, active.claimed.run.id))
        if len(self._heap) > FEW_DEADLINES:
            self._tidy()

    def limit(self, active: Active, limit_ms: int) -> None:
        """A run may take no longer than this from now on; it cannot be given more time than its job has."""
        deadline = self._clock.boot() + limit_ms
        if deadline < active.deadline:
            active.deadline, active.limit_ms = deadline, limit_ms
            heapq.heappush(self._heap, (deadline, active.claimed.run.id))

    def next(self) -> int | None:
        """When, by boot time, `enforce` has something to do again."""
        return self._heap[0][0] if self._heap else None

    def cancel(self, active: Active, verdict: Result) -> None:
        """Ask a run to end, and look after a while whether it did."""
        now = self._clock.boot()
        if active.asked_at is None:
            heapq.heappush(self._heap, (now + GRACE_MS, active.claimed.run.id))
        active.cancel(verdict, now)

    def cancel_all(self, verdict: Result, which: Callable[[Active], bool] = lambda _: True) -> None:
        for active in list(self._active.values()):
            if which(active):
                self.cancel(active, verdict)

    def enforce(self) -> None:
        """Cancel what is past its limit, and note what was asked to end and did not."""
        now = self._clock.boot()
        while self._heap and self._heap[0][0] <= now:
            _, run_id = heapq.heappop(self._heap)
            active = self._active.get(run_id)
            if active is None:
                continue
            if now >= active.deadline and not active.overdue:
                active.overdue = True
                self.cancel(active, past_limit(active.limit_ms))
            phase = active.refuses_to_end(now)
            if phase is not None and phase != active.reported_phase:
                active.reported_phase = phase
                self._stuck.append(active)

    def note_left(self) -> None:
        """The engine ends; what is still active continues although it was asked to end."""
        for active in self._active.values():
            active.reported_phase = active.reported_phase or "stopping"
            self._stuck.append(active)

    async def alert_stuck(self, store: Store, context: Context) -> bool:
        """Alert about runs that do not end when asked to, and that keep their jobs busy; whether there was any."""
        if not self._stuck:
            return False
        stuck = list(self._stuck)

        def work(tx: Transaction) -> None:
            for active in stuck:
                if tx.runs.goes_on(active.claimed.run.id, active.reported_phase):  # else another node has settled it
                    job_id = active.claimed.job.id
                    open_alert(tx, context, "stuck", job_id, _goes_on(active), job_id=job_id)

        await store.write(work)
        del self._stuck[: len(stuck)]
        for active in stuck:
            log.warning("%s", _goes_on(active))
        return True

    def _tidy(self) -> None:
        """Forget the deadlines of runs that have ended, once they are the most."""
        if len(self._heap) > FEW_DEADLINES + 2 * len(self._active):
            self._heap = [(moment, run_id) for run_id, active in self._active.items() for moment in _ahead(active)]
            heapq.heapify(self._heap)


def _ahead(active: Active) -> Iterator[int]:
    """When there is something to do about a run: at its limit, and a while after it was asked to end."""
    if not active.overdue:
        yield active.deadline
    if active.asked_at is not None and active.reported_phase is None:
        yield active.asked_at + GRACE_MS


def _goes_on(active: Active) -> str:
    what = "thread" if active.in_thread() else "handler"
    why = GOES_ON[active.reported_phase or "timeout"]
    return f"{active.run.job} {why}, and its {what} cannot be stopped: {active.run.id}"
