"""Figures about the store for those who ask every few seconds: each question looks at a bounded number of rows.

Where there may be more of something than the bound, the figure is the bound: "at least so many".
"""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.store.listing import DONE_SQL, JOINED, shown
from wakeful.store.rows import Verbs

#: So many are counted of what there may be many of.
MOST = 10_000

_APPROVAL = "EXISTS (SELECT 1 FROM runs r WHERE r.id = s.run_id AND r.status = 'waiting' AND r.phase = 'approval')"
_STATUS = (
    f"CASE WHEN j.removed_at IS NOT NULL THEN '' WHEN s.run_id IS NOT NULL AND {_APPROVAL} THEN 'waiting' "
    "WHEN s.run_id IS NOT NULL THEN 'running' WHEN s.paused = 1 THEN 'paused' WHEN s.enabled = 1 THEN 'idle' "
    f"WHEN {DONE_SQL} THEN 'done' ELSE 'disabled' END"
)


class Gauges(Verbs):
    """Questions with a bound; each is part of the transaction it was made in."""

    def due(self, now: int, most: int = MOST) -> int:
        """How many jobs are due and not started, at most `most`."""
        due = "SELECT 1 FROM job_state WHERE priority = p.level AND due_at IS NOT NULL AND due_at <= ? LIMIT ?"
        sql = f"SELECT sum((SELECT count(*) FROM ({due}) d)) FROM priorities p"
        return min(most, self._count(sql, now, most))

    def statuses(self, after: int, limit: int, hidden: Sequence[str] = ()) -> tuple[dict[str, int], int | None]:
        """Of the next `limit` jobs by id, how many there are in each status; and after which id to continue, if at all.

        Removed jobs and hidden kinds are not counted.
        """
        kinds = f"CASE WHEN NOT (1 = 1{shown('j.kind', hidden)}) THEN '' ELSE {_STATUS} END" if hidden else _STATUS
        some = f"SELECT j.id, {kinds} AS status FROM {JOINED} WHERE j.id > ? ORDER BY j.id LIMIT ?"
        sql = f"SELECT status, count(*), max(id) FROM ({some}) x GROUP BY status"
        rows = self._session.rows(sql, (*hidden, after, limit))
        found = {str(status): int(count) for status, count, _ in rows}
        last = max((int(row[2]) for row in rows), default=after)
        is_whole = sum(found.values()) < limit
        found.pop("", None)
        return found, None if is_whole else last

    def lanes(self, keys: Sequence[str], limit: int) -> list[tuple[str, int, int | None]]:
        """(lane, places taken, size) of these lanes, and of the first others up to `limit`, the busiest first."""
        chosen = self._session.select_in(("key", "used", "size"), "lanes", "key", sorted(keys)) if keys else []
        others = self._session.rows("SELECT key, used, size FROM lanes ORDER BY key LIMIT ?", (limit,))
        found = {str(key): (int(used), size) for key, used, size in [*others, *chosen]}
        wanted = [*(key for key in keys if key in found), *(key for key in found if key not in keys)][:limit]
        rows = [(key, found[key][0], found[key][1]) for key in wanted]
        return sorted(rows, key=lambda row: (-row[1], row[0]))

    def open_alerts(self, most: int = MOST) -> dict[str, int]:
        """How many incidents are open, by kind, among the first `most`."""
        some = "SELECT kind FROM alerts WHERE closed_at IS NULL LIMIT ?"
        rows = self._session.rows(f"SELECT kind, count(*) FROM ({some}) a GROUP BY kind ORDER BY kind", (most,))
        return {str(kind): int(count) for kind, count in rows}

    def size(self) -> int:
        """How many bytes the database takes, by its own word."""
        sql = "SELECT pg_database_size(current_database())"
        if self._session.exclusive:
            sql = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        return self._count(sql)
