"""Worlds in which jobs ask before they start, or in the middle: what a person approves begins, whatever else is asked.

Jobs start each other, so that starts queue while a question is open; people answer some questions, at any moment, also
while a node is dead. An answer is on record before anything follows from it.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import ClassVar

from tests.simulation.invariants import Broken
from tests.simulation.world import World
from wakeful import After, ApprovalNeeded, Run, Scheduler, Trigger

PATIENCE_MS = 150_000  # a loop sleeps a minute at most, and the sweep that finds what is left comes every minute


class Asking(World):
    """People are asked, and answer in their own time."""

    kinds = (*World.kinds, ("asker", 40))
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 30, "_add": 12, "_pause": 3, "_resume": 5, "_edit": 2, "_remove": 1, "_run_now": 14, "_cancel": 2,
        "_retry": 3, "_kill": 3, "_restart": 2, "_step_clock": 1, "_trouble": 1, "_answer": 14,
    }  # fmt: skip

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.answers = random.Random(f"answers {seed}")
        self.answered = 0
        self._idle: dict[int, tuple[object, int]] = {}  # what was approved and waits, and since when nothing hinders it

    def _trigger(self) -> Trigger:
        if self.answers.random() < 0.5:
            return After(f"job-{self.answers.randrange(max(1, self._names))}", on="any")
        return super()._trigger()

    def _options(self) -> dict[str, object]:
        options = super()._options()
        if self.answers.random() < 0.6:
            options["approval"] = True
        return options

    async def _furnish(self, scheduler: Scheduler) -> None:
        async def ask(found: Run) -> object:
            self._started(found)
            if found.approved_by is None:
                raise ApprovalNeeded("May I?")
            return found.approved_by

        scheduler.on_job_due("asker", ask)
        await super()._furnish(scheduler)

    async def _answer(self) -> None:
        """Answer some open question, or the newest start that asks."""
        assert self._scheduler is not None
        found = [run for run in await self._scheduler.get_run_log(limit=50) if run.phase == "approval"]
        asking = [run for run in found if run.status == "waiting"]
        if asking:
            one = self.answers.choice(asking)
            say = self._scheduler.approve_run if self.answers.random() < 0.85 else self._scheduler.reject_run
            await say(one.id, by="ana")
            self.answered += 1

    def _look(self) -> None:
        super()._look()
        now, life = self.clock.boot(), (self._lives, self.deaths, self.clock.now() - self.clock.boot())
        waits: dict[int, tuple[object, int]] = {}
        for row in self._watch().execute(
            "SELECT r.id, j.name, s.run_id, s.parked, s.ready_at, s.revision FROM runs r "
            "JOIN jobs j ON j.id = r.job_id JOIN job_state s ON s.job_id = j.id "
            "WHERE r.status = 'queued' AND r.reason = 'approval' AND r.finished_at IS NULL ORDER BY r.id"
        ):
            hindered = row["run_id"] is not None or row["parked"] is not None
            known = (life, hindered, row["ready_at"], row["revision"])
            before = self._idle.get(row["id"])
            waits[row["id"]] = before if before is not None and before[0] == known else (known, now)
            if not hindered and now - waits[row["id"]][1] > PATIENCE_MS:
                raise Broken(f"X8: {row['name']} was approved, nothing is in its way, and {row['id']} does not begin")
        self._idle = waits
