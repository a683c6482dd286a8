"""The tables of workflows, their handlers and their runs: verbs on them, each part of the transaction it is called in.

Who locks several rows locks the states of jobs first and a workflow's row after them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.store.records import JOB_COLUMNS, JobDef, JobState
from wakeful.store.rows import Rows, Verbs, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wakeful.store.session import Row, Session


class WorkflowRow(NamedTuple):
    """A workflow as stored."""

    name: str
    version: str
    source: str
    paused: int
    pause_note: str | None
    issue: str | None
    issue_handler: str | None
    issue_run: int | None
    issue_message: str | None
    backoff_until: int | None
    failures: int
    event_seq: int
    created_at: int
    updated_at: int
    removed_at: int | None
    draining: int = 0
    owner: str | None = None
    working_run: int | None = None
    working_node: int | None = None
    working_since: int | None = None

    @classmethod
    def new(cls, name: str, version: str, source: str, now: int) -> WorkflowRow:
        """One that was just deployed: nothing is paused, wrong or published."""
        return cls(
            name, version, source, paused=0, pause_note=None, issue=None, issue_handler=None, issue_run=None,
            issue_message=None, backoff_until=None, failures=0, event_seq=0, created_at=now, updated_at=now,
            removed_at=None,
        )  # fmt: skip


class HandlerRow(NamedTuple):
    """A handler and what it has stored."""

    workflow: str
    name: str
    job_id: int | None
    type: str
    subscribes: str
    publishes: str | None
    timeout: int
    state: str = "{}"
    wake_at: int | None = None
    open_run: int | None = None
    rounds: int = 0
    dirty: int = 0
    seen: int = 0
    fixes: int = 0
    crashes: int = 0
    blamed: int = 0
    on_failure: str | None = None
    keyed: int = 0

    def topics(self) -> list[str]:
        """The topics it subscribes to."""
        found: list[str] = json.loads(self.subscribes)
        return found


class WorkflowRun(NamedTuple):
    """One attempt of a handler."""

    id: int
    job_id: int
    workflow: str
    handler: str
    type: str
    retry_of: int | None
    version: str
    phase: str
    status: str
    mutation: str
    begins: str
    watermark: int
    tries: int = 0
    reconcile_at: int | None = None
    reserved: int = 0
    prepared: str | None = None
    result: str | None = None
    wake_at: int | None = None
    title: str | None = None
    error: str | None = None
    notes: str | None = None
    created_at: int = 0
    updated_at: int = 0
    failure: str | None = None
    refused: int = 0
    mutate_error: str | None = None  # what an uncertain mutation failed with, and the trace below
    hops: int = 0  # from workflow to workflow: the most of the events it reserved


def output_of(attempt: WorkflowRun, published: int) -> dict[str, Any]:
    """The output of a run that committed."""
    return {"title": attempt.title, "consumed": attempt.reserved, "published": published}


class WorkflowAction(NamedTuple):
    """Something that a person did to a workflow."""

    id: int
    workflow: str
    at: int
    who: str
    action: str
    detail: str | None


OF_JOB = ", ".join([*(f"h.{name}" for name in HandlerRow._fields), *(f"w.{name}" for name in WorkflowRow._fields)])
_WITH_JOB = ", ".join([*(f"h.{name}" for name in HandlerRow._fields), *(f"j.{name}" for name in JOB_COLUMNS)])
_WIDTH = len(HandlerRow._fields)


def with_workflow(row: Row) -> tuple[HandlerRow, WorkflowRow]:
    """The parts of a row of `OF_JOB`."""
    return HandlerRow._make(row[:_WIDTH]), WorkflowRow._make(row[_WIDTH:])


class WorkflowVerbs(Verbs):
    """Verbs on workflows, handlers and their runs."""

    _workflows = Rows("workflows", WorkflowRow)
    _handlers = Rows("workflow_handlers", HandlerRow)
    _runs = Rows("workflow_runs", WorkflowRun)
    _actions = Rows("workflow_actions", WorkflowAction)
    _states = Rows("job_state", JobState)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: By job, what its admission has just read: the claim that follows needs the same.
        self.admitted: dict[int, tuple[HandlerRow, WorkflowRow]] = {}

    # -- workflows ----------------------------------------------------------------------------------------------------

    def get(self, name: str) -> WorkflowRow | None:
        return self._workflows.one("WHERE name = ?", name)

    def deployed(self, names: Sequence[str]) -> set[str]:
        """Which of these are names of workflows."""
        rows = self._session.select_in(("name",), "workflows", "name", names, only="removed_at IS NULL")
        return {str(row[0]) for row in rows}

    def lock(self, name: str) -> WorkflowRow | None:
        """The same, locked: no other transaction changes it before this one ends."""
        return self._workflows.locked("WHERE name = ?", name)

    def all(self) -> list[WorkflowRow]:
        """All that are deployed, by name."""
        return self._workflows.all("WHERE removed_at IS NULL ORDER BY name")

    def listed(self) -> list[WorkflowRow]:
        """The same, and those that were removed with an open question."""
        return self._workflows.all("WHERE removed_at IS NULL OR issue = 'reconciliation' ORDER BY name")

    def halted(self, name: str | None = None) -> list[tuple[WorkflowRow, str]]:
        """Those, or that one, whose issue is not tried again because the job that would is `paused` or `disabled`."""
        sql = (
            f"SELECT {self._workflows.of('w')}, s.enabled FROM workflows w "
            "JOIN workflow_handlers h ON h.workflow = w.name AND h.name = w.issue_handler "
            "JOIN job_state s ON s.job_id = h.job_id "
            "WHERE w.issue IN ('transient', 'reconciliation') AND w.paused = 0 AND w.removed_at IS NULL "
            f"AND (s.paused = 1 OR s.enabled = 0) AND s.run_id IS NULL{' AND w.name = ?' if name is not None else ''} "
            "ORDER BY w.name"
        )
        found = self._session.rows(sql, (name,) if name is not None else ())
        return [(WorkflowRow._make(row[:-1]), "paused" if row[-1] else "disabled") for row in found]

    def add(self, row: WorkflowRow) -> None:
        self._workflows.add(row)

    def change(self, name: str, now: int, **values: Any) -> None:
        """Set these columns of a workflow."""
        names = ", ".join(f"{key} = ?" for key in values)
        sql = f"UPDATE workflows SET {names}, updated_at = ? WHERE name = ?"
        self._session.execute(sql, (*values.values(), now, name))

    def take_numbers(self, name: str, count: int) -> WorkflowRow | None:
        """Take so many numbers for events, the last of which is `event_seq`; and lock it as `lock` does."""
        if not count:
            return self.lock(name)
        sql = f"UPDATE workflows SET event_seq = event_seq + ? WHERE name = ? RETURNING {self._workflows.columns}"
        return next(iter(self._workflows.answered(sql, count, name)), None)

    # -- versions -----------------------------------------------------------------------------------------------------

    def versions(self, name: str, limit: int = 50) -> list[tuple[int, str, int]]:
        """(number, version, when) of what was deployed, newest first."""
        rows = self._session.rows(
            "SELECT number, version, deployed_at FROM workflow_versions WHERE workflow = ? ORDER BY number DESC "
            "LIMIT ?",
            (name, limit),
        )
        return [(int(number), str(version), int(at)) for number, version, at in rows]

    def had_version(self, name: str, version: str) -> bool:
        """Whether that code was ever deployed."""
        sql = "SELECT 1 FROM workflow_versions WHERE workflow = ? AND version = ? LIMIT 1"
        return bool(self._session.rows(sql, (name, version)))

    def add_version(self, name: str, version: str, now: int) -> None:
        latest = self.versions(name, 1)
        row = (name, latest[0][0] + 1 if latest else 1, version, now)
        self._session.insert_many("workflow_versions", ("workflow", "number", "version", "deployed_at"), [row])

    # -- handlers -----------------------------------------------------------------------------------------------------

    def handlers(self, workflow: str) -> list[HandlerRow]:
        """Those of the deployed version, by name."""
        return self._handlers.all("WHERE workflow = ? AND job_id IS NOT NULL ORDER BY name", workflow)

    def handler(self, workflow: str, name: str) -> HandlerRow | None:
        """Also one that the deployed version does not have."""
        return self._handlers.one("WHERE workflow = ? AND name = ?", workflow, name)

    def left_open(self, workflow: str) -> list[str]:
        """The handlers with an unfinished run that are not deployed."""
        sql = (
            "SELECT name FROM workflow_handlers WHERE workflow = ? AND job_id IS NULL AND open_run IS NOT NULL "
            "ORDER BY name"
        )
        return self._column(sql, workflow)

    def open_runs(self, workflow: str) -> list[int]:
        """The unfinished runs of a workflow, also those of handlers that are not deployed."""
        sql = "SELECT open_run FROM workflow_handlers WHERE workflow = ? AND open_run IS NOT NULL ORDER BY name"
        return self._column(sql, workflow)

    def of_job(self, job_id: int) -> tuple[HandlerRow, WorkflowRow] | None:
        """The handler that a job runs, and its workflow."""
        sql = f"SELECT {OF_JOB} FROM workflow_handlers h JOIN workflows w ON w.name = h.workflow WHERE h.job_id = ?"
        found = self._session.rows(sql, (job_id,))
        return with_workflow(found[0]) if found else None

    def lock_jobs(self, *workflows: str) -> dict[int, JobState]:
        """The states of the jobs of workflows, locked in the order of their ids.

        The first step of whatever changes more than one row of the workflow: who has them is alone with it.
        """
        marks = ", ".join("?" * len(workflows))
        states = self._states.all(
            f"WHERE job_id IN (SELECT job_id FROM workflow_handlers WHERE workflow IN ({marks}) "
            f"AND job_id IS NOT NULL) ORDER BY job_id{self._session.lock_clause}",
            *workflows,
        )
        return {state.job_id: state for state in states}

    def with_jobs(self, workflow: str) -> list[tuple[HandlerRow, JobDef]]:
        """The handlers of the deployed version with their jobs, by name."""
        sql = (
            f"SELECT {_WITH_JOB} FROM workflow_handlers h JOIN jobs j ON j.id = h.job_id WHERE h.workflow = ? "
            "ORDER BY h.name"
        )
        rows = self._session.rows(sql, (workflow,))
        return [(HandlerRow._make(row[:_WIDTH]), JobDef._make(row[_WIDTH:])) for row in rows]

    def save_handler(self, row: HandlerRow) -> None:
        """Insert it, or replace its definition; its stored state stays."""
        stays = ("state", "wake_at", "open_run", "rounds", "dirty", "seen", "fixes", "keyed")
        self._handlers.put(row, key=("workflow", "name"), but=stays)

    def change_handler(self, workflow: str, name: str, **values: Any) -> None:
        names = ", ".join(f"{key} = ?" for key in values)
        self._session.execute(
            f"UPDATE workflow_handlers SET {names} WHERE workflow = ? AND name = ?", (*values.values(), workflow, name)
        )

    def set_by_job(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Set these columns of handlers; each row begins with the handler's job."""
        self._session.update_many("workflow_handlers", ("job_id", *columns), rows)

    def unarmed(self) -> list[HandlerRow]:
        """Handlers with something to do that nothing is about to start: what a pause or a cancel took away."""
        return self._handlers.joined(
            "h",
            "JOIN job_state s ON s.job_id = h.job_id "
            "WHERE s.queued = 0 AND s.run_id IS NULL AND s.enabled = 1 AND s.paused = 0 "
            "AND (h.dirty > h.seen OR h.open_run IS NOT NULL OR h.wake_at IS NOT NULL)",
        )

    def set_back(self, now: int, back_ms: int, newer: int) -> None:
        """The clock was set back: bring what lies ahead into the new time; ids from `newer` on are of that time.

        What an attempt stored in the new time is told by when that was: reconcile is not to be called too early.
        """
        moved = "CASE WHEN {0} - ? > ? THEN {0} - ? ELSE ? END"
        by = (back_ms, now, back_ms, now)
        self._session.execute(
            f"UPDATE workflows SET backoff_until = {moved.format('backoff_until')} "
            "WHERE backoff_until > ? AND (issue_run IS NULL OR issue_run < ?)",
            (*by, now, newer),
        )
        self._session.execute(
            f"UPDATE workflow_handlers SET wake_at = {moved.format('wake_at')} WHERE wake_at > ? AND NOT EXISTS "
            "(SELECT 1 FROM workflow_runs r WHERE r.job_id = workflow_handlers.job_id AND r.id >= ?)",
            (*by, now, newer),
        )
        for column in ("reconcile_at", "wake_at"):
            self._session.execute(
                f"UPDATE workflow_runs SET {column} = {moved.format(column)} WHERE {column} > ? AND updated_at > ? "
                "AND id IN (SELECT open_run FROM workflow_handlers)",
                (*by, now, now),
            )

    # -- runs ---------------------------------------------------------------------------------------------------------

    def run(self, run_id: int) -> WorkflowRun | None:
        return self._runs.one("WHERE id = ?", run_id)

    def add_run(self, run: WorkflowRun) -> None:
        self._session.insert_soon("workflow_runs", WorkflowRun._fields, [run])

    def save_run(self, *runs: WorkflowRun) -> None:
        """Write attempts that are on record."""
        self._runs.save(*runs)

    def runs(self, workflow: str, limit: int, before: int | None = None, handler: str | None = None) -> list[Any]:
        """The newest first."""
        clause, params = where([("workflow = ?", workflow), ("id < ?", before), ("handler = ?", handler)])
        return self._runs.all(f"{clause} ORDER BY id DESC LIMIT ?", *params, limit)

    def latest(self, job_id: int) -> WorkflowRun | None:
        """The last attempt of a handler."""
        return self._runs.one("WHERE job_id = ? ORDER BY id DESC LIMIT 1", job_id)

    def worked(self, job_id: int, limit: int, among: int = 1_000) -> list[WorkflowRun]:
        """The newest attempts of a handler that had something to do and committed; among so many of the newest."""
        newest = "SELECT * FROM workflow_runs WHERE job_id = ? ORDER BY id DESC LIMIT ?"
        return self._runs.answered(
            f"SELECT {self._runs.columns} FROM ({newest}) r WHERE status = 'committed' AND reserved > 0 "
            "ORDER BY id DESC LIMIT ?",
            job_id,
            among,
            limit,
        )

    def runs_of(self, run_ids: Sequence[int]) -> dict[int, WorkflowRun]:
        return {run.id: run for run in self._runs.among("id", run_ids)}

    def phases(self, run_ids: Sequence[int]) -> dict[int, str]:
        """The phase of those of the runs that are of workflows."""
        rows = self._session.select_in(("id", "phase"), "workflow_runs", "id", run_ids)
        return {int(row[0]): str(row[1]) for row in rows}

    def prune_runs(self, before_id: int, limit: int) -> int:
        """Delete attempts below that id that are over, whose runs are gone, and that no handler or event needs."""
        return self._session.execute(
            "DELETE FROM workflow_runs WHERE id IN (SELECT r.id FROM workflow_runs r WHERE r.id < ? "
            "AND r.status <> 'active' AND NOT EXISTS (SELECT 1 FROM runs k WHERE k.id = r.id) "
            "AND NOT EXISTS (SELECT 1 FROM workflow_handlers h WHERE h.open_run = r.id) "
            "AND NOT EXISTS (SELECT 1 FROM workflow_tasks t WHERE t.run_id = r.id) ORDER BY r.id LIMIT ?)",
            (before_id, limit),
        )

    def forget_runs(self, run_ids: Sequence[int]) -> None:
        """Delete the attempts of runs that are gone, but for those that are not over or that something needs."""
        kept = self._session.select_in(("open_run",), "workflow_handlers", "open_run", run_ids)
        kept += self._session.select_in(("run_id",), "workflow_tasks", "run_id", run_ids)
        kept += self._session.select_in(("id",), "workflow_runs", "id", run_ids, only="status = 'active'")
        self._session.delete_in("workflow_runs", "id", sorted(set(run_ids) - {int(row[0]) for row in kept}))

    # -- what people did ----------------------------------------------------------------------------------------------

    def record(self, action: WorkflowAction) -> None:
        self._session.insert_soon("workflow_actions", WorkflowAction._fields, [action])

    def actions(self, workflow: str, limit: int) -> list[WorkflowAction]:
        return self._actions.all("WHERE workflow = ? ORDER BY id DESC LIMIT ?", workflow, limit)

    def prune_actions(self, before_id: int, limit: int) -> int:
        old = "IN (SELECT id FROM workflow_actions WHERE id < ? ORDER BY id LIMIT ?)"
        return self._session.execute(f"DELETE FROM workflow_actions WHERE id {old}", (before_id, limit))
