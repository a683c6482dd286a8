"""A world whose agents schedule themselves, while people answer, edit and pause, and processes die."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.agents import AGENTS, CLERK, SMITH, Employer
from tests.simulation.invariants import Broken, Connection
from wakeful import Every, SchedulerError, ids
from wakeful.domains.agents import Reply, Turn
from wakeful.kernel.rules.approval import approvals
from wakeful.kernel.rules.policy import trigger_of
from wakeful.routing.auth import Caller
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.mcp.calling import call
from wakeful.surfaces.mcp.tool_context import context_of

MINUTE, HOUR = 60_000, 3_600_000
BOUNDS = {"mode": "allow", "max": 4, "min_interval": "10m", "max_ahead": "2d", "expires": "1d"}
WHEN = (
    *("every 10 minutes", "every 9 minutes", "every 15 minutes", "every hour", "every 3 days", "in 5 minutes"),
    *("in 2 hours", "in 3 days", "every hour at :00 and :05", "every 20 minutes, at most 2 runs"),
)
NAMES = ("one", "two", "three", "four", "five", "six")


class Planners(Employer):
    """The clerk schedules itself within bounds; the smith asks a person each time."""

    agents: ClassVar[dict[str, Any]] = {
        CLERK: {**AGENTS[CLERK], "self_schedule": BOUNDS},
        SMITH: {**AGENTS[SMITH], "self_schedule": {**BOUNDS, "mode": "ask"}},
    }
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 30, "_event": 8, "_item": 8, "_wake": 10, "_kill": 8, "_restart": 2, "_answer": 12, "_edit": 3,
        "_stop_one": 3,
    }  # fmt: skip

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.edited: dict[int, str] = {}  # by job that a person has changed: its trigger from then on
        self.asking: dict[int, str] = {}  # by run: which agent it asks
        self.accepted = self.refused = 0

    async def asked(self, turn: Turn) -> Reply:
        self.asking[turn.run._row.id] = turn.agent
        return await super().asked(turn)

    async def _behave(self, number: int) -> None:
        if not self.calm:
            for _ in range(self.mood.randint(0, 4)):
                await self._plan(number)
        await super()._behave(number)

    async def _plan(self, number: int) -> None:
        """One call of a tool, with the rights of the run."""
        assert self._scheduler is not None
        agent, name, when = self.asking[number], self.mood.choice(NAMES), self.mood.choice(WHEN)
        tool, given = self.mood.choice(
            [
                *[("schedule", {"name": name, "when": when, "prompt": "Look."})] * 3,
                ("remind_me", {"when": when, "text": "Look."}),
                ("change_schedule", {"name": name, "when": when}),
                *[
                    (tool, {"name": name})
                    for tool in ("pause_schedule", "resume_schedule", "remove_schedule", "run_now")
                ],
            ]
        )
        desk = await context_of(
            self._scheduler, ServerSettings(min_interval_ms=0), Caller(agent, "agent", number, "agent")
        )
        done = await call(desk, tool, given)
        if done.is_refused:
            self.refused += 1
        else:
            self.accepted += 1

    # -- people -------------------------------------------------------------------------------------------------------

    def _made(self) -> list[Any]:
        sql = "SELECT id, name, trigger FROM jobs WHERE source = 'mcp' AND removed_at IS NULL ORDER BY id"
        return self._connection().execute(sql).fetchall()

    async def _answer(self) -> None:
        """Approve or reject the oldest question."""
        assert self._scheduler is not None
        sql = "SELECT id FROM runs WHERE reason = 'proposed' AND status = 'waiting' ORDER BY id"
        row = self._connection().execute(sql).fetchone()
        if row is not None:
            answer = self._scheduler.approve_run if self.mood.random() < 0.7 else self._scheduler.reject_run
            await answer(ids.run_text(row["id"]), by="ada")

    async def _edit(self) -> None:
        """Change one that waits for nothing: it is the person's from now on."""
        assert self._scheduler is not None
        waiting = {
            row["job_id"] for row in self._connection().execute("SELECT job_id FROM runs WHERE status = 'waiting'")
        }
        found = [row for row in self._made() if row["id"] not in waiting]
        if found:
            row = self.mood.choice(found)
            await self._scheduler.update_job(ids.job_text(row["id"]), trigger=Every(f"{self.mood.randint(11, 99)}m"))
            self.edited[row["id"]] = {one["id"]: one["trigger"] for one in self._made()}[row["id"]]

    async def _stop_one(self) -> None:
        assert self._scheduler is not None
        if found := self._made():
            with contextlib.suppress(SchedulerError):
                await self._scheduler.pause_job(ids.job_text(self.mood.choice(found)["id"]))

    # -- looking ------------------------------------------------------------------------------------------------------

    def _look_at_agents(self) -> None:
        super()._look_at_agents()
        check_plans(self._connection(), self.edited)


def check_plans(connection: Connection, edited: dict[int, str]) -> None:
    """Whatever agents ask for and whoever dies: their schedules keep to the bounds, and to what people say."""
    sql = (
        "SELECT j.*, s.paused, s.enabled, s.ended_at FROM jobs j JOIN job_state s ON s.job_id = j.id "
        "WHERE j.source = 'mcp' AND j.removed_at IS NULL"
    )
    rows, alive = connection.execute(sql).fetchall(), dict[str, int]()
    for row in rows:
        if row["ended_at"] is None and row["id"] not in edited:  # a person may let one begin again
            alive[row["owner"]] = alive.get(row["owner"], 0) + 1
        if row["id"] in edited:
            if row["trigger"] != edited[row["id"]]:
                raise Broken(f"X6: {row['name']} was changed by a person, and is something else now")
            continue
        _check_bounds(row)
        if row["owner"] == SMITH:
            _check_answer(connection, row)
    if any(number > BOUNDS["max"] for number in alive.values()):
        raise Broken(f"X6: too many schedules: {alive}")
    missing = set(edited) - {row["id"] for row in rows}
    if missing:
        raise Broken(f"X6: {ids.job_text(min(missing))} was changed by a person, and is gone")


def _check_bounds(row: Any) -> None:
    trigger = trigger_of(row["trigger"])
    gap = trigger.min_gap_ms()
    if gap is not None and gap < 10 * MINUTE:
        raise Broken(f"X6: {row['name']} is too often: {trigger.describe()}")
    until = getattr(trigger, "until_ms", None)
    if trigger.type != "once" and (until is None or until > row["updated_at"] + 24 * HOUR):
        raise Broken(f"X6: {row['name']} does not end in time: {trigger.describe()}")


def _check_answer(connection: Connection, row: Any) -> None:
    """In the mode `ask`, one that is not paused was approved; one that waits is paused."""
    sql = (
        "SELECT r.status, d.approval FROM runs r JOIN run_details d ON d.run_id = r.id "
        "WHERE r.job_id = ? AND r.reason = 'proposed' ORDER BY r.id"
    )
    questions = connection.execute(sql, (row["id"],)).fetchall()
    if row["paused"]:
        return
    if any(one["status"] == "waiting" for one in questions):
        raise Broken(f"X6: {row['name']} waits for a person, and is not paused")
    if not any(entry["verdict"] == "approved" for one in questions for entry in approvals(one["approval"])):
        raise Broken(f"X6: {row['name']} starts, and no person has approved it: {json.dumps([*map(dict, questions)])}")
