"""What the starts and ends of several places ask about one workflow, read at once: a turn of the engine has many.

The first of them in a transaction asks for itself alone; the second asks for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.domains.workflows.phases import COMMITTED
from wakeful.domains.workflows.steps.places import STEPS
from wakeful.domains.workflows.tables import OF_JOB, HandlerRow, WorkflowRow, with_workflow
from wakeful.store.rows import Verbs

if TYPE_CHECKING:
    from wakeful.store.session import Session

#: Where nothing but the start of a place itself changes what is read of it.
_DUE = (
    "FROM workflow_handlers h JOIN workflows w ON w.name = h.workflow JOIN job_state s ON s.job_id = h.job_id "
    "WHERE h.workflow = ? AND h.type = ? AND h.open_run IS NULL AND w.issue IS NULL AND w.working_run IS NULL "
    "AND s.queued > 0 AND s.run_id IS NULL AND s.due_at <= ?"
)
_OVER = (
    "SELECT r.id FROM workflow_handlers h JOIN job_state s ON s.job_id = h.job_id "
    "JOIN workflow_runs r ON r.id = s.last_run_id WHERE h.workflow = ? AND r.status = ?"
)


class ReadAhead(Verbs):
    """One for each transaction, as all verbs."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._due: dict[int, tuple[HandlerRow, WorkflowRow]] = {}
        self._over: set[int] = set()
        self._looks: dict[tuple[str, str], int] = {}  # how often, by what is asked and workflow

    def due(self, job_id: int, workflow: str, now: int) -> tuple[HandlerRow, WorkflowRow] | None:
        """The place of a job that is due, and its workflow; None where that was not read. Each is given once."""
        if self._is_second("due", workflow):
            rows = self._session.rows(f"SELECT {OF_JOB} {_DUE}", (workflow, STEPS, now))
            self._due = {handler.job_id: (handler, row) for handler, row in map(with_workflow, rows) if handler.job_id}
        return self._due.pop(job_id, None)

    def is_over(self, run_id: int, workflow: str) -> bool:
        """Whether the last run of a job is known to be committed, which is for good."""
        if run_id not in self._over and self._is_second("over", workflow):
            self._over.update(self._column(_OVER, workflow, COMMITTED))
        return run_id in self._over

    def _is_second(self, what: str, workflow: str) -> bool:
        looks = self._looks[what, workflow] = self._looks.get((what, workflow), 0) + 1
        return looks == 2
