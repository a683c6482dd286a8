"""The table of the versions that nodes have: verbs on it, each part of the transaction it is called in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wakeful.store.rows import Rows, Verbs

if TYPE_CHECKING:
    from collections.abc import Iterable


class NodeVersion(NamedTuple):
    """The version of a workflow's code that a node has."""

    workflow: str
    node: int
    place: str
    version: str
    after: int


class NodeVersions(Verbs):
    """Verbs on the versions that nodes have."""

    _versions = Rows("workflow_nodes", NodeVersion)

    def of(self, workflow: str) -> list[NodeVersion]:
        """Those of one workflow, also of nodes that have left; the youngest node last."""
        return self._versions.all("WHERE workflow = ? ORDER BY node", workflow)

    def keep(self, row: NodeVersion) -> None:
        """Insert it, or replace what the node had before."""
        self._versions.put(row, key=("workflow", "node"))

    def drop(self, workflow: str, nodes: Iterable[int]) -> None:
        for node in nodes:
            self._session.execute("DELETE FROM workflow_nodes WHERE workflow = ? AND node = ?", (workflow, node))
