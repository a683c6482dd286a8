"""What the engine makes of runs: why it ends them, for which slots they stand, whether their failures count."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

from tests.simulation.invariants import Broken, Connection, Row

FAILED = ("error", "timeout")

OF_DOMAINS = ("agent", "session", "workflow", "delivery")


class Consequences:
    """What was seen of a world's runs at the last look."""

    def __init__(
        self, by_hand: Collection[int], watch: Callable[[], Connection], report: Callable[[str], None], *, merges: bool
    ) -> None:
        """`by_hand`: runs that people cancelled, as they do so."""
        self._by_hand, self._watch, self._report, self._merges = by_hand, watch, report, merges
        self._ended: set[int] = set()  # runs that the engine was seen to end for a slot
        self._merged: dict[int, int] = {}  # slots of a job that were merged into others
        self._started: dict[int, int] = {}  # runs of a job that the schedule started for a slot
        self._forgiven: set[int] = set()  # jobs whose errors a person, or an edit, may have forgotten

    def check(self, started: dict[int, int], *, edited: bool) -> None:
        """After every step. `started`: of each job, how many runs the schedule started for a slot; `edited`: a person
        did something to a job in this step.
        """
        connection = self._watch()
        states = {
            row["job_id"]: row
            for row in connection.execute(
                "SELECT s.*, j.name, j.kind, j.options, j.removed_at FROM job_state s JOIN jobs j ON j.id = s.job_id"
            )
        }
        if self._merges:
            self._check_merged(connection, states, started)
        self._check_errors(connection, states, edited=edited)

    def see_ended(self) -> None:
        """After every commit: a run is ended for a slot only where the job, as it is then, says so.

        At the end of a step would be too late: people who resume a job may take that back minutes later, in one step.
        """
        rows = self._watch().execute(
            "SELECT r.id, j.name, j.options, j.removed_at, s.paused, s.enabled FROM runs r "
            "JOIN jobs j ON j.id = r.job_id JOIN job_state s ON s.job_id = r.job_id WHERE r.cancel = 1 ORDER BY r.id"
        )
        for run in [row for row in rows if row["id"] not in self._ended]:
            self._ended.add(run["id"])
            stopped = run["removed_at"] is not None or run["paused"] or not run["enabled"]
            replaces = json.loads(run["options"]).get("overlap") == "cancel_other" and not stopped
            if run["id"] not in self._by_hand and not replaces:
                self._report(f"C7: run {run['id']} of {run['name']} was ended for a slot that does not replace it")

    def _check_merged(self, connection: Connection, states: dict[int, Row], started: dict[int, int]) -> None:
        """A slot is merged only into a run of the schedule: one that was started since, or is about to be."""
        merged: dict[int, int] = {
            row["job_id"]: row["slots"]
            for row in connection.execute(
                "SELECT job_id, sum(slots) AS slots FROM stretches WHERE fate = 'merged' GROUP BY job_id"
            )
        }
        pending = {
            row["job_id"]
            for row in connection.execute(
                "SELECT r.job_id FROM runs r LEFT JOIN runs p ON p.id = r.retry_of AND r.reason = 'recovery' "
                "WHERE r.finished_at IS NULL AND r.slot IS NOT NULL AND coalesce(p.reason, r.reason) <> 'manual'"
            )
        }
        for job_id, slots in sorted(merged.items()):
            more = slots > self._merged.get(job_id, 0) and job_id in states
            is_covered = started.get(job_id, 0) > self._started.get(job_id, 0) or job_id in pending
            if more and not is_covered and states[job_id]["slot"] is None:
                raise Broken(
                    f"H4: slots of {states[job_id]['name']} were merged into a run that is not of the schedule"
                )
        self._merged, self._started = merged, dict(started)

    def _check_errors(self, connection: Connection, states: dict[int, Row], *, edited: bool) -> None:
        """A failure counts as soon as nothing is left to try again."""
        sql = "SELECT job_id FROM runs WHERE finished_at IS NULL AND (status = 'queued' OR retry_of IS NOT NULL)"
        trying = {row["job_id"] for row in connection.execute(sql)}
        uncounted = {
            job_id for job_id, state in states.items() if state["last_outcome"] in FAILED and not state["errors"]
        }
        self._forgiven = (self._forgiven | uncounted if edited else self._forgiven) & uncounted
        for job_id in sorted(uncounted - self._forgiven - trying):
            # Agents, workflows and messages are tried again by rules of their own.
            if states[job_id]["removed_at"] is None and states[job_id]["kind"] not in OF_DOMAINS:
                raise Broken(f"H7: {states[job_id]['name']} has failed, is not tried again, and counts no error")
