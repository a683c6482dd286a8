"""The nodes that share a store: who they are, and asking one to start nothing more."""

from __future__ import annotations

from wakeful.kernel.cluster.nodes import Node, Seen, drain_node, list_nodes
from wakeful.scheduler.core import Core


class NodesApi(Core):
    """What can be asked about nodes, whichever process asks."""

    async def list_nodes(self, *, limit: int = 200) -> list[Node]:
        """Every node that has not left, and the latest that have, the youngest last.

        >>> [(node.name, node.state) for node in await scheduler.list_nodes()]
        [('here', 'alive')]
        """
        seen = self._seen()
        return await self._store.read(lambda tx: list_nodes(tx, seen, limit))

    async def drain_node(self, name: str, *, drain: bool = True) -> Node:
        """Ask a live node to start no new runs (or, with `drain=False`, to start runs again); it finishes those it has.

        Raises NodeNotFound for a name no node ever had, NodeNotAlive for one that is not alive.

        >>> node = await scheduler.drain_node("north")
        >>> node.state
        'drained'
        """
        return await self._write(lambda tx: drain_node(tx, name, Seen(times=self._tuning.lease), drain=drain))
