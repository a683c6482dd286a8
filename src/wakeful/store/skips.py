"""Refused starts in the store, counted by reason."""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.store.records import SkipRow
from wakeful.store.rows import Rows, Verbs

_COUNT_ON = (
    "ON CONFLICT (job_id, reason) DO UPDATE SET times = skips.times + excluded.times, "
    "last_at = excluded.last_at, detail = excluded.detail"
)


class Skips(Verbs):
    """Verbs on refused starts; each call is part of the transaction it was made in."""

    _skips = Rows("skips", SkipRow)

    def count(self, skips: Sequence[SkipRow]) -> None:
        """Count refused starts; one row per job and reason, with the last time."""
        merged: dict[tuple[int, str], SkipRow] = {}
        for skip in skips:  # one statement must not meet a row twice
            seen = merged.get((skip.job_id, skip.reason))
            merged[skip.job_id, skip.reason] = skip._replace(times=skip.times + seen.times) if seen else skip
        if merged:
            self._skips.add(*merged.values(), on_conflict=_COUNT_ON)

    def of(self, job_id: int) -> list[SkipRow]:
        """Why starts of this job were refused, the latest reason first."""
        return self._skips.all("WHERE job_id = ? AND times > 0 ORDER BY last_at DESC, reason", job_id)

    def latest(self, job_ids: Sequence[int]) -> dict[int, str]:
        """The reason for which a start of each of these jobs was last refused."""
        rows = self._skips.among("job_id", job_ids)
        return {row.job_id: row.reason for row in sorted(rows, key=lambda row: (row.job_id, row.last_at, row.reason))}
