"""Kinds with hooks in every world: they keep a ledger in the store, and it must agree with the runs at every moment."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.simulation.invariants import Broken, Connection
from wakeful.kernel.hooks import Refused
from wakeful.kernel.kinds import Kind

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

HELD, ENDED = "held:", "ended:"


class Hooks:
    """What each run holds from its claim to its end, and how often its end was reported."""

    def __init__(self, chance: random.Random | None) -> None:
        """`chance`: decides which starts are refused; None: none is."""
        self._chance = chance
        self.refused: Counter[str] = Counter()  # starts of each job

    def kinds(self, names: Iterable[str]) -> list[Kind]:
        return [Kind(name, admit=self._admit, claimed=self._claimed, ended=self._ended) for name in names]

    def _admit(self, tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
        if self._chance is None or self._chance.random() > 0.1:
            return None
        self.refused[job.name] += 1
        wait = self._chance.choice((None, None, -1000, 0, 5_000, 600_000))
        return Refused("closed", "closed by chance", None if wait is None else tx.now + wait)

    @staticmethod
    def _claimed(tx: Transaction, context: Context, job: JobDef, run: RunRow) -> dict[str, object]:
        tx.facts.put({f"{HELD}{run.id}": "1"})
        return {"held": run.id}

    @staticmethod
    def _ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
        key = f"{ENDED}{run.id}"
        times = int(tx.facts.of([key]).get(key, "0")) + 1
        tx.facts.put({key: str(times), f"{HELD}{run.id}": ""})

    @staticmethod
    def check(connection: Connection) -> None:
        """Whatever runs or waits is held, nothing that is over is, and every end was reported once."""
        meta = {row["key"]: row["value"] for row in connection.execute("SELECT key, value FROM meta")}
        held = {int(key.removeprefix(HELD)) for key, value in meta.items() if key.startswith(HELD) and value}
        ended = {int(key.removeprefix(ENDED)): value for key, value in meta.items() if key.startswith(ENDED)}
        rows = connection.execute(
            "SELECT id, status FROM runs WHERE kind NOT IN ('delivery', 'agent', 'workflow') ORDER BY id"
        ).fetchall()
        busy = {row["id"] for row in rows if row["status"] in ("active", "waiting")}
        queued = {row["id"] for row in rows if row["status"] == "queued"}
        done = {row["id"] for row in rows if row["status"] == "done"}
        if missing := busy - held:
            raise Broken(f"run {min(missing)} is in progress, and its claim was not reported")
        if more := held - busy - queued:
            raise Broken(f"run {min(more)} is over, and still holds what it claimed")
        if untold := done - ended.keys():
            raise Broken(f"run {min(untold)} is over, and its end was not reported")
        if early := ended.keys() & (busy | queued):
            raise Broken(f"run {min(early)} goes on, and its end was reported")
        if twice := {run for run, times in ended.items() if times != "1"}:
            raise Broken(f"the end of run {min(twice)} was reported {ended[min(twice)]} times")
