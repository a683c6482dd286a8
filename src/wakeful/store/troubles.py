"""What is not well, found through indexes of what failed: their cost is that of the failures, not of the history."""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.store.alerts import OF_RUNS
from wakeful.store.listing import shown
from wakeful.store.rows import Verbs

#: As the index of them has it.
_FAILED = "outcome IN ('error', 'timeout', 'crashed')"
_LAST_ATTEMPT = "NOT EXISTS (SELECT 1 FROM runs n WHERE n.retry_of = r.id)"
_WATCHED = "s.enabled = 1 AND s.paused = 0 AND j.removed_at IS NULL"
_NOT_REPORTED = f"NOT EXISTS (SELECT 1 FROM alerts a WHERE a.job_id = s.job_id AND a.closed_at IS NULL AND {OF_RUNS})"


class Troubles(Verbs):
    """Questions about failures; each call is part of the transaction it was made in."""

    def failing(self, limit: int, hidden: Sequence[str] = ()) -> list[tuple[str, int, bool]]:
        """Jobs that failed last and have not succeeded since, each with the time of the first such failure.

        The last value says whether it is not known how the last run ended.

        Stopped jobs, jobs of hidden kinds, those about to be tried again and those with an alert about their runs are
        left out.
        """
        rows = self._session.rows(
            "SELECT j.name, coalesce(s.failing_since, s.last_finished_at, 0), s.last_outcome FROM job_state s "
            f"JOIN jobs j ON j.id = s.job_id WHERE s.last_error IS NOT NULL AND {_WATCHED}{shown('j.kind', hidden)} "
            f"AND (s.errors > 0 OR (s.queued = 0 AND s.run_id IS NULL)) AND {_NOT_REPORTED} ORDER BY s.job_id LIMIT ?",
            (*hidden, limit),
        )
        return [(str(name), int(since), outcome == "unknown") for name, since, outcome in rows]

    def failed_count(self, from_id: int, limit: int, hidden: Sequence[str] = ()) -> int:
        """How many runs made from that id on began and failed; at most `limit` are counted."""
        sql = (
            f"SELECT count(*) FROM (SELECT 1 AS one FROM runs WHERE {_FAILED} AND id >= ? AND started_at IS NOT NULL"
            f"{shown('kind', hidden)} LIMIT ?) found"
        )
        return self._count(sql, from_id, *hidden, limit)

    def failed_often(self, times: int, limit: int, hidden: Sequence[str] = ()) -> list[tuple[int, str]]:
        """The jobs whose last attempts failed several times among the newest `limit` failures.

        Those that `failing` names or leaves out are left out.
        """
        newest = f"SELECT r.job_id FROM runs r WHERE r.{_FAILED} AND {_LAST_ATTEMPT} ORDER BY r.id DESC LIMIT ?"
        rows = self._session.rows(
            f"SELECT s.job_id, j.name FROM (SELECT job_id, count(*) AS times FROM ({newest}) newest GROUP BY job_id) f "
            "JOIN job_state s ON s.job_id = f.job_id JOIN jobs j ON j.id = f.job_id "
            f"WHERE f.times >= ? AND s.last_error IS NULL AND {_WATCHED}{shown('j.kind', hidden)} AND {_NOT_REPORTED} "
            "ORDER BY f.times DESC, s.job_id LIMIT 10",
            (limit, times, *hidden),
        )
        return [(int(job_id), str(name)) for job_id, name in rows]

    def last_ends(self, job_id: int, limit: int) -> list[bool]:
        """Whether each of the job's last starts failed in the end, the newest first; without those that did nothing."""
        sql = (
            f"SELECT CASE WHEN r.{_FAILED} THEN 1 ELSE 0 END FROM runs r WHERE r.job_id = ? AND r.finished_at IS NOT "
            f"NULL AND r.outcome IN ('success', 'noop', 'error', 'timeout', 'crashed') AND {_LAST_ATTEMPT} "
            "ORDER BY r.id + 0 DESC LIMIT ?"
        )
        return list(map(bool, self._column(sql, job_id, limit)))

    def openings(self, key: str, since: int) -> int:
        """How often that incident has opened since then."""
        sql = "SELECT count(*) FROM alerts WHERE key = ? AND opened_at > ?"
        return self._count(sql, key, since)

    def open_alert(self, key: str) -> int | None:
        """The number of that incident, if it is open."""
        return self._number("SELECT id FROM alerts WHERE key = ? AND closed_at IS NULL", key)

    def prune_alerts(self, before_id: int, limit: int) -> int:
        """Delete incidents below that id that are over; how many."""
        old = "SELECT id FROM alerts WHERE id < ? AND closed_at IS NOT NULL ORDER BY id LIMIT ?"
        return self._session.execute(f"DELETE FROM alerts WHERE id IN ({old})", (before_id, limit))
