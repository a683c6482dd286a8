"""Several nodes on one store: who lives, who is dead, and who takes over what the dead held.

A node beats by the database's clock. Silent for a lease it is dead: one other node marks it so (compare and set on its
row) and in the same transaction records its runs as crashed and queues them again. A node admits only while its own
last beat is young by boot time, which goes on through suspend; and every claim reads the node's own row again, so that
one that was frozen and declared dead meanwhile claims nothing. What it still had running settles as lost.

On a store that only one process can run (SQLite) none of this happens: the file lock stands for it.
"""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, NamedTuple

from wakeful.errors import StoreLocked
from wakeful.kernel.claim import Node, serves
from wakeful.kernel.recovery import Recovered, crash_all, welcome_all
from wakeful.kernel.settle import AlertChange
from wakeful.kernel.turn import apply_alert
from wakeful.store.records import Node as NodeRow

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Transaction
    from wakeful.store.records import RunRow

BEAT_MS = 5_000
LEASE_MS = 20_000
#: A node stops admitting this long before others may call it dead.
MARGIN_MS = 5_000


class Lease:
    """How long ago, by boot time, this node was last known to be alive to the others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._confirmed = clock.boot()
        self.next_beat = 0

    def beat_due(self) -> bool:
        return self._clock.boot() >= self.next_beat

    def asked(self) -> int:
        """A beat is under way; the moment it counts from."""
        self.next_beat = self._clock.boot() + BEAT_MS
        return self._clock.boot()

    def confirm(self, asked_at: int) -> None:
        self._confirmed = asked_at

    def holds(self) -> bool:
        """Whether this node may still start anything."""
        return self._clock.boot() - self._confirmed < LEASE_MS - MARGIN_MS


class Beat(NamedTuple):
    """What a beat found."""

    alive: bool  # False: others took over from us
    taken: list[str]  # the names of nodes we took over from


def beat(tx: Transaction, node: Node) -> Beat:
    """Say that we live, and take over from those who have not for a lease."""
    now = tx.journal.database_now()
    if not tx.journal.beat(node.id, now):
        return Beat(alive=False, taken=[])
    taken = []
    for silent in tx.journal.silent(now - LEASE_MS):
        if silent.id != node.id and tx.journal.take_over(silent, node.id, now):
            take_runs(tx, node, tx.runs.of_nodes([silent.id]))
            message = f"Node {silent.name} was silent for more than {LEASE_MS // 1000} s; its runs were taken over."
            apply_alert(tx, node, None, AlertChange(f"node:{silent.name}", "dead_node", message))
            taken.append(silent.name)
    return Beat(alive=True, taken=taken)


def take_runs(tx: Transaction, node: Node, runs: list[RunRow]) -> None:
    """Record a dead node's runs as crashed, queue them again, and free what they held."""
    if runs:
        crash_all(tx, node, runs)


def recover_name(tx: Transaction, node: Node, name: str) -> Recovered:
    """Take over from earlier incarnations of our own name; a living node of that name is not to be pushed aside."""
    now = tx.journal.database_now()
    runs: list[RunRow] = []
    for earlier in tx.journal.earlier(name):
        if now - earlier.seen_at < LEASE_MS and _still_there(earlier):
            message = (
                f"A node named {name} is alive (seen {(now - earlier.seen_at) / 1000:.0f} s ago): use another name."
            )
            raise StoreLocked(message)
        if tx.journal.take_over(earlier, node.id, now):
            runs += tx.runs.of_nodes([earlier.id])
    take_runs(tx, node, runs)
    welcome_all(tx, node)
    return Recovered([run.id for run in runs], 0, 0)


def _still_there(node: NodeRow) -> bool:
    """A node of this machine whose process is gone needs no lease to be known dead."""
    details = json.loads(node.details)
    if details.get("host") != socket.gethostname():
        return True
    try:
        os.kill(int(details["pid"]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return int(details["pid"]) != os.getpid()


def join(tx: Transaction, node: Node, name: str, details: str) -> None:
    """Become a node, by the database's clock."""
    now = tx.journal.database_now()
    tx.journal.join(NodeRow(node.id, name, now, now, None, details))
    tx.journal.close_alert(f"node:{name}", tx.now)


def served_elsewhere(tx: Transaction, key: str) -> bool:
    """Whether a living node can run what is parked on `key`."""
    for other in tx.journal.alive():
        details = json.loads(other.details)
        if serves(frozenset(details.get("kinds", ())), frozenset(details.get("labels", ())), key):
            return True
    return False
