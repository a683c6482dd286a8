"""Handlers that do not end when they are asked to, and what must be on record about them."""

from __future__ import annotations

import asyncio
import random

from tests.simulation.invariants import Broken, Connection
from wakeful.kernel.loop.handlers import CANCEL_GRACE_S

#: How long after the grace it may take until it is on record: a turn, and a few tries on a full disk.
PATIENCE_S = 120
GOES_ON_S = (5, 60, 200)  # after it was asked to end


class Deaf:
    """Runs that were cancelled and went on, with the time since when."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.since: dict[int, float] = {}

    async def sleep(self, run_id: int, seconds: float) -> None:
        """Sleep that long; once cancelled, for a while longer than that."""
        loop = asyncio.get_running_loop()
        try:
            until = loop.time() + seconds
            while loop.time() < until:
                try:
                    await asyncio.sleep(until - loop.time())
                except asyncio.CancelledError:
                    if run_id not in self.since:
                        self.since[run_id] = loop.time()
                        until = loop.time() + self._rng.choice(GOES_ON_S)
        finally:
            self.since.pop(run_id, None)

    def check(self, connection: Connection, now: float) -> None:
        """Each of them is on record as not stopping, and its job still counts as running."""
        for run_id, since in self.since.items():
            if now - since < CANCEL_GRACE_S + PATIENCE_S:
                continue
            row = connection.execute(
                "SELECT r.phase, r.status, s.run_id FROM runs r JOIN job_state s ON s.job_id = r.job_id WHERE r.id = ?",
                (run_id,),
            ).fetchone()
            if row is None or row["status"] != "active":
                raise Broken(f"H10: run {run_id} still runs, and is on record as ended")
            if row["phase"] is None:
                raise Broken(f"H10: run {run_id} does not stop, and there is no alert")
            if row["run_id"] != run_id:
                raise Broken(f"H9: run {run_id} still runs, and its job counts as free")
