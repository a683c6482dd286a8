"""The table of corrections: verbs on it, each part of the transaction it is called in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from wakeful.store.session import Session

#: A correction in one of these is not over.
OPEN = ("asked", "proposed", "accepted")


class FixRow(NamedTuple):
    """A requested correction, and what became of it."""

    id: int
    workflow: str
    handler: str
    run_id: int
    version: str
    number: int
    status: str
    node: int
    at: int
    ended_at: int | None
    before: str
    files: str | None = None
    made: str | None = None
    note: str | None = None
    who: str | None = None


_F = ", ".join(FixRow._fields)


class Fixes:
    """Verbs on corrections."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, row: FixRow) -> None:
        self._session.insert_many("workflow_fixes", FixRow._fields, [row])

    def get(self, fix_id: int) -> FixRow | None:
        found = self._session.rows(f"SELECT {_F} FROM workflow_fixes WHERE id = ?", (fix_id,))
        return FixRow._make(found[0]) if found else None

    def of(self, workflow: str, limit: int, before: int | None = None) -> list[FixRow]:
        """The newest first."""
        where, params = "workflow = ?", list[object]([workflow])
        if before is not None:
            where, params = f"{where} AND id < ?", [workflow, before]
        sql = f"SELECT {_F} FROM workflow_fixes WHERE {where} ORDER BY id DESC LIMIT ?"
        return [FixRow._make(row) for row in self._session.rows(sql, (*params, limit))]

    def latest(self, workflow: str) -> FixRow | None:
        found = self.of(workflow, 1)
        return found[0] if found else None

    def change(self, fix_id: int, **values: Any) -> None:
        names = ", ".join(f"{key} = ?" for key in values)
        self._session.execute(f"UPDATE workflow_fixes SET {names} WHERE id = ?", (*values.values(), fix_id))

    def prune(self, before_id: int, limit: int) -> int:
        """Delete corrections below that id that are over."""
        return self._session.execute(
            "DELETE FROM workflow_fixes WHERE id IN (SELECT id FROM workflow_fixes WHERE id < ? "
            "AND status NOT IN ('asked', 'proposed', 'accepted') ORDER BY id LIMIT ?)",
            (before_id, limit),
        )
