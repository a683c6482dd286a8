"""A world in which requests and messages come in from outside: what was accepted is run, waits, or was given up."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.agents import CLERK, RUNNER, Employer
from tests.simulation.invariants import Broken, Connection
from wakeful.domains.agents import Reply, Turn
from wakeful.domains.agents.inbound.receiving import CHAT, WEBHOOK, Inbound, ReceivedRequest, TurnedAway, take
from wakeful.kernel.context import Context
from wakeful.store.interface import Transaction

SCHEDULES = {WEBHOOK: f"{CLERK}.hook", CHAT: f"{CLERK}.ask"}


class Doorkeeper(Employer):
    """One agent that others ask, some of them twice. It fails, hangs, is paused, and takes the process down."""

    agents: ClassVar[dict[str, Any]] = {
        **Employer.agents,
        CLERK: {
            "runner": RUNNER,
            "schedules": {
                "hook": {
                    "webhook": {"verify": "bearer", "secret": "a-long-random-text"},
                    "prompt": "Look at {payload.name}.",
                },
                "ask": {"chat": {}, "prompt": "Answer."},
            },
        },
    }
    weights: ClassVar[dict[str, int]] = {
        **Employer.weights,
        "_knock": 25,
        "_item": 2,
        "_event": 2,
        "_cancel": 0,
        "_retry": 0,
    }

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.accepted: dict[str, int] = {}  # those that are stored for sure, and the run of each

    async def asked(self, turn: Turn) -> Reply:
        named = set(re.findall(r"request-\d+", turn.prompt))
        if turn.schedule in ("hook", "ask") and len(named) != 1:
            self.violations.append(f"D4: {turn.run.id} of {turn.schedule} is about {sorted(named)}")
        return await super().asked(turn)

    async def _knock(self) -> None:
        assert self._scheduler is not None
        self._names += 1
        name = self.mood.choice([f"request-{self._names}", *self.accepted][:3])  # some are sent again
        type_ = WEBHOOK if int(name.partition("-")[2]) % 2 else CHAT
        body = json.dumps({"name": name}) if type_ == WEBHOOK else name
        given = Inbound(type_, name, {"connector": "log", "sender": "ada"} if type_ == CHAT else {}, body)

        def work(tx: Transaction, context: Context) -> ReceivedRequest | TurnedAway:
            pair = tx.jobs.by_name(SCHEDULES[type_])
            assert pair is not None
            return take(tx, context, pair, given)

        taken = await self._scheduler.transact(work)
        if isinstance(taken, ReceivedRequest):
            known = self.accepted.setdefault(name, taken.run_id)
            if known != taken.run_id:
                self.violations.append(f"D4: {name} was sent again, and asked for another run")

    def _look(self) -> None:
        super()._look()
        for name, chain in chains(self._connection(), self.accepted).items():
            good = [row for row in chain if row["outcome"] == "success"]
            open_ = [row for row in chain if row["status"] != "done"]
            if not chain or len(good) + len(open_) > 1:
                raise Broken(f"D4: {name} was accepted; it has {len(good)} good runs, and {len(open_)} to come")
            if not open_ and not any(row["started_at"] for row in chain):
                raise Broken(f"D4: {name} was accepted and dropped")

    def _look_at_the_end(self) -> None:
        super()._look_at_the_end()
        for name, chain in chains(self._connection(), self.accepted).items():
            if any(row["status"] != "done" for row in chain):
                raise Broken(f"D4: {name} was accepted and still waits")


def chains(connection: Connection, accepted: dict[str, int]) -> dict[str, list[Any]]:
    """The runs of each request: the one it asked for, and those that continue it."""
    rows = connection.execute(
        "SELECT id, retry_of, status, outcome, started_at FROM runs "
        "WHERE job_id IN (SELECT id FROM jobs WHERE name IN (?, ?)) ORDER BY id",
        tuple(SCHEDULES.values()),
    ).fetchall()
    first: dict[int, int] = {}
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        first[row["id"]] = first.get(row["retry_of"], row["id"]) if row["retry_of"] is not None else row["id"]
        found[first[row["id"]]].append(row)
    return {name: found[run] for name, run in accepted.items()}
