"""A world whose incidents are sent to a phone that fails at times: nothing in the outbox is ever gone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.simulation.invariants import Broken, Connection
from tests.simulation.world import FOR_EVER, World
from wakeful import Scheduler
from wakeful.domains.alerts import configure
from wakeful.domains.delivery.connector import Permanent, Temporary, Unclear
from wakeful.domains.delivery.views import delivery_number

OPEN = {"pending", "sending", "unknown"}
CLOSED = {"sent", "failed", "held", "expired"}
UNSENT = ("delivery_failed", "no_connector")  # through the only connector there is


class Phone:
    """Takes messages, and fails, hangs or loses its answer at times, until it is calm."""

    def __init__(self, seed: int) -> None:
        self._mood = random.Random(f"alarms {seed}")
        self.calm = False
        self.down = False  # takes nothing at all
        self.taken: dict[str, int] = {}  # how often each message was
        self.texts: dict[int, str] = {}  # and what was in it

    async def send(self, message: Any) -> None:
        if self.down:
            raise ConnectionError("down")
        if not self.calm:
            await asyncio.sleep(self._mood.choice((0, 0, 0.1, 3)))
            chance = self._mood.random()
            if chance < 0.1:
                raise Permanent("gone")
            if chance < 0.3:
                raise self._mood.choice((Temporary("busy", retry_after=60), Unclear("no answer"), RuntimeError("down")))
            if chance < 0.35:
                await asyncio.sleep(10**6)
        self.taken[message.id] = self.taken.get(message.id, 0) + 1
        self.texts[delivery_number(message.id)] = message.text


class Alarmed(World):
    """Every incident goes to `phone`."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.days = FOR_EVER  # what retention takes away is not lost
        self.phone = Phone(seed)
        self._known: set[int] = set()

    async def _furnish(self, scheduler: Scheduler) -> None:
        scheduler.connectors.register("phone", self.phone.send)
        await self._bounded(configure(scheduler, to="phone", cooldown="30m", grace="2m"))

    async def _settle_down(self, ours: set[asyncio.Task[object] | None]) -> None:
        self.phone.calm = True
        await super()._settle_down(ours)

    def _look(self) -> None:
        super()._look()
        check_outbox(self._watch(), self._known)
        check_arrived(self._watch(), self.phone.texts)
        check_announced(self._watch())

    async def _end(self) -> None:
        check_sent(self._watch())
        await super()._end()


def check_sent(connection: Connection) -> None:
    """With the faults over, nothing waits any more."""
    for row in connection.execute("SELECT id, status FROM deliveries WHERE open = 1"):
        raise Broken(f"A8: message {row['id']} is still {row['status']}")


def check_outbox(connection: Connection, known: set[int]) -> None:
    """Everything that was enqueued is sent, failed, held or expired, or waits: never gone."""
    rows = connection.execute("SELECT id, status, open FROM deliveries ORDER BY id").fetchall()
    found = {row["id"] for row in rows}
    if gone := known - found:
        raise Broken(f"A8: message {min(gone)} was stored and is gone")
    known |= found
    for row in rows:
        if row["status"] not in (OPEN if row["open"] else CLOSED):
            raise Broken(f"A8: message {row['id']} is {row['status']}, which no job looks after")


def check_arrived(connection: Connection, texts: Mapping[int, str]) -> None:
    """What is sent arrived, by itself or in a digest, with all of its text; what is held in a digest waits for one."""
    rows = {
        row["id"]: row
        for row in connection.execute("SELECT id, status, open, held_for, digest_id, text FROM deliveries")
    }
    for row in rows.values():
        digest = rows.get(row["digest_id"])
        if row["status"] == "sent" and row["text"] not in texts.get(row["digest_id"] or row["id"], ""):
            raise Broken(f"A8: message {row['id']} is sent, and its text did not arrive")
        if row["status"] == "held" and digest is not None and not (digest["open"] or digest["held_for"]):
            raise Broken(f"X19: message {row['id']} waits in a digest that is {digest['status']}")


def check_announced(connection: Connection) -> None:
    """One message for each incident that opened, one for each that is over, and none about anything else."""
    messages: dict[tuple[int, str], int] = {}
    for row in connection.execute("SELECT dedupe FROM deliveries WHERE dedupe LIKE 'alert:%'"):
        _, number, what, *_ = row["dedupe"].split(":")
        messages[int(number), what] = messages.get((int(number), what), 0) + 1
    alerts = connection.execute("SELECT * FROM alerts ORDER BY id").fetchall()
    about = {row["id"]: row for row in alerts}
    for (number, what), times in messages.items():
        if number not in about:
            raise Broken(f"X5: a message says that incident {number} {what}, and there is none")
        again = messages.get((number, "repeated"), 0)  # also where an undo showed that it goes on
        if what != "repeated" and times > 1 + (again if what == "closed" else 0):
            raise Broken(f"X5: incident {number} is announced as {what} {times} times")
    internal = {row["id"] for row in connection.execute("SELECT id FROM jobs WHERE kind = 'delivery'")}
    for row in alerts:
        if row["kind"] in UNSENT or row["job_id"] in internal:
            continue
        if (row["id"], "opened") not in messages and not _comes_and_goes(row, row["opened_at"], alerts):
            raise Broken(f"X5: incident {row['id']} ({row['kind']}) was opened and not announced")
        if row["closed_at"] is None or (row["id"], "closed") in messages:
            continue
        if not (_replaced(row, alerts) or _comes_and_goes(row, row["closed_at"], alerts)):
            raise Broken(f"X5: incident {row['id']} ({row['kind']}) is over, and no message says so")


def _comes_and_goes(row: Any, at: int, alerts: list[Any]) -> bool:
    """Whether a message said at that time that the incident comes and goes, in place of one about each time."""
    return any(
        other["key"] == f"flapping:{row['key']}"
        and other["opened_at"] <= at
        and (other["closed_at"] is None or at <= other["closed_at"])
        for other in alerts
    )


def _replaced(row: Any, alerts: list[Any]) -> bool:
    """Whether another incident about the same job was noticed when this one ended, or what came and went stays."""
    return any(
        (other["job_id"] == row["job_id"] and other["id"] != row["id"] and row["closed_at"] in _noticed(other))
        or (row["kind"] == "flapping" and other["key"] == row["key"].partition(":")[2])
        for other in alerts
    )


def _noticed(row: Any) -> tuple[int, int]:
    return row["opened_at"], row["last_at"]
