"""The nodes of a store as people see them: who lives, who is silent, who was taken over from, and what they run.

A node is judged by the database's clock where nodes share a store. Where one process at a time runs it, the file's
lock says who lives, and nobody beats.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.errors import NodeNotAlive, NodeNotFound
from wakeful.kernel.cluster import membership
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import NodeDetails


class NodeInfo(NamedTuple):
    """One incarnation of a node; times are epoch milliseconds.

    `state` is `alive`, `draining` (told to start nothing more), `drained` (and nothing runs any more), `silent` (not
    heard of for a lease), `dead` (gone without a word; `taken_by` says who took over) or `stopped`.
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


def list_nodes(tx: Transaction, holder: Mapping[str, object] | None, limit: int) -> list[NodeInfo]:
    """Everybody who has not left and the latest who have, the youngest last."""
    rows = tx.nodes.latest(limit)
    names = tx.journal.node_names([row.taken_by for row in rows if row.taken_by is not None])
    running, now = tx.nodes.running(), _now(tx)
    return [_info(row, _state(tx, row, rows[-1].id, holder, now), running, names, now) for row in rows]


def find_node(tx: Transaction, name: str, holder: Mapping[str, object] | None) -> tuple[int, NodeInfo]:
    """The node of that name, the living one before those that are gone; NodeNotFound offers the nearest name."""
    row = tx.nodes.named(name)
    if row is None:
        near = difflib.get_close_matches(name, tx.nodes.names(), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        message = f"There is no node {name!r}.{hint}"
        raise NodeNotFound(message)
    names = tx.journal.node_names([row.taken_by] if row.taken_by is not None else [])
    last, now = tx.journal.last_node(), _now(tx)
    state = _state(tx, row, last.id if last is not None else row.id, holder, now)
    return row.id, _info(row, state, tx.nodes.running(), names, now)


def drain_node(tx: Transaction, name: str, *, drain: bool) -> NodeInfo:
    """Ask the living node of that name to start nothing more, or to go on."""
    node_id, info = find_node(tx, name, None)
    if tx.exclusive:
        message = "A store in a file has one node, and nobody to take its work: stop its server instead."
        raise NodeNotAlive(message)
    if not info.lives or not tx.nodes.drain(node_id, drain=drain):
        message = f"Node {name} is {info.state}: only a node that is alive can be drained."
        raise NodeNotAlive(message)
    return find_node(tx, name, None)[1]


def _now(tx: Transaction) -> int:
    return tx.now if tx.exclusive else tx.journal.database_now()


def _state(tx: Transaction, row: NodeDetails, last: int, holder: Mapping[str, object] | None, now: int) -> str:
    if row.taken_by is not None:
        return "dead"
    if row.stopped_at is not None:
        return "stopped"
    if tx.exclusive:
        return "alive" if holder is not None and row.id == last else "dead"
    if now - row.seen_at >= membership.LEASE_MS:
        return "silent"
    return "draining" if row.draining else "alive"


def _info(row: NodeDetails, state: str, running: Mapping[int, int], names: Mapping[int, str], now: int) -> NodeInfo:
    about = json.loads(row.details)
    runs = running.get(row.id, 0)
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
        stalled=state in ("alive", "draining")
        and row.loop_at is not None
        and now - row.loop_at >= membership.STALLED_MS,
        running=runs,
        taken_by=names.get(row.taken_by) if row.taken_by is not None else None,
    )
