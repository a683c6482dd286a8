"""Nodes as a person looks at them: all of them, what they run, and the request that one starts nothing more.

How nodes live, beat and take over from each other is in `members`; times here are by the database's clock.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.store.records import NodeDetails, NodeState
from wakeful.store.rows import Rows, Verbs

if TYPE_CHECKING:
    from wakeful.store.session import Row

#: A node that has been silent for so long is dead to the others.
LEASE_MS = 20_000

#: The key of the hold on everything in the store's facts: by whom, since when, and why. Absent: there is none.
HOLD_KEY = "hold"


def hold_level(text: str | None) -> int:
    """How far a hold goes: 0 there is none, 1 nothing starts, 2 nothing is sent either."""
    return 0 if text is None else 2 if json.loads(text).get("messages") else 1


def standing_sql(lock_clause: str, *, parked: bool) -> str:
    """A node's standing, of one that has not left."""
    waits = "EXISTS (SELECT 1 FROM job_state WHERE parked IS NOT NULL)" if parked else "false"
    return f"SELECT draining, held, {waits} AS waits FROM nodes WHERE id = ? AND stopped_at IS NULL{lock_clause}"


def standing_of(row: Row | None) -> NodeState:
    """What such a row says; None: the node has left, or another one took over from it."""
    return NodeState(None) if row is None else NodeState(bool(row[0]), int(row[1]), bool(row[2]))


class Nodes(Verbs):
    """Verbs on nodes; each call is part of the transaction it was made in."""

    #: Without `held`: a migration looks for live nodes before an older store has that column.
    _nodes = Rows("nodes", NodeDetails, [name for name in NodeDetails._fields if name != "held"])

    def latest(self, limit: int) -> list[NodeDetails]:
        """Every node that has not left, however many there are, and the latest others up to `limit` in all."""
        here = self._nodes.all("WHERE stopped_at IS NULL ORDER BY id")
        gone = self._nodes.all("WHERE stopped_at IS NOT NULL ORDER BY id DESC LIMIT ?", max(0, limit - len(here)))
        return sorted([*here, *gone], key=lambda node: node.id)

    def get(self, node_id: int) -> NodeDetails | None:
        """One incarnation."""
        return self._nodes.one("WHERE id = ?", node_id)

    def named(self, name: str) -> NodeDetails | None:
        """The node of that name: the one that has not left, else the latest that did."""
        return self._nodes.one("WHERE name = ? ORDER BY stopped_at IS NOT NULL, id DESC LIMIT 1", name)

    def names(self) -> list[str]:
        """The names nodes have had."""
        return self._column("SELECT DISTINCT name FROM nodes ORDER BY name")

    def names_of(self, node_ids: Sequence[int]) -> dict[int, str]:
        """What these nodes are called."""
        return {row[0]: str(row[1]) for row in self._session.select_in(("id", "name"), "nodes", "id", node_ids)}

    def living(self, since: int) -> list[NodeDetails]:
        """The nodes that have not left and sent a heartbeat since."""
        return self._nodes.all("WHERE stopped_at IS NULL AND seen_at >= ? ORDER BY id", since)

    def drain(self, node_id: int, *, drain: bool) -> bool:
        """Ask a node to start nothing more, or to go on; False when it has left."""
        sql = "UPDATE nodes SET draining = ? WHERE id = ? AND stopped_at IS NULL"
        changed = self._session.execute(sql, (int(drain), node_id)) == 1
        self._session.announce()
        return changed

    def held(self) -> str | None:
        """The hold that stands, as it is kept; None where there is none."""
        return self._text("SELECT value FROM meta WHERE key = ?", HOLD_KEY)

    def hold(self, text: str | None) -> None:
        """Hold everything, or go on; with the commit every node does, because each claim reads its node's row.

        The rows are locked first: a claim that is under way ends before, and what comes after it waits.
        """
        if not self._session.exclusive:
            self._session.rows(f"SELECT id FROM nodes WHERE stopped_at IS NULL ORDER BY id{self._session.lock_clause}")
        self._session.serialize("facts")
        self._session.execute("DELETE FROM meta WHERE key = ?", (HOLD_KEY,))
        if text is not None:
            self._session.insert_many("meta", ("key", "value"), [(HOLD_KEY, text)])
        # Read again: a node may have joined before the facts were ours.
        self._session.execute("UPDATE nodes SET held = ? WHERE stopped_at IS NULL", (hold_level(text),))
        self._session.announce()

    def running(self) -> dict[int, int]:
        """How many runs each node has active; nodes without one are left out."""
        sql = "SELECT node, count(*) FROM runs WHERE finished_at IS NULL AND status = 'active' GROUP BY node"
        return {int(row[0]): int(row[1]) for row in self._session.rows(sql) if row[0] is not None}
