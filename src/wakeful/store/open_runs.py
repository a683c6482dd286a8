"""Runs in the store that are not done: queued, active or waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.store.records import Given, RunDetails, RunRow
from wakeful.store.rows import Rows, Verbs

if TYPE_CHECKING:
    from wakeful.store.session import Session


class OpenRuns(Verbs):
    """Verbs on runs that are not done."""

    _runs = Rows("runs", RunRow)
    _details = Rows("run_details", RunDetails)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._ahead: dict[int, tuple[list[RunRow], dict[int, Given]]] = {}  # by job, until runs are written

    def details_of(self, run_ids: Sequence[int]) -> dict[int, RunDetails]:
        return {details.run_id: details for details in self._details.among("run_id", run_ids)}

    def open(self, job_id: int) -> list[RunRow]:
        """The job's runs that are not done, oldest first."""
        return self._runs.all("WHERE job_id = ? AND finished_at IS NULL ORDER BY id", job_id)

    def open_and_first(self, job_id: int) -> tuple[list[RunRow], dict[int, Given]]:
        """The same, and what was given to the one that has been queued for longest."""
        if (ahead := self._ahead.pop(job_id, None)) is not None:
            return ahead
        sql = (
            f"SELECT {self._runs.of('r')}, first.id, d.payload, d.approval FROM runs r "
            "LEFT JOIN (SELECT id FROM runs WHERE job_id = ? AND finished_at IS NULL AND status = 'queued' "
            "ORDER BY due_at, id LIMIT 1) first ON first.id = r.id LEFT JOIN run_details d ON d.run_id = first.id "
            "WHERE r.job_id = ? AND r.finished_at IS NULL ORDER BY r.id"
        )
        rows = self._session.rows(sql, (job_id, job_id))
        first = {int(row[-3]): Given(row[-2], row[-1]) for row in rows if row[-3] is not None}
        return [RunRow._make(row[:-3]) for row in rows], first

    def read_ahead(self, job_ids: Sequence[int]) -> None:
        """What `open_and_first` answers of each of these, if none is written before it is asked."""
        if len(job_ids) < 2:
            return
        found: dict[int, list[RunRow]] = {job_id: [] for job_id in job_ids}
        for run in sorted(self._runs.among("job_id", job_ids, only="finished_at IS NULL"), key=lambda run: run.id):
            found[run.job_id].append(run)
        queued = [[run for run in runs if run.status == "queued"] for runs in found.values()]
        first = [min(runs, key=lambda run: (run.due_at, run.id)).id for runs in queued if runs]
        details = self.details_of(first)
        given = dict.fromkeys(first, Given())
        given.update({run_id: Given(one.payload, one.approval) for run_id, one in details.items()})
        self._ahead = {
            job_id: (runs, {run.id: given[run.id] for run in runs if run.id in given}) for job_id, runs in found.items()
        }

    def all_open(self) -> list[RunRow]:
        """Every run that is not done, oldest first; the cost depends on the open runs, not on all stored ones."""
        # Without the + the planner walks the whole table in the order of ids rather than the index of open runs.
        return self._runs.all("WHERE finished_at IS NULL ORDER BY id + 0")

    def of_nodes(self, node_ids: Sequence[int]) -> list[RunRow]:
        """The active runs those nodes hold, oldest first."""
        return [run for run in self.all_open() if run.status == "active" and run.node in node_ids]

    def orphans(self) -> list[RunRow]:
        """The active runs whose node has left, or was declared dead, and that were not taken over."""
        nodes = {run.node for run in self.all_open() if run.status == "active" and run.node is not None}
        rows = self._session.select_in(("id", "stopped_at"), "nodes", "id", sorted(nodes))
        gone = nodes - {row[0] for row in rows if row[1] is None}
        return self.of_nodes(sorted(gone)) if gone else []
