"""Nodes that share a store, and the versions of workflows that they have.

The deployed version is the one that a person deployed last. A node that starts again with the code it had before is no
deploy: it must not undo one that was made on another node meanwhile. A node that starts with other code than before is
one, also if that code was deployed earlier: yet while a node with the deployed version lives, it may be an old machine
that was only switched on again. So it waits until there is none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.versions.tables import NodeVersion, NodeVersions

if TYPE_CHECKING:
    from wakeful.domains.workflows.tables import WorkflowRow
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.lease_times import LeaseTimes
    from wakeful.store.interface import Transaction
    from wakeful.store.records import NodeDetails

KEPT_MS = 90 * 86_400_000  # for so long it is known what a node had that has left
MOST_NAMED = 5


class Had(NamedTuple):
    """What a living node has of a workflow."""

    node: int
    name: str
    version: str


def note_version(tx: Transaction, context: Context, workflow: str, version: str) -> int | None:
    """Record what this node has; the number of what was deployed when its place was given it.

    None where nodes do not share the store.
    """
    node = None if tx.exclusive else tx.nodes.get(context.id)
    if node is None:
        return None
    table, place = tx.of(NodeVersions), _place(node)
    known = table.of(workflow)
    last = next((one for one in reversed(known) if one.place == place), None)
    after = last.after if last is not None and last.version == version else _deployed(tx, workflow)
    living = {one.id for one in _living(tx, context.lease)} | {node.id}
    gone = [one for one in known if one.node not in living]
    table.keep(NodeVersion(workflow, node.id, place, version, after))
    old = ids.first_id_at(tx.now - KEPT_MS)
    table.drop(workflow, [one.node for one in gone if one.place == place or one.node < old])
    return after


def forget_version(tx: Transaction, context: Context, workflow: str) -> None:
    """This node has no code of the workflow any more."""
    if not tx.exclusive:
        tx.of(NodeVersions).drop(workflow, [context.id])


def is_last_word(tx: Transaction, context: Context, row: WorkflowRow, after: int | None) -> bool:
    """Whether a version that was deployed before is so again, by a node whose place was given it `after` that one."""
    if after is None or after < _deployed(tx, row.name):
        return False
    return all(one.version != row.version for one in on_nodes(tx, context.lease, row.name))


def _deployed(tx: Transaction, workflow: str) -> int:
    """The number of the version that was deployed last; 0: none ever was."""
    return next((number for number, _, _ in tx.of(WorkflowVerbs).versions(workflow, 1)), 0)


def on_nodes(tx: Transaction, lease: LeaseTimes, workflow: str) -> list[Had]:
    """What living nodes have of a workflow, the youngest last."""
    living = {one.id: one.name for one in _living(tx, lease)}
    return [
        Had(one.node, living[one.node], one.version) for one in tx.of(NodeVersions).of(workflow) if one.node in living
    ]


def is_on_no_node(tx: Transaction, lease: LeaseTimes, row: WorkflowRow) -> bool:
    """Whether nodes are running, and none of them has the deployed version."""
    if tx.exclusive or not row.version or not _living(tx, lease):
        return False
    return all(one.version != row.version for one in on_nodes(tx, lease, row.name))


def version_words(tx: Transaction, lease: LeaseTimes, workflow: str) -> str:
    """Which node has which version."""
    found = on_nodes(tx, lease, workflow)
    if not found:
        return "no node has any version of it"
    named = [f"node {one.name} has {one.version}" for one in found[:MOST_NAMED]]
    more = len(found) - len(named)
    return ", ".join([*named, f"and {more} more"] if more else named)


def _living(tx: Transaction, lease: LeaseTimes) -> list[NodeDetails]:
    return tx.nodes.living(tx.facts.database_now() - lease.lease_ms)


def _place(node: NodeDetails) -> str:
    """The node's name; one that was given none is called after its machine and its process."""
    about = json.loads(node.details)
    host, pid = about.get("host"), about.get("pid")
    return str(host) if host is not None and node.name == f"{host}-{pid}" else node.name
