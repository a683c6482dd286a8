"""A world whose agents write to each other: whatever follows from text from outside is marked as such.

Work items are text from outside. The world keeps its own account of what follows from them: which runs were given one,
what these wrote, and what tried them again.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.agents import CLERK, SMITH
from tests.simulation.bureau import Bureau
from tests.simulation.invariants import Broken, Connection
from wakeful import SchedulerError, ids
from wakeful.domains.agents import Reply, Turn, run_requests
from wakeful.domains.agents.route_models import EventIn

FEWER_RIGHTS = {"untrusted": {"timeout": "1h"}}
BLOCK = re.compile(r"<<<data ([0-9a-f]{16})\n(.*)\ndata \1>>>", re.DOTALL)


class Relays(Bureau):
    """The clerk and the smith tell each other what they hear."""

    agents: ClassVar[dict[str, Any]] = {
        name: {**plan, **FEWER_RIGHTS} for name, plan in Bureau.agents.items() if name in (CLERK, SMITH)
    }
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 30, "_event": 8, "_item": 14, "_wake": 6, "_kill": 8, "_restart": 2, "_step_clock": 1,
    }  # fmt: skip

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.relayed: dict[str, bool] = {}  # what runs wrote, and whether that follows from text from outside
        self.fed: set[int] = set()  # the runs that do

    async def asked(self, turn: Turn) -> Reply:
        number, retry_of = turn.run._row.id, turn.run._row.retry_of
        heard = re.findall(r"relay-\d+", turn.prompt)
        block = BLOCK.search(turn.prompt)
        marked = set(re.findall(r"relay-\d+", block[2])) if block is not None else set()
        for name in heard:
            if self.relayed[name] and name not in marked:
                self.violations.append(f"X30: {turn.run.id} was given {name} unmarked, which follows from an item")
        if "item-" in turn.prompt or any(self.relayed[name] for name in heard) or retry_of in self.fed:
            self.fed.add(number)
        return await super().asked(turn)

    async def _behave(self, number: int) -> None:
        if not self.calm and self.mood.random() < 0.6:
            await self._relay(number, self.mood.choice((CLERK, SMITH)))
        await super()._behave(number)

    async def _relay(self, number: int, other: str) -> None:
        """Write to another agent. Which run takes a bare wake cannot be seen from here: those are not followed."""
        assert self._scheduler is not None
        with contextlib.suppress(SchedulerError):  # too many hops, a full disk
            self._names += 1
            text, wake = f"relay-{self._names}", self.mood.random() < 0.7
            self.relayed[text] = number in self.fed  # before it is stored: it may be, whatever the answer is
            await run_requests.leave_event(self._scheduler, number, other, EventIn(text=text, wake=wake))

    def _look_at_agents(self) -> None:
        super()._look_at_agents()
        check_rights(self._connection(), self.fed)


def check_rights(connection: Connection, fed: set[int]) -> None:
    """A run that follows from text from outside had the rights for such text."""
    sql = (
        "SELECT r.id, d.output FROM runs r JOIN run_details d ON d.run_id = r.id "
        "WHERE r.kind = 'agent' AND r.outcome = 'success' AND d.output LIKE '%\"reply\"%'"
    )
    for row in connection.execute(sql):
        if row["id"] in fed and not json.loads(row["output"]).get("untrusted"):
            raise Broken(f"X30: {ids.run_text(row['id'])} follows from an item, and had all rights")
