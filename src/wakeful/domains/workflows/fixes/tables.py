"""The table of corrections: verbs on it, each part of the transaction it is called in."""

from __future__ import annotations

from typing import Any, NamedTuple

from wakeful.store.rows import Rows, Verbs, where

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


class Fixes(Verbs):
    """Verbs on corrections."""

    _fixes = Rows("workflow_fixes", FixRow)

    def add(self, row: FixRow) -> None:
        self._fixes.add(row)

    def get(self, fix_id: int) -> FixRow | None:
        return self._fixes.one("WHERE id = ?", fix_id)

    def of(self, workflow: str, limit: int, before: int | None = None) -> list[FixRow]:
        """The newest first."""
        clause, params = where([("workflow = ?", workflow), ("id < ?", before)])
        return self._fixes.all(f"{clause} ORDER BY id DESC LIMIT ?", *params, limit)

    def latest(self, workflow: str) -> FixRow | None:
        return next(iter(self.of(workflow, 1)), None)

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
