"""Actions in the store: what people did to jobs and alerts, and what is needed to take it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wakeful.store.session import Session


class ActionRow(NamedTuple):
    """What one action did to one job or alert."""

    id: int
    subject: int
    at: int
    what: str
    actor: str
    via: str
    name: str
    before: str
    after: str
    undone_at: int | None = None
    undone_by: str | None = None


class ActionHead(NamedTuple):
    """An action as a whole."""

    id: int
    at: int
    what: str
    actor: str
    via: str
    subjects: int
    undone: int  # how many of them were brought back
    name: str  # the first of them
    undone_at: int | None
    undone_by: str | None


_ROW = ", ".join(ActionRow._fields)
_HEAD = (
    "id, min(at), min(what), min(actor), min(via), count(*), count(undone_at), min(name), max(undone_at), "
    "max(undone_by)"
)


class Actions:
    """Verbs on actions; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, rows: Sequence[ActionRow]) -> None:
        if rows:
            self._session.insert_soon("actions", ActionRow._fields, rows)

    def head(self, action_id: int) -> ActionHead | None:
        """The action of that id."""
        found = self._session.rows(f"SELECT {_HEAD} FROM actions WHERE id = ? GROUP BY id", (action_id,))
        return ActionHead._make(found[0]) if found else None

    def rows(self, action_id: int, after: int, limit: int) -> list[ActionRow]:
        """What is not taken back yet of an action, by subject."""
        sql = f"SELECT {_ROW} FROM actions WHERE id = ? AND subject > ? AND undone_at IS NULL ORDER BY subject LIMIT ?"
        return [ActionRow._make(row) for row in self._session.rows(sql, (action_id, after, limit))]

    def newer(self, subjects: Sequence[int], action_id: int) -> dict[int, ActionRow]:
        """What was done later to these, and stands: the latest of each."""
        only = f"id > {int(action_id)} AND undone_at IS NULL"
        rows = self._session.select_in(ActionRow._fields, "actions", "subject", subjects, only=only)
        return {row.subject: row for row in sorted(map(ActionRow._make, rows), key=lambda row: row.id)}

    def undone(self, action_id: int, subjects: Sequence[int], now: int, who: str) -> None:
        """These were brought back."""
        for subject in subjects:
            self._session.execute(
                "UPDATE actions SET undone_at = ?, undone_by = ? WHERE id = ? AND subject = ?",
                (now, who, action_id, subject),
            )

    def before(self, action_id: int | None, limit: int, actor: tuple[str, str] | None = None) -> list[ActionHead]:
        """The newest actions first, from that id on; `actor`: only of who did it and from where."""
        where, params = ["1 = 1"], list[object]()
        if action_id is not None:
            where.append("id < ?")
            params.append(action_id)
        if actor is not None:
            where.append("actor = ? AND via = ?")
            params += actor
        sql = f"SELECT {_HEAD} FROM actions WHERE {' AND '.join(where)} GROUP BY id ORDER BY id DESC LIMIT ?"
        return [ActionHead._make(row) for row in self._session.rows(sql, (*params, limit))]

    def latest(self, since: int, actor: tuple[str, str]) -> int | None:
        """The newest action from that id on, of this person, that is not taken back."""
        sql = (
            "SELECT id FROM actions WHERE id >= ? AND actor = ? AND via = ? AND undone_at IS NULL "
            "ORDER BY id DESC LIMIT 1"
        )
        found = self._session.rows(sql, (since, *actor))
        return int(found[0][0]) if found else None

    def prune(self, before_id: int, limit: int) -> int:
        """Delete actions older than that id, at most `limit` rows; how many there were."""
        return self._session.execute(
            "DELETE FROM actions WHERE (id, subject) IN "
            "(SELECT id, subject FROM actions WHERE id < ? ORDER BY id, subject LIMIT ?)",
            (before_id, limit),
        )
