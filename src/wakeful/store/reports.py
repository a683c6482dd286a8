"""Reports that came before their run was ready for them: kept until it is.

The system that does a run's work may be done before we have written down that the run waits, or while the run that
asked for it is being recovered from a crash. What it says is kept here and taken up when the run ends its own part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.store.rows import Rows, Verbs


class ReportedEnd(NamedTuple):
    """How a run's work ended elsewhere."""

    run_id: int
    at: int
    outcome: str
    output: str | None
    error_type: str | None
    error: str | None


class Reports(Verbs):
    """Verbs on reports; each call is part of the transaction it was made in."""

    _reports = Rows("run_reports", ReportedEnd)

    def add(self, report: ReportedEnd) -> bool:
        """Keep the report; the first one counts, and False says that there is one."""
        self._session.execute(
            # Left over from runs that ended some other way; there are few, and this is rare.
            "DELETE FROM run_reports WHERE run_id IN (SELECT id FROM runs WHERE finished_at IS NOT NULL)"
        )
        if self.of([report.run_id]):
            return False
        return self._reports.add(report, on_conflict="ON CONFLICT DO NOTHING") == 1

    def of(self, run_ids: Sequence[int]) -> dict[int, ReportedEnd]:
        """The reports that wait for these runs."""
        return {report.run_id: report for report in self._reports.among("run_id", run_ids)}

    def drop(self, run_ids: Sequence[int]) -> None:
        """These were taken up."""
        for run_id in run_ids:
            self._session.execute("DELETE FROM run_reports WHERE run_id = ?", (run_id,))
