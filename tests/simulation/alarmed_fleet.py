"""Several nodes on one database that send incidents to a phone which fails at times; some of them have no phone."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from tests.simulation.alarms import Phone, check_announced, check_arrived, check_outbox, check_sent
from tests.simulation.fleet import Fleet
from tests.simulation.node import Node
from wakeful import SchedulerError
from wakeful.domains.alerts import configure

SETTLE_S = 13 * 60  # the longest wait between two attempts, and a little


class AlarmedFleet(Fleet):
    """Every incident goes to `phone`, whichever node notices it and whichever has a phone."""

    options = " --alarms"

    def __init__(self, seed: int, nodes: int | None = None) -> None:
        super().__init__(seed, nodes)
        self.phone = Phone(seed)
        chance = random.Random(f"phones {seed}")
        self._with_phone = {node.name for node in self.nodes[1:] if chance.random() < 0.6} | {self.nodes[0].name}
        self._known: set[int] = set()

    async def _open_shell(self) -> None:
        await super()._open_shell()
        await configure(self._shell, to="phone", cooldown="5m", grace="1m")

    def _furnish(self, node: Node) -> None:
        if node.name not in self._with_phone:
            return

        async def send(message: Any) -> None:
            await node.thawed()
            await self.phone.send(message)
            await node.thawed()  # taken, and perhaps too late to say so

        assert node.scheduler is not None
        node.scheduler.connectors.register("phone", send)

    async def _calm(self) -> None:
        """With the faults over and nothing new to report, nothing waits any more."""
        self.phone.calm = True
        await super()._calm()
        for name in sorted(self.acknowledged):
            with contextlib.suppress(SchedulerError):  # removed meanwhile
                await self._shell.pause_job(name)
        await asyncio.sleep(SETTLE_S)
        check_sent(self.eye)

    def _look(self) -> None:
        super()._look()
        check_outbox(self.eye, self._known)
        check_arrived(self.eye, self.phone.texts)
        check_announced(self.eye)
