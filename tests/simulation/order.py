"""Who is taken first, seen from inside each transaction: the same as a plain sort of all jobs would say."""

from __future__ import annotations

import json
from collections.abc import Callable

from wakeful.store.jobs import Jobs
from wakeful.store.records import JobDef, JobState

_ALL = "SELECT s.job_id, s.{since}, j.options FROM job_state s JOIN jobs j ON j.id = s.job_id WHERE {which}"


class Order:
    """Of one world: how many jobs a turn takes at most, and what was seen to be out of order."""

    def __init__(self, most: int, report: Callable[[str], None]) -> None:
        self.most = most
        self.compared = 0  # how often a turn took less than all
        self._report = report

    def watch(self, jobs: Jobs) -> Jobs:
        """The same verbs, looked at while they are used."""
        return _Watched(jobs, self)

    def check(self, what: str, taken: list[int], expected: list[int], of: int) -> None:
        self.compared += 0 < len(taken) < of
        if taken != expected:
            self._report(f"X22: of what {what}, jobs {taken} were taken, and {expected} come first")


class _Watched(Jobs):
    def __init__(self, jobs: Jobs, order: Order) -> None:
        super().__init__(jobs._session)
        self._order = order

    def due(self, now: int, limit: int) -> list[tuple[JobDef, JobState]]:
        limit = min(limit, self._order.most)
        ranked = self._ranked("due_at", "s.due_at <= ?", now)
        found = super().due(now, limit)
        self._order.check("is due", [state.job_id for _, state in found], ranked[:limit], len(ranked))
        return found

    def requeue_parked(self, parked: str, now: int, limit: int) -> int:
        ranked = self._ranked("ready_at", "s.parked = ?", parked)
        count = super().requeue_parked(parked, now, limit)
        left = set(self._ranked("ready_at", "s.parked = ?", parked))
        taken = [job_id for job_id in ranked if job_id not in left]
        self._order.check(f"waits for {parked}", taken, ranked[:limit], len(ranked))
        return count

    def _ranked(self, since: str, which: str, value: object) -> list[int]:
        """By the options of the jobs themselves."""
        rows = self._session.rows(_ALL.format(since=since, which=which), (value,))
        ranks = [(-json.loads(options).get("priority", 0), at or 0, job_id) for job_id, at, options in rows]
        return [job_id for _, _, job_id in sorted(ranks)]
