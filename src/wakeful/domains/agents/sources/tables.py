"""Verbs on work items that come from a source; each is part of the transaction it is called in."""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.domains.agents.tables import WorkItem
from wakeful.store.rows import Rows, Verbs

_READY = "agent = ? AND source = ? AND status = 'ready' AND held = 0"


class SourceTables(Verbs):
    """Items of sources besides those that people added."""

    _items = Rows("agent_work", WorkItem)

    def called(self, agent: str, external_ids: Sequence[str]) -> dict[str, WorkItem]:
        """An agent's items by what their source calls them."""
        names = ", ".join("?" for _ in external_ids)
        items = self._items.all(f"WHERE agent = ? AND external_id IN ({names})", agent, *external_ids)
        return {str(item.external_id): item for item in items}

    def unreported(self, agent: str, source: str, limit: int) -> list[WorkItem]:
        """Items that are settled here and that their source still knows as being worked on."""
        rest = "WHERE agent = ? AND held = 1 AND source = ? AND status IN ('done', 'failed') ORDER BY id LIMIT ?"
        return self._items.all(rest, agent, source, limit)

    def waiting(self, agent: str, source: str) -> list[tuple[int, str]]:
        """Waiting items that were never claimed: id here and id at the source."""
        sql = f"SELECT id, external_id FROM agent_work WHERE {_READY} AND mark IS NULL"
        return [(int(row[0]), str(row[1])) for row in self._session.rows(sql, (agent, source))]

    def drop(self, agent: str, source: str, item_ids: Sequence[int]) -> None:
        """Forget items that do not wait at their source any more, unless a run has one of them by now."""
        for item_id in item_ids:
            self._session.execute(f"DELETE FROM agent_work WHERE id = ? AND {_READY}", (item_id, agent, source))

    def forget(self, item_id: int, run_id: int) -> None:
        """Forget an item that a run claimed and did not find."""
        self._session.execute("DELETE FROM agent_work WHERE id = ? AND run_id = ?", (item_id, run_id))

    def rename(self, item_id: int, title: str, body: str | None) -> None:
        """What the item says now."""
        self._session.execute("UPDATE agent_work SET title = ?, body = ? WHERE id = ?", (title, body, item_id))
