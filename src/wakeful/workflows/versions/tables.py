"""The table of the versions that nodes have: verbs on it, each part of the transaction it is called in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wakeful.store.session import Session


class NodeVersion(NamedTuple):
    """The version of a workflow's code that a node has."""

    workflow: str
    node: int
    place: str
    version: str
    after: int


_N = ", ".join(NodeVersion._fields)


class NodeVersions:
    """Verbs on the versions that nodes have."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, workflow: str) -> list[NodeVersion]:
        """Those of one workflow, also of nodes that have left; the youngest node last."""
        sql = f"SELECT {_N} FROM workflow_nodes WHERE workflow = ? ORDER BY node"
        return [NodeVersion._make(row) for row in self._session.rows(sql, (workflow,))]

    def keep(self, row: NodeVersion) -> None:
        """Insert it, or replace what the node had before."""
        self._session.insert_many(
            "workflow_nodes",
            NodeVersion._fields,
            [row],
            "ON CONFLICT (workflow, node) DO UPDATE SET version = excluded.version, after = excluded.after",
        )

    def drop(self, workflow: str, nodes: Iterable[int]) -> None:
        for node in nodes:
            self._session.execute("DELETE FROM workflow_nodes WHERE workflow = ? AND node = ?", (workflow, node))
