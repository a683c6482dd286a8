"""A claimed run: what a claim hands over to the handlers."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.store.records import JobDef, JobState, RunRow


class Claimed(NamedTuple):
    """A run that is on record as active and must now be started."""

    job: JobDef
    state: JobState
    run: RunRow
    payload: str
    approval: str | None = None  # what was asked and approved before this attempt

    def event(self) -> dict[str, object]:
        """What is emitted when it starts."""
        job, run = self.job, self.run
        return {"type": "started", "run": run.id, "job_id": job.id, "job": job.name, "reason": run.reason}
