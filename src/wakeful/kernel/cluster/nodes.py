"""The nodes of a store as people see them: who lives, who is silent, who was taken over from, and what they run.

A node is judged by the database's clock where nodes share a store. Where one process at a time runs it, the file's
lock says which process is alive, and there are no heartbeats.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.errors import NodeNotAlive, NodeNotFound
from wakeful.kernel.cluster.lease_times import LeaseTimes
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import NodeDetails


class NodeInfo(NamedTuple):
    """One incarnation of a node; times are epoch milliseconds.

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
    started_at: int
    seen_at: int
    stopped_at: int | None
    loop_at: int | None
    stalled: bool
    running: int
    taken_by: str | None

    @property
    def lives(self) -> bool:
        return self.state in ("alive", "draining", "drained")

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        times = ("started_at", "seen_at", "stopped_at", "loop_at")
        return {
            **self._asdict(),
            **{name: iso(ms) if (ms := getattr(self, name)) is not None else None for name in times},
        }


class Seen(NamedTuple):
    """What shows which nodes are alive: the process that holds a store of one node, and the leases of a shared one."""

    holder: Mapping[str, object] | None = None
    times: LeaseTimes = LeaseTimes()


NOTHING_SEEN = Seen()


def list_nodes(tx: Transaction, seen: Seen, limit: int) -> list[NodeInfo]:
    """Everybody who has not left and the latest who have, the youngest last."""
    rows = tx.nodes.latest(limit)
    names = tx.journal.node_names([row.taken_by for row in rows if row.taken_by is not None])
    return _infos(tx, seen, rows, rows[-1].id if rows else 0, names)


def find_node(tx: Transaction, name: str, seen: Seen = NOTHING_SEEN) -> tuple[int, NodeInfo]:
    """The node of that name, the living one before those that are gone; NodeNotFound offers the nearest name."""
    row = tx.nodes.named(name)
    if row is None:
        near = difflib.get_close_matches(name, tx.nodes.names(), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        message = f"There is no node {name!r}.{hint}"
        raise NodeNotFound(message)
    names = tx.journal.node_names([row.taken_by] if row.taken_by is not None else [])
    last = tx.journal.last_node()
    return row.id, _infos(tx, seen, [row], last.id if last is not None else row.id, names)[0]


def drain_node(tx: Transaction, name: str, seen: Seen = NOTHING_SEEN, *, drain: bool) -> NodeInfo:
    """Ask the living node of that name to start nothing more, or to go on."""
    node_id, info = find_node(tx, name, seen)
    if tx.exclusive:
        message = "A SQLite store has only one node, so no other can take over its work: stop its server instead."
        raise NodeNotAlive(message)
    if not info.lives or not tx.nodes.drain(node_id, drain=drain):
        message = f"Node {name} is {info.state}: only a node that is alive can be drained."
        raise NodeNotAlive(message)
    return find_node(tx, name, seen)[1]


def _infos(
    tx: Transaction, seen: Seen, rows: Sequence[NodeDetails], last: int, names: Mapping[int, str]
) -> list[NodeInfo]:
    now = tx.now if tx.exclusive else tx.journal.database_now()
    running = tx.nodes.running()
    found = []
    for row in rows:
        state = _one_node_state(row, last, seen) if tx.exclusive else _state(row, now, seen.times)
        stood = now - row.loop_at if row.loop_at is not None else 0
        stalled = state in ("alive", "draining") and stood >= seen.times.stalled_ms
        found.append(_info(row, state, running.get(row.id, 0), names, stalled=stalled))
    return found


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


def _info(row: NodeDetails, state: str, runs: int, names: Mapping[int, str], *, stalled: bool) -> NodeInfo:
    about = json.loads(row.details)
    return NodeInfo(
        id=ids.encode("node", row.id),
        name=row.name,
        state="drained" if state == "draining" and not runs else state,
        host=about.get("host"),
        pid=about.get("pid"),
        version=about.get("version"),
        schema=about.get("schema"),
        labels=list(about.get("labels", ())),
        kinds=list(about.get("kinds", ())),
        started_at=row.started_at,
        seen_at=row.seen_at,
        stopped_at=row.stopped_at,
        loop_at=row.loop_at,
        stalled=stalled,
        running=runs,
        taken_by=names.get(row.taken_by) if row.taken_by is not None else None,
    )
