"""Stops in the store: who paused or disabled a job that has an owner, for as long as it is stopped."""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.store.rows import Verbs


class Stops(Verbs):
    """Verbs on stops; each call is part of the transaction it was made in."""

    def put(self, job_ids: Sequence[int], *, by_owner: bool) -> None:
        """These jobs were stopped, by their owner or by somebody else."""
        if job_ids:
            changed = "ON CONFLICT (job_id) DO UPDATE SET by_owner = excluded.by_owner"
            rows = [(job_id, int(by_owner)) for job_id in sorted(job_ids)]
            self._session.insert_many("job_stops", ("job_id", "by_owner"), rows, changed)

    def drop(self, job_ids: Sequence[int]) -> None:
        """These jobs go on."""
        if job_ids:
            self._session.delete_in("job_stops", "job_id", list(job_ids))

    def of(self, job_ids: Sequence[int]) -> dict[int, bool]:
        """Whether its owner stopped it, of each of these jobs that is stopped and of which it is known."""
        rows = self._session.select_in(("job_id", "by_owner"), "job_stops", "job_id", list(job_ids))
        return {int(job_id): bool(by_owner) for job_id, by_owner in rows}
