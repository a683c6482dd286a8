"""Nodes: as a person looks at them, with the request that one starts nothing more; and as they live.

Members join, beat, take over from each other, and leave. Times are by the database's clock.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.store.facts import Facts
from wakeful.store.records import NodeDetails, NodeRow, NodeState
from wakeful.store.rows import Rows, Verbs
from wakeful.store.schema_version import DOMAINS_KEY, OLDEST_KEY, refuse_outgrown

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


class NodeVerbs(Verbs):
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
        """Ask a node to start nothing more, or to continue; False when it has left."""
        sql = "UPDATE nodes SET draining = ? WHERE id = ? AND stopped_at IS NULL"
        changed = self._session.execute(sql, (int(drain), node_id)) == 1
        self._session.announce()
        return changed

    def held(self) -> str | None:
        """The hold that stands, as it is kept; None where there is none."""
        return self._text("SELECT value FROM meta WHERE key = ?", HOLD_KEY)

    def hold(self, text: str | None) -> None:
        """Hold everything, or continue; with the commit every node does, because each claim reads its node's row.

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


_HERE = "WHERE stopped_at IS NULL"


class Members(Verbs):
    """Verbs on nodes that live; each call is part of the transaction it was made in."""

    _nodes = Rows("nodes", NodeRow)

    def join(self, node: NodeRow) -> None:
        """Become one of the nodes, unless the schema has left this code behind since the store was opened."""
        self._nodes.add(node)
        # Asked after the insert: a node that raises the number locks the table before it looks which nodes are alive.
        # And who holds everything changes the facts first, then the nodes that it sees: this one, or it is seen here.
        facts = Facts(self._session).of([OLDEST_KEY, DOMAINS_KEY, HOLD_KEY])
        refuse_outgrown(facts)
        if HOLD_KEY in facts:
            self._session.execute("UPDATE nodes SET held = ? WHERE id = ?", (hold_level(facts[HOLD_KEY]), node.id))

    def describe(self, node_id: int, details: str) -> None:
        """What others may know about the node has changed."""
        self._session.execute(f"UPDATE nodes SET details = ? {_HERE} AND id = ?", (details, node_id))

    def leave(self, node_id: int, now: int) -> None:
        sql = f"UPDATE nodes SET stopped_at = ?, seen_at = ? {_HERE} AND id = ?"
        self._session.execute(sql, (now, now, node_id))

    def note_life(self, at: int) -> None:
        """The last node that joined was alive at that time, unless it has left."""
        sql = f"UPDATE nodes SET seen_at = ? {_HERE} AND seen_at < ? AND id = (SELECT max(id) FROM nodes)"
        self._session.execute(sql, (at, at))

    def beat(self, node_id: int, now: int, loop_at: int) -> bool | None:
        """The node is alive, and its loop last turned at `loop_at`; whether a person asked it to start nothing more.

        None when another one has taken over what it held: it must start nothing more under this id.
        """
        sql = f"UPDATE nodes SET seen_at = ?, loop_at = ? {_HERE} AND id = ? RETURNING draining"
        found = self._value(sql, now, loop_at, node_id)
        return None if found is None else bool(found)

    def lives(self, node_id: int) -> bool | None:
        """As `beat` answers, without a beat; and so it stays until this transaction ends."""
        return self.standing(node_id).draining

    def standing(self, node_id: int, *, parked: bool = False) -> NodeState:
        """Whether the node may claim, which stays so until this transaction ends; `parked`: also say if any job is."""
        found = self._session.rows(standing_sql(self._session.lock_clause, parked=parked), (node_id,))
        return standing_of(found[0] if found else None)

    def take_over(self, silent: NodeRow, by: int, now: int) -> bool:
        """Declare a node dead, unless it was heard of or taken over since it was read; True for exactly one caller."""
        sql = f"UPDATE nodes SET stopped_at = ?, taken_by = ? {_HERE} AND id = ? AND seen_at = ?"
        return self._session.execute(sql, (now, by, silent.id, silent.seen_at)) == 1

    def correct_seen(self, now: int) -> None:
        """No node was seen in the future: after the database's clock was set back, silence counts from now."""
        self._session.execute(f"UPDATE nodes SET seen_at = ? {_HERE} AND seen_at > ?", (now, now))

    # -- who there is -------------------------------------------------------------------------------------------------

    def last(self) -> NodeRow | None:
        """The latest that joined, also if it has left."""
        return self._nodes.one("ORDER BY id DESC LIMIT 1")

    def alive(self) -> list[NodeRow]:
        """The nodes that have not left, oldest first; one of them may have died without signing off."""
        return self._nodes.all(f"{_HERE} ORDER BY id")

    def serving(self) -> list[NodeRow]:
        """Those of them that may start something."""
        return self._nodes.all(f"{_HERE} AND draining = 0 ORDER BY id")

    def silent(self, since: int) -> list[NodeRow]:
        """Those that were last heard of before that time."""
        return self._nodes.all(f"{_HERE} AND seen_at < ? ORDER BY id", since)

    def stalled(self, since: int) -> list[NodeRow]:
        """Those that say they live, but whose loop has not turned since that time."""
        return self._nodes.all(f"{_HERE} AND loop_at < ? ORDER BY id", since)

    def earlier(self, name: str) -> list[NodeRow]:
        """Incarnations of that name that never said they left."""
        return self._nodes.all(f"{_HERE} AND name = ? ORDER BY id", name)
