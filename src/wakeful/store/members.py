"""Members: the nodes of a store as they live. They join, beat, take over from each other, and leave.

Times are by the database's clock. How people see nodes is in `nodes`.
"""

from __future__ import annotations

from wakeful.store.facts import Facts
from wakeful.store.nodes import HOLD_KEY, hold_level, standing_of, standing_sql
from wakeful.store.records import NodeRow, NodeState
from wakeful.store.rows import Rows, Verbs
from wakeful.store.schema_version import DOMAINS_KEY, OLDEST_KEY, refuse_outgrown

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
