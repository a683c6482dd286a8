"""Several nodes on one store: which are alive, which are dead, and who takes over the work of dead ones.

A node beats by the database's clock. Silent for a lease it is dead: one other node marks it so (compare and set on its
row) and in the same transaction records its runs as crashed and queues them again. A node admits only while its own
last beat is young by boot time, which goes on through suspend; and every claim reads the node's own row again, so that
one that was frozen and declared dead meanwhile claims nothing. What it still had running settles as lost.

On a store that only one process can run (SQLite) none of this happens: the file lock replaces it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from wakeful.errors import StoreLocked
from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import alert_key, close_alert, open_alert
from wakeful.kernel.engine.lines import requeue_served
from wakeful.kernel.engine.recovery import Recovered, crash_all
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.kernel.rules.parking import serves
from wakeful.store.process_identity import is_dead, myself
from wakeful.store.records import NodeRow
from wakeful.store.schema_version import known_schemas
from wakeful.version import __version__

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Transaction
    from wakeful.store.records import RunRow

#: A lease is checked this long after it may have run out, so that a heartbeat at the last moment still counts.
SOON_MS = 100


class Lease:
    """How long ago, by boot time, this node was last known to be alive to the others."""

    def __init__(self, clock: Clock, times: LeaseTimes) -> None:
        self._clock = clock
        self._times = times
        self._confirmed = clock.boot()

    def confirm(self, asked_at: int) -> None:
        """A beat that was requested at boot time `asked_at` was stored."""
        self._confirmed = asked_at

    def holds(self) -> bool:
        """Whether this node may still start anything."""
        return self._clock.boot() - self._confirmed < self._times.lease_ms - self._times.margin_ms


class Beat(NamedTuple):
    """What a beat found."""

    alive: bool  # False: others took over from us
    draining: bool  # a person asked us to start nothing more


def beat(tx: Transaction, node_id: int, blocked_ms: int) -> Beat:
    """Record that this node is alive, and for how long its loop has been blocked."""
    now = tx.facts.database_now()
    draining = tx.members.beat(node_id, now, now - blocked_ms)
    return Beat(alive=draining is not None, draining=bool(draining))


class PeerObserver:
    """What this node itself observed of the others: when, by boot time, each last sent a new heartbeat.

    The database's clock decides who is silent; but when it jumps forward, every node seems to be. A node that we heard
    ourselves within a lease is not.
    """

    def __init__(self, clock: Clock, times: LeaseTimes) -> None:
        self._clock = clock
        self._times = times
        self._heard: dict[int, tuple[int, int | None]] = {}

    def note(self, rows: Iterable[NodeRow]) -> None:
        """The rows as they are now; of a node seen for the first time we cannot say when it was heard."""
        now = self._clock.boot()
        heard: dict[int, tuple[int, int | None]] = {}
        for node in rows:
            seen_at, at = self._heard.get(node.id, (node.seen_at, None))
            heard[node.id] = (node.seen_at, at if seen_at == node.seen_at else now)
        self._heard = heard

    def heard_lately(self, node_id: int) -> bool:
        _, at = self._heard.get(node_id, (0, None))
        return at is not None and self._clock.boot() - at < self._times.lease_ms - self._times.beat_ms


class PeerStatus(NamedTuple):
    """What a look at the others found."""

    taken: list[str]  # the names of those we took over from
    left: list[NodeRow]  # nodes that have not left or been taken over
    soonest: int  # in how many milliseconds the next lease may run out


def take_over_silent(tx: Transaction, context: Context, observer: PeerObserver) -> PeerStatus:
    """Take over from nodes that have been silent for a lease."""
    now, times = tx.facts.database_now(), context.lease
    tx.members.correct_seen(now)
    taken = []
    for silent in tx.members.silent(now - times.lease_ms):
        if (
            silent.id != context.id
            and not observer.heard_lately(silent.id)
            and tx.members.take_over(silent, context.id, now)
        ):
            seconds = times.lease_ms // 1000
            why = f"Node {silent.name} was silent for more than {seconds} s; another node took over its runs."
            _take_over_runs(tx, context, silent, why)
            taken.append(silent.name)
    for stalled in tx.members.stalled(now - times.given_up_ms):
        if stalled.id != context.id and tx.members.take_over(stalled, context.id, now):
            why = f"The event loop of node {stalled.name} was blocked for 10 minutes; another node took over its runs."
            _take_over_runs(tx, context, stalled, why)
            taken.append(stalled.name)
    left = tx.members.alive()
    _alert_stalled(tx, context, {row.id for row in tx.members.stalled(now - times.stalled_ms)}, left)
    leases = [row.seen_at + times.lease_ms - now for row in left if row.id != context.id]
    return PeerStatus(taken, left, max(min(leases, default=times.lease_ms), 0) + SOON_MS)


def _take_over_runs(tx: Transaction, context: Context, dead: NodeRow, why: str) -> None:
    take_runs(tx, context, tx.runs.of_nodes([dead.id]))
    open_alert(tx, context, "dead_node", dead.name, why)


def _alert_stalled(tx: Transaction, context: Context, stalled: set[int], rows: Iterable[NodeRow]) -> None:
    reported = {alert.key for alert in tx.alerts.all_open() if alert.kind == "stalled"}
    for row in rows:
        key = alert_key("stalled", row.name)
        if row.id in stalled and key not in reported:
            blocked_s = context.lease.stalled_ms // 1000
            why = f"The event loop of node {row.name} has been blocked for {blocked_s} s by a handler."
            open_alert(tx, context, "stalled", row.name, why)
        elif row.id not in stalled and key in reported:
            close_alert(tx, context, "stalled", row.name)


def take_runs(tx: Transaction, context: Context, runs: list[RunRow]) -> int:
    """Record a dead node's runs as crashed, queue them again, and free what they held; how many there were."""
    if runs:
        crash_all(tx, context, runs)
    return len(runs)


def earlier_lives(tx: Transaction, context: Context, name: str) -> list[NodeRow]:
    """The incarnations of that name that ended without signing off; StoreLocked if one of them is alive."""
    now, found = tx.facts.database_now(), tx.members.earlier(name)
    for node in found:
        if now - node.seen_at < context.lease.lease_ms and not is_dead(node.id, json.loads(node.details)):
            ago = f"{(now - node.seen_at) / 1000:.0f} s ago"
            message = f"A node named {name} is alive (seen {ago}): use another name."
            raise StoreLocked(message)
    return found


def recover_name(tx: Transaction, context: Context, name: str, alive: Collection[int] = ()) -> Recovered:
    """Take over from earlier incarnations of our own name; a live node of that name is not replaced.

    `alive`: runs that outlived a stop in threads of this very process; they are this incarnation's now.
    """
    tx.runs.adopt(sorted(alive), context.id)
    now = tx.facts.database_now()
    runs: list[RunRow] = []
    for earlier in earlier_lives(tx, context, name):
        if tx.members.take_over(earlier, context.id, now):
            runs += tx.runs.of_nodes([earlier.id])
    take_runs(tx, context, runs)
    requeue_served(tx, context)
    return Recovered([run.id for run in runs], 0, 0)


def join(tx: Transaction, context: Context, name: str, details: str) -> None:
    """Become a node, by the database's clock."""
    now = tx.facts.database_now()
    tx.members.join(NodeRow(context.id, name, now, now, None, details))
    close_alert(tx, context, "dead_node", name)


def own_details(context: Context) -> str:
    """What other nodes and people may know about this one."""
    about = {**myself(), "version": __version__, **known_schemas(), "min_interval": context.min_interval}
    return json.dumps({**about, "kinds": sorted(context.kinds), "labels": sorted(context.labels)})


def served_elsewhere(tx: Transaction, key: str) -> bool:
    """Whether a live node can run jobs parked on `key`."""
    for other in tx.members.serving():
        details = json.loads(other.details)
        if serves(frozenset(details.get("kinds", ())), frozenset(details.get("labels", ())), key):
            return True
    return False
