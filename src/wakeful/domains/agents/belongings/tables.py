"""Verbs on what waits for agents by their names; each is part of the transaction it is called in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.counting import counted
from wakeful.store.rows import Verbs

_WAKE_JOB = "(SELECT id FROM jobs WHERE name = ? AND removed_at IS NULL)"
_WAITS = "(status = 'ready' OR (held = 1 AND status IN ('done', 'failed')))"
"""Of an agent's items those that still need it: to be worked on, or to be reported to their source."""


class Left(NamedTuple):
    """How much waits for an agent."""

    items: int
    events: int

    def in_words(self) -> str:
        """Such as "2 work items and 1 event wait"."""
        counts = [(self.items, "work item"), (self.events, "event")]
        parts = [counted(number, noun) for number, noun in counts if number]
        return f"{' and '.join(parts)} {'waits' if self.items + self.events == 1 else 'wait'}"


class Belongings(Verbs):
    """Work items and events, by the names of agents."""

    def waiting(self, agents: Sequence[str] | None = None) -> dict[str, Left]:
        """What waits, by agent: for these, or for all. Agents for which nothing waits are left out."""
        items = self._counts("agent_work", _WAITS, agents)
        events = self._counts("agent_events", "run_id IS NULL", agents)
        return {name: Left(items.get(name, 0), events.get(name, 0)) for name in sorted(items.keys() | events.keys())}

    def move_item(self, item_id: int, agent: str, job_id: int) -> None:
        """The item is this agent's."""
        self._session.execute("UPDATE agent_work SET agent = ?, job_id = ? WHERE id = ?", (agent, job_id, item_id))

    def move_items(self, old: str, new: str, job_id: int, sources: Sequence[str]) -> int:
        """Move what waits, of the queue and of these sources, unless the other agent knows it; how many items."""
        listed = f" OR source IN ({', '.join('?' for _ in sources)})" if sources else ""
        return self._session.execute(
            f"UPDATE agent_work SET agent = ?, job_id = ? WHERE agent = ? AND {_WAITS} AND (source IS NULL{listed}) "
            "AND NOT EXISTS (SELECT 1 FROM agent_work other WHERE other.agent = ? "
            "AND other.external_id = agent_work.external_id)",
            (new, job_id, old, *sources, new),
        )

    def move_events(self, old: str, new: str, job_id: int) -> int:
        """Move the events that wait; how many."""
        sql = "UPDATE agent_events SET agent = ?, job_id = ? WHERE agent = ? AND run_id IS NULL"
        return self._session.execute(sql, (new, job_id, old))

    def name_all(self, agent: str) -> None:
        """What a node of an earlier version added for the agent has its name from now on."""
        known = "EXISTS (SELECT 1 FROM agent_work w WHERE w.agent = ? AND w.external_id = agent_work.external_id)"
        unnamed = f"agent IS NULL AND job_id = {_WAKE_JOB}"
        wake = f"{agent}.wake"
        self._session.execute(f"UPDATE agent_events SET agent = ? WHERE {unnamed}", (agent, wake))
        self._session.execute(f"UPDATE agent_work SET agent = ? WHERE {unnamed} AND NOT {known}", (agent, wake, agent))

    def _counts(self, table: str, waits: str, agents: Sequence[str] | None) -> dict[str, int]:
        only = "" if agents is None else f" AND agent IN ({', '.join('?' for _ in agents)})"
        sql = f"SELECT agent, count(*) FROM {table} WHERE {waits} AND agent IS NOT NULL{only} GROUP BY agent"
        return {str(agent): int(number) for agent, number in self._session.rows(sql, tuple(agents or ()))}
