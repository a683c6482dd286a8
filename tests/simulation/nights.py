"""A world whose phone has quiet hours: what is written at night arrives in digests, or its row says otherwise."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import ClassVar

from tests.simulation.alarms import Alarmed
from tests.simulation.invariants import Broken, Connection
from wakeful import Scheduler
from wakeful.domains.alerts import configure
from wakeful.domains.delivery.outbox import cancel, requeue, requeue_all

HOUR_MS = 3_600_000
MORNING, EVENING = 8, 22  # an hour after quiet hours, and when they begin
SIZES = (20, 300, 900, 2_500, 25_000)


class Nightly(Alarmed):
    """Messages of every length, day and night, to a phone that is quiet from ten to seven."""

    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 30, "_write_to_people": 25, "_queue_again": 4, "_cancel_one": 3, "_kill": 2, "_restart": 2,
        "_step_clock": 1, "_trouble": 1, "_lose_a_day": 4,
    }  # fmt: skip

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self._pen = random.Random(f"nights {seed}")
        self._written = 0
        hours = {"start": "22:00", "end": "07:00", "timezone": "UTC"}
        attempts = self._pen.choice((1, 5, 100, 100))
        self._rules = {"quiet_hours": {**hours, "digest": self._pen.random() < 0.9}, "attempts": attempts}

    async def _furnish(self, scheduler: Scheduler) -> None:
        scheduler.connectors.register("phone", self.phone.send, rules=self._rules)  # type: ignore[call-arg]
        await self._bounded(configure(scheduler, to="phone", cooldown="30m", grace="2m"))

    async def _pass_time(self) -> None:
        await asyncio.sleep(self._pen.choice((1, 60, 3600, 3600, 3 * 3600, 9 * 3600)))
        self.phone.down = self._pen.random() < 0.3

    async def _lose_a_day(self) -> None:
        """The phone takes nothing from one night to the next."""
        self.phone.down = True
        for _ in range(2):
            await asyncio.sleep((EVENING + 1 - self.clock.now() / HOUR_MS) % 24 * 3600)
            await self._write_to_people()
        await asyncio.sleep(5 * 3600)
        self.phone.down = False

    async def _write_to_people(self) -> None:
        assert self._scheduler is not None
        for _ in range(self._pen.choice((1, 3, 30))):
            self._written += 1
            mark, size = f"m{self._written}", self._pen.choice(SIZES)
            await self._scheduler.deliver(f"<{mark}{'.' * size}{mark}>", to="phone", urgent=self._pen.random() < 0.1)

    async def _queue_again(self) -> None:
        assert self._scheduler is not None
        status, number = self._pen.choice(("failed", "expired", "held")), self._one()
        if self._pen.random() < 0.5:
            await self._scheduler.transact(lambda tx, context: requeue_all(tx, context, status))
        elif number is not None:
            await self._scheduler.transact(lambda tx, _: requeue(tx, number))

    async def _cancel_one(self) -> None:
        assert self._scheduler is not None
        number = self._one()
        if number is not None:
            await self._scheduler.transact(lambda tx, _: cancel(tx, number))

    def _one(self) -> int | None:
        found = self._watch().execute("SELECT id, kind FROM deliveries WHERE status <> 'sent' ORDER BY id").fetchall()
        digests = [row for row in found if row["kind"] == "digest"] if self._pen.random() < 0.5 else []
        rows = digests or found
        return int(self._pen.choice(rows)["id"]) if rows else None

    async def _settle_down(self, ours: set[asyncio.Task[object] | None]) -> None:
        self.phone.down = False
        await super()._settle_down(ours)

    async def _end(self) -> None:
        check_released(self._watch(), self.clock.now())
        await super()._end()


def check_released(connection: Connection, now: int) -> None:
    """With the faults over, nothing is held for quiet hours by day."""
    rows = connection.execute("SELECT id FROM deliveries WHERE held_for = 'quiet' AND digest_id IS NULL").fetchall()
    if rows and MORNING <= now // HOUR_MS % 24 < EVENING:
        raise Broken(f"X19: message {rows[0]['id']} is held for quiet hours that have ended")
