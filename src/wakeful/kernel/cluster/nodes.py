"""The nodes of a store as people see them: alive, silent or taken over, and what they run.

A node is judged by the database's clock where nodes share a store. Where one process at a time runs it, the file's
lock says which process is alive, and there are no heartbeats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.errors import NodeNotAlive, NodeNotFound
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.spelling import did_you_mean
from wakeful.triggers.moments import from_ms, iso, to_ms

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import NodeDetails


#: How the name of a node begins that runs one job by itself and is gone then: it is no server.
LONE_RUN = "cli:"


class Node(NamedTuple):
    """One incarnation of a node: a process that runs jobs from a store.

    `state` is `alive`, `draining` (asked to start nothing more), `drained` (and nothing runs any more), `silent` (not
    heard of for a lease), `dead` (ended without signing off; `taken_by` says who took over) or `stopped`.
    """

    id: str
    name: str
    state: str
    host: str | None
    pid: int | None
    version: str | None
    schema: int | None
    labels: list[str]
    kinds: list[str]
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    loop_at: datetime | None
    stalled: bool
    running: int
    taken_by: str | None

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.id} {self.state}>"

    @property
    def lives(self) -> bool:
        return self.state in ("alive", "draining", "drained")

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        times = ("started_at", "seen_at", "stopped_at", "loop_at")
        return {
            **self._asdict(),
            **{name: iso(to_ms(at)) if (at := getattr(self, name)) is not None else None for name in times},
        }


class Seen(NamedTuple):
    """What shows which nodes are alive: the process that holds a store of one node, and the leases of a shared one."""

    holder: Mapping[str, object] | None = None
    times: LeaseTimes = LeaseTimes()
    own: int | None = None  # the node that looks, while it runs


NOTHING_SEEN = Seen()


def list_nodes(tx: Transaction, seen: Seen, limit: int) -> list[Node]:
    """Nodes that have not left and the latest that have, the youngest last."""
    rows = tx.nodes.latest(limit)
    names = tx.nodes.names_of([row.taken_by for row in rows if row.taken_by is not None])
    return _infos(tx, seen, rows, rows[-1].id if rows else 0, names)


def node_states(tx: Transaction, seen: Seen, limit: int) -> dict[str, bool]:
    """Whether each node is alive, by name: those that have not left, and the latest that have, up to `limit`."""
    rows = tx.nodes.latest(limit)[-limit:]
    now = tx.now if tx.exclusive else tx.facts.database_now()
    last = rows[-1].id if rows else 0
    states = {
        row.name: _one_node_state(row, last, seen) if tx.exclusive else _state(row, now, seen.times)
        for row in sorted(rows, key=lambda row: row.stopped_at is None)
        if not row.name.startswith(LONE_RUN)
    }
    return {name: state in ("alive", "draining") for name, state in sorted(states.items())}


def find_node(tx: Transaction, name: str, seen: Seen = NOTHING_SEEN) -> tuple[int, Node]:
    """The node of that name, a live one before those that are gone; NodeNotFound offers the nearest name."""
    row = tx.nodes.named(name)
    if row is None:
        message = f"There is no node {name!r}.{did_you_mean(name, tx.nodes.names())}"
        raise NodeNotFound(message)
    names = tx.nodes.names_of([row.taken_by] if row.taken_by is not None else [])
    last = tx.members.last()
    return row.id, _infos(tx, seen, [row], last.id if last is not None else row.id, names)[0]


def drain_node(tx: Transaction, name: str, seen: Seen = NOTHING_SEEN, *, drain: bool) -> Node:
    """Ask the live node of that name to start nothing more, or to continue."""
    node_id, info = find_node(tx, name, seen)
    if tx.exclusive:
        message = "A SQLite store has only one node, so no other can take over its work: stop its server instead."
        raise NodeNotAlive(message)
    if not info.lives or not tx.nodes.drain(node_id, drain=drain):
        message = f"Node {name} is {info.state}: only a node that is alive can be drained."
        raise NodeNotAlive(message)
    return find_node(tx, name, seen)[1]


def is_gone(tx: Transaction, node_id: int, seen: Seen) -> bool:
    """Whether that incarnation of a node has ended, so that its runs are no longer running."""
    if node_id == seen.own:
        return False
    if tx.exclusive:
        last = tx.members.last()
        return seen.holder is None or last is None or last.id != node_id
    row = tx.nodes.get(node_id)
    return row is None or _state(row, tx.facts.database_now(), seen.times) in ("dead", "stopped", "silent")


def is_served(tx: Transaction, seen: Seen) -> bool:
    """Whether any server runs this store now."""
    if seen.own is not None:
        return True
    if tx.exclusive:
        return seen.holder is not None
    return bool(tx.nodes.living(tx.facts.database_now() - seen.times.lease_ms))


def _infos(tx: Transaction, seen: Seen, rows: Sequence[NodeDetails], last: int, names: Mapping[int, str]) -> list[Node]:
    now = tx.now if tx.exclusive else tx.facts.database_now()
    running = tx.nodes.running()
    found = []
    for row in _seen_now(tx, seen, rows, last) if tx.exclusive else rows:
        state = _one_node_state(row, last, seen) if tx.exclusive else _state(row, now, seen.times)
        blocked_ms = now - row.loop_at if row.loop_at is not None else 0
        stalled = state in ("alive", "draining") and blocked_ms >= seen.times.stalled_ms
        found.append(_info(row, state, running.get(row.id, 0), names, stalled=stalled))
    return found


def _seen_now(tx: Transaction, seen: Seen, rows: Sequence[NodeDetails], last: int) -> list[NodeDetails]:
    """Without heartbeats, the lock of the file shows that the last node is alive, and the store when it last was."""
    at = tx.now if seen.holder is not None else int(tx.facts.of(["alive_at"]).get("alive_at", "0"))
    return [row._replace(seen_at=max(at, row.seen_at)) if row.id == last else row for row in rows]


def _one_node_state(row: NodeDetails, last: int, seen: Seen) -> str:
    if row.taken_by is None and row.stopped_at is not None:
        return "stopped"
    return "alive" if row.taken_by is None and seen.holder is not None and row.id == last else "dead"


def _state(row: NodeDetails, now: int, times: LeaseTimes) -> str:
    if row.taken_by is not None:
        return "dead"
    if row.stopped_at is not None:
        return "stopped"
    if now - row.seen_at >= times.lease_ms:
        return "silent"
    return "draining" if row.draining else "alive"


def _info(row: NodeDetails, state: str, runs: int, names: Mapping[int, str], *, stalled: bool) -> Node:
    about = json.loads(row.details)
    return Node(
        id=ids.encode("node", row.id),
        name=row.name,
        state="drained" if state == "draining" and not runs else state,
        host=about.get("host"),
        pid=about.get("pid"),
        version=about.get("version"),
        schema=about.get("schema"),
        labels=list(about.get("labels", ())),
        kinds=list(about.get("kinds", ())),
        started_at=from_ms(row.started_at),
        seen_at=from_ms(row.seen_at),
        stopped_at=from_ms(row.stopped_at) if row.stopped_at is not None else None,
        loop_at=from_ms(row.loop_at) if row.loop_at is not None else None,
        stalled=stalled,
        running=runs,
        taken_by=names.get(row.taken_by) if row.taken_by is not None else None,
    )
