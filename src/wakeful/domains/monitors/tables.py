"""The table of monitors: verbs on it, each part of the transaction it is called in."""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.store.rows import Verbs


class Monitors(Verbs):
    """Verbs on the keys of monitors."""

    def give(self, keys: Sequence[tuple[int, str]], now: int) -> None:
        """Set the keys of these jobs; their old keys stop working."""
        rows = [(job_id, key, now) for job_id, key in keys]
        replace = "ON CONFLICT (job_id) DO UPDATE SET key = excluded.key, created_at = excluded.created_at"
        self._session.insert_many("monitors", ("job_id", "key", "created_at"), rows, replace)

    def job_of(self, key: str) -> int | None:
        """The job whose key this is."""
        return self._number("SELECT job_id FROM monitors WHERE key = ?", key)

    def key_of(self, job_id: int) -> str | None:
        return self._text("SELECT key FROM monitors WHERE job_id = ?", job_id)
