"""A fleet with agents: several nodes on one PostgreSQL database share what agents are to hear and work on."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation import agents
from tests.simulation.agents import CLERK, RUNNER, SMITH, Staff
from tests.simulation.fleet import Fleet
from tests.simulation.invariants import Connection
from tests.simulation.node import OWNER, Node, NodeStore
from wakeful import SchedulerError

EXTRA = 0.4  # how often something happens to agents, and not to other jobs


class Agency(Staff, Fleet):
    """Every node can ask the agents."""

    pauses = (0, 0, 0.05, 5, 40)
    agents: ClassVar[dict[str, Any]] = {
        CLERK: {"runner": RUNNER, "heartbeat": {"every": "1m", "prompt": "Look around."}},
        SMITH: {
            "runner": RUNNER,
            "work": {"source": "queue"},
            "max_concurrent": 2,
            "schedules": {
                "one": {"every": "15s", "work": True, "prompt": "Work."},
                "two": {"interval": "10s", "work": True, "prompt": "Work."},
            },
        },
    }

    def __init__(self, seed: int, nodes: int | None = None) -> None:
        super().__init__(seed, nodes)
        self._hire(seed)

    def _connection(self) -> Connection:
        return self.eye

    def _is_beside(self, run: int) -> bool:
        """A node that was taken over from may not know yet; what it does then counts for nothing."""
        row = self.eye.execute("SELECT status FROM runs WHERE id = ?", (run,)).fetchone()
        return row is not None and row["status"] == "active"

    async def _behave(self, number: int) -> None:
        await super()._behave(number)
        if (node := OWNER.get()) is not None:
            await node.thawed()

    async def _die(self) -> None:
        node = OWNER.get()
        assert node is not None
        node.die("by its agent")
        await asyncio.sleep(10**9)

    async def _open_shell(self) -> None:
        await super()._open_shell()
        await self._shell.agents.apply(self.agents, folder=Path("/nowhere"))

    def _birth(self, node: Node) -> None:
        super()._birth(node)
        assert node.scheduler is not None
        _ = node.scheduler.agents  # it can ask them from here on

    async def _step(self) -> None:
        if self.mood.random() > EXTRA:
            await super()._step()
            return
        actions = [self._event, self._item, self._wake, self._rest, self._go_on]
        action = self.mood.choices(actions, [14, 12, 8, 2, 4])[0]
        self._note(action.__name__)
        with contextlib.suppress(SchedulerError):
            await action()

    def _committed(self, by: NodeStore) -> None:
        super()._committed(by)
        self._note_outcomes()

    def _look(self) -> None:
        super()._look()
        self._look_at_agents()

    async def _calm(self) -> None:
        self.calm = True
        for agent in self.agents:
            await self._shell.agents.resume(agent)
        await super()._calm()
        for agent in self.agents:  # what failed while it grew calm waits for longer than we do
            await self._shell.agents.resume(agent)
        await asyncio.sleep(600)
        self._look_at_the_end()

    def close(self) -> None:
        agents._now.remove(self)
        super().close()
