"""A world whose agents are dismissed and come back, keep hours and a budget, and share a session.

What its people never do to an agent is what makes its rules simple: nothing but the interval wakes the sentry, and the
two at the desk have one session, whatever starts them.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from tests.simulation.agents import AGENTS, CLERK, RUNNER, SMITH, Employer
from tests.simulation.invariants import Broken, Connection
from tests.simulation.money import check_money
from tests.simulation.world import FOR_EVER
from wakeful import JobNotFound, Scheduler, SchedulerError, ids
from wakeful.domains.agents import Reply, Turn
from wakeful.domains.agents.work import MOST_ATTEMPTS
from wakeful.kernel.engine.admission import SUSPECT_AFTER

SENTRY, LEFT, RIGHT = "sentry", "left", "right"
OPENS, CLOSES = 9, 17
AHEAD = 8  # hours of Shanghai before UTC
HOURS = {"start": f"{OPENS:02}:00", "end": f"{CLOSES}:00"}
AT_THE_DESK: dict[str, Any] = {
    "runner": RUNNER,
    "session": "desk",
    "max_concurrent": 2,
    "schedules": {"one": {"every": "11m", "prompt": "Type."}, "two": {"interval": "13m", "prompt": "File."}},
}
FAILED = ("error", "timeout")
OURS = ("StoreFull",)  # what is no failure of an item


class Bureau(Employer):
    """Five agents under one roof."""

    agents: ClassVar[dict[str, Any]] = {
        **AGENTS,
        SENTRY: {
            "runner": RUNNER,
            "heartbeat": {"every": "30m", "prompt": "Look out.", "active_hours": HOURS},
            "budget": {"runs_per_day": 9, "cost_per_day": 2},
        },
        LEFT: AT_THE_DESK,
        RIGHT: AT_THE_DESK,
    }
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 30, "_event": 12, "_item": 12, "_wake": 6, "_kill": 8, "_restart": 2, "_trouble": 2,
        "_dismiss": 4, "_rehire": 6, "_stop_wakes": 3, "_allow_wakes": 4, "_run_desk": 6, "_step_clock": 1,
    }  # fmt: skip
    resumes = False

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.away: set[str] = set()  # who is not in the file
        self.at_work: dict[str, int] = {}  # the session that is worked in, and the run

    # -- the agents ---------------------------------------------------------------------------------------------------

    async def asked(self, turn: Turn) -> Reply:
        number = turn.run._row.id
        hour = datetime.fromtimestamp(self.clock.now() / 1000, ZoneInfo(self.zone)).hour
        if turn.agent == SENTRY and not OPENS <= hour < CLOSES:
            self.violations.append(f"A2: {turn.run.id} woke the sentry at {hour}:00, and only the interval asked")
        where = self._whose(turn)
        if where in self.at_work:
            self.violations.append(f"C4: {turn.run.id} works in the session of {where} beside {self.at_work[where]}")
        self.at_work[where] = number
        try:
            reply = await super().asked(turn)
        finally:
            if self.at_work.get(where) == number:
                del self.at_work[where]
        return reply._replace(cost=self.mood.choice((None, 0.0, 0.01, 0.25)))

    def _whose(self, turn: Turn) -> str:
        return "desk" if turn.schedule in AT_THE_DESK["schedules"] and turn.agent != SMITH else super()._whose(turn)

    # -- people -------------------------------------------------------------------------------------------------------

    async def _furnish(self, scheduler: Scheduler) -> None:
        self.at_work.clear()
        self.busy.clear()
        await self._bounded(scheduler.agents.apply(self._staff(), folder=self.path.parent))

    def _staff(self) -> dict[str, Any]:
        return {name: agent for name, agent in self.agents.items() if name not in self.away}

    async def _apply(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.agents.apply(self._staff(), folder=self.path.parent)

    async def _dismiss(self) -> None:
        self.away.add(self.mood.choice((CLERK, SMITH, LEFT)))
        await self._apply()

    async def _rehire(self) -> None:
        self.away.clear()
        await self._apply()

    async def _event(self) -> None:
        assert self._scheduler is not None
        agent = self.mood.choice([name for name in (CLERK, SMITH) if name not in self.away] or [RIGHT])
        self._names += 1
        text, wake = f"event-{self._names}", self.mood.random() < 0.7
        await self._scheduler.agents.add_event(agent, text, wake=wake)
        self.events[text] = wake

    async def _stop_wakes(self) -> None:
        """Events for the clerk wait from now on."""
        assert self._scheduler is not None
        await self._scheduler.pause_job(f"{CLERK}.wake")

    async def _allow_wakes(self) -> None:
        """Paused by people, or disabled after errors in a row: resuming the job is enough."""
        assert self._scheduler is not None
        for agent in (CLERK, SMITH, RIGHT):
            with contextlib.suppress(JobNotFound):
                await self._scheduler.resume_job(f"{agent}.wake")

    async def _allow_work(self) -> None:
        """Schedules that were disabled, because the server died again and again in their runs alone."""
        assert self._scheduler is not None
        for name in (f"{SMITH}.one", f"{SMITH}.two"):
            with contextlib.suppress(JobNotFound):
                await self._scheduler.resume_job(name)

    async def _run_desk(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.run_job(f"{self.mood.choice((LEFT, RIGHT))}.{self.mood.choice(('one', 'two'))}")

    # -- looking ------------------------------------------------------------------------------------------------------

    def _look_at_agents(self) -> None:
        super()._look_at_agents()
        if self.days == FOR_EVER:  # charges are deleted with their days
            check_money(self._connection())
        for row in self._connection().execute("SELECT id, title FROM agent_work WHERE status = 'failed'").fetchall():
            check_failed(self._connection(), row["id"], row["title"])
        check_starts(self._connection())

    async def _settle_down(self, ours: Any) -> None:
        self.calm = True
        if self._dead.is_set():
            await self._rebirth(ours)
        for act in (self._rehire, self._allow_wakes, self._allow_work):
            with contextlib.suppress(SchedulerError):
                await self._bounded(act())
        await super()._settle_down(ours)


class Heartless(Bureau):
    """Nothing wakes the agents but events."""

    agents: ClassVar[dict[str, Any]] = {name: {"runner": RUNNER} for name in (CLERK, SMITH, RIGHT)}
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 10, "_event": 10, "_dismiss": 6, "_rehire": 6, "_stop_wakes": 3, "_allow_wakes": 3,
    }  # fmt: skip


class Evening(Bureau):
    """The sentry alone, again and again at the end of its hours, which are those of another zone."""

    zone = "Asia/Shanghai"
    agents: ClassVar[dict[str, Any]] = {
        SENTRY: {"runner": RUNNER, "heartbeat": {"every": "5m", "prompt": "Look out.", "active_hours": HOURS}}
    }
    weights: ClassVar[dict[str, int]] = {"_evening": 10, "_kill": 1}

    async def _evening(self) -> None:
        """From half an hour before the hours end until half an hour after that."""
        begins = ((CLOSES - AHEAD) * 60 - 30) * 60_000
        await asyncio.sleep((begins - self.clock.now()) % 86_400_000 / 1000)
        await asyncio.sleep(3600)


class Archive(Bureau):
    """Agents that are asked once a month, while what is older than a week is deleted."""

    agents: ClassVar[dict[str, Any]] = {
        CLERK: {"runner": RUNNER, "schedules": {"month": {"cron": "0 9 1 * *", "prompt": "Sum up."}}},
        LEFT: {**AT_THE_DESK, "schedules": {"one": {"cron": "30 9 1 * *", "prompt": "Type."}}},
    }
    weights: ClassVar[dict[str, int]] = {"_month": 10, "_kill": 2, "_restart": 1}

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.days, self.history = 7, 3

    async def _month(self) -> None:
        """The machine sleeps for a month; after that the clock must be steady for hours before anything is deleted."""
        self.clock.step(timedelta(days=31))
        self._stepped = self.clock.boot()
        await asyncio.sleep(7 * 3600)


def check_failed(connection: Connection, number: int, title: str) -> None:
    """An item is set aside for failures of its own, or for deaths in a row that its run is blamed for."""
    rows = connection.execute(
        "SELECT r.outcome, d.error_type FROM runs r JOIN run_details d ON d.run_id = r.id WHERE d.output LIKE ?",
        (f'%"{ids.encode("wrk", number)}"%',),
    ).fetchall()
    own = sum(row["outcome"] in FAILED and row["error_type"] not in OURS for row in rows)
    deaths = sum(row["outcome"] == "crashed" for row in rows)
    if own + max(0, deaths - SUSPECT_AFTER + 1) < MOST_ATTEMPTS:
        raise Broken(f"X14: {title} failed after {own} failures of its own and {deaths} deaths of its server")


def check_starts(connection: Connection) -> None:
    """While an item is ready, a start of the agent that works on such items is ahead, waits or runs.

    Unless all its schedules are disabled, because the server died in their runs again and again: there is an alert.
    """
    if connection.execute("SELECT 1 FROM agent_work WHERE status = 'ready'").fetchone() is None:
        return
    rows = connection.execute(
        "SELECT s.due_at, s.next_at, s.run_id, nullif(s.queued, 0) FROM jobs j JOIN job_state s ON s.job_id = j.id "
        "WHERE j.removed_at IS NULL AND j.name IN (?, ?) AND (s.enabled = 1 OR NOT EXISTS (SELECT 1 FROM alerts a "
        "WHERE a.job_id = j.id AND a.kind = 'disabled' AND a.closed_at IS NULL))",
        (f"{SMITH}.one", f"{SMITH}.two"),
    ).fetchall()
    if rows and not any(value is not None for row in rows for value in row):
        raise Broken("D10: an item is ready, and no start of its agent is ahead")
