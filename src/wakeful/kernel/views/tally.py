"""What this process did since it began, counted as it is committed: how runs ended, how long they took, how late.

Counting costs the same for every run and keeps nothing of it. The labels are few, whatever jobs are called: kinds of
domains, outcomes and agents. Jobs are named only if that was asked for, and no more of them than that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from wakeful.kernel.engine.ending import Ending
from wakeful.kernel.engine.lines import Claimed
from wakeful.kernel.model.measures import Histogram, Measure, RunCost, single

if TYPE_CHECKING:
    from wakeful.store.records import EventGroup

DURATIONS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)
LATENESS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
PYTHON = "python"
"""The kind of all jobs whose kind is no domain's: functions of a program, each of which has a kind of its own."""
MOST_AGENTS = 500
OTHERS = "others"


class CommitCounter:
    """Counts what transactions of this process commit; belongs to the event loop."""

    def __init__(self, kinds: Collection[str], hidden: Collection[str], per_job: int = 0) -> None:
        self._kinds = frozenset(kinds)
        self._hidden = frozenset(hidden)
        self._per_job = per_job
        self._runs: Counter[tuple[str, ...]] = Counter()
        self._durations = Histogram(DURATIONS)
        self._lateness = Histogram(LATENESS)
        self._cost: Counter[tuple[str, ...]] = Counter()
        self._jobs: set[str] = set()
        self._job_runs: Counter[tuple[str, ...]] = Counter()
        self._last_success: dict[tuple[str, ...], float] = {}
        self._last_duration: dict[tuple[str, ...], float] = {}

    def hear(self, groups: Iterable[EventGroup]) -> None:
        """Count what a transaction did; called after its commit."""
        for group in groups:
            for what in getattr(group, "counted", ()):
                if isinstance(what, Ending):
                    self._end(what)
                elif isinstance(what, Claimed):
                    self._start(what)
                elif isinstance(what, RunCost):
                    self._spend(what)

    def _start(self, claimed: Claimed) -> None:
        run = claimed.run
        if run.reason == "schedule" and run.started_at is not None and run.kind not in self._hidden:
            self._lateness.add(max(0, run.started_at - run.due_at) / 1000)

    def _end(self, ending: Ending) -> None:
        run, finish = ending.run, ending.settled.finish
        if finish.outcome is None or run.kind in self._hidden:
            return
        self._runs[finish.outcome, run.kind if run.kind in self._kinds else PYTHON] += 1
        began = finish.started_at if finish.started_at is not None else run.started_at
        took = (finish.finished_at - began) / 1000 if began is not None and finish.finished_at is not None else None
        if took is not None:
            self._durations.add(max(0.0, took))
        if self._is_named(ending.job.name):
            self._end_of_job(ending.job.name, finish.outcome, finish.finished_at, took)

    def _is_named(self, job: str) -> bool:
        if job in self._jobs:
            return True
        if len(self._jobs) < self._per_job:
            self._jobs.add(job)
            return True
        return False

    def _end_of_job(self, job: str, outcome: str, at: int | None, took: float | None) -> None:
        self._job_runs[job, outcome] += 1
        if outcome == "success" and at is not None:
            self._last_success[job,] = at / 1000
        if took is not None:
            self._last_duration[job,] = max(0.0, took)

    def _spend(self, spending: RunCost) -> None:
        known = (spending.agent,) in self._cost or len(self._cost) < MOST_AGENTS
        self._cost[(spending.agent if known else OTHERS),] += spending.cost  # type: ignore[assignment]

    def measures(self) -> list[Measure]:
        """All of it."""
        found = [
            Measure("wakeful_runs_total", "Runs that ended, by outcome and kind of job.", ("outcome", "kind"),
                    dict(self._runs), counter=True),
            single("wakeful_run_duration_seconds", "How long runs took.", self._durations),
            single("wakeful_start_lateness_seconds", "How long after their time scheduled runs started.",
                   self._lateness),
            Measure("wakeful_cost_total", "What runs of agents cost, as their budgets count it.", ("agent",),
                    dict(self._cost), counter=True),
        ]  # fmt: skip
        return found + (self._of_jobs() if self._per_job else [])

    def _of_jobs(self) -> list[Measure]:
        return [
            Measure("wakeful_job_runs_total", "Runs that ended, by job and outcome.", ("job", "outcome"),
                    dict(self._job_runs), counter=True),
            Measure("wakeful_job_last_success_timestamp_seconds", "When a run of the job last succeeded.", ("job",),
                    dict(self._last_success)),
            Measure("wakeful_job_last_duration_seconds", "How long the last run of the job took.", ("job",),
                    dict(self._last_duration)),
        ]  # fmt: skip
