"""The tables of tasks and steps: what handlers with steps have begun or are about to, and what each step came to.

A task is an event on its way through such a handler. It is made when its key is known, and gone when the event is
consumed or skipped; its steps stay as long as the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.workflows.topics.tables import EventRow
from wakeful.store.rows import Rows, Verbs, where

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

READY, QUEUED, RUNNING, RETRYING, UNCERTAIN, PARKED = "ready", "queued", "running", "retrying", "uncertain", "parked"
DONE, FAILED = "done", "failed"
KEYS_AT_ONCE = 64  # in one question: so it stays prepared


class TaskRow(NamedTuple):
    """An event on its way through a handler with steps."""

    event_id: int
    workflow: str
    handler: str
    topic: str
    key: str
    seq: int
    revision: int
    status: str
    tries: int = 0
    retry_at: int | None = None
    run_id: int | None = None
    error: str | None = None
    accepted: str | None = None
    working_node: int | None = None
    updated_at: int = 0


class StepRow(NamedTuple):
    """One step of an event."""

    event_id: int
    name: str
    number: int
    status: str
    attempts: int
    run_id: int
    version: str
    started_at: int
    until: int  # when its time limit ends
    ended_at: int | None = None
    tries: int = 0
    caught: int = 0
    sure: int = 0
    value: str | None = None
    error: str | None = None
    error_type: str | None = None


class Tasks(Verbs):
    """Verbs on tasks and steps."""

    _tasks = Rows("workflow_tasks", TaskRow)
    _steps = Rows("workflow_steps", StepRow)
    _events = Rows("workflow_events", EventRow)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def get(self, event_id: int) -> TaskRow | None:
        return self._tasks.one("WHERE event_id = ?", event_id)

    def of_events(self, event_ids: Sequence[int]) -> dict[int, TaskRow]:
        return {task.event_id: task for task in self._tasks.among("event_id", event_ids)}

    def add(self, rows: Sequence[TaskRow]) -> None:
        self._tasks.add(*rows, on_conflict="ON CONFLICT (event_id) DO NOTHING")

    def save(self, row: TaskRow) -> None:
        self._tasks.save(row)

    def drop(self, event_ids: Sequence[int]) -> None:
        self._session.delete_in("workflow_tasks", "event_id", event_ids)

    def drop_unbegun(self, workflow: str, handler: str) -> None:
        """Forget the keys of what was never begun: other code may give it others."""
        self._session.execute(
            "DELETE FROM workflow_tasks WHERE workflow = ? AND handler = ? AND run_id IS NULL", (workflow, handler)
        )

    def first(self, workflow: str, handler: str, status: str) -> TaskRow | None:
        """The oldest of a handler with that status."""
        return self._tasks.one(
            "WHERE workflow = ? AND handler = ? AND status = ? ORDER BY seq LIMIT 1", workflow, handler, status
        )

    def first_due(self, workflow: str, handler: str, now: int) -> TaskRow | None:
        """The one that is to be tried again since the longest."""
        return self._tasks.one(
            "WHERE workflow = ? AND handler = ? AND status = 'retrying' "
            "AND retry_at <= ? ORDER BY retry_at, seq LIMIT 1",
            workflow,
            handler,
            now,
        )

    def count_runnable(self, workflow: str, handler: str, now: int, most: int) -> int:
        """How many tasks can be worked on now, counted up to a bound."""
        ready = "SELECT 1 FROM workflow_tasks WHERE workflow = ? AND handler = ? AND status = 'ready' LIMIT ?"
        due = (
            "SELECT 1 FROM workflow_tasks WHERE workflow = ? AND handler = ? AND status = 'retrying' "
            "AND retry_at <= ? LIMIT ?"
        )
        sql = f"SELECT count(*) FROM (SELECT * FROM ({ready}) a UNION ALL SELECT * FROM ({due}) b) c"
        found = self._session.rows(sql, (workflow, handler, most, workflow, handler, now, most))
        return int(found[0][0])

    def next_retry(self, workflow: str, handler: str) -> int | None:
        """When the next one is tried again."""
        sql = "SELECT min(retry_at) FROM workflow_tasks WHERE workflow = ? AND handler = ? AND status = 'retrying'"
        found = self._session.rows(sql, (workflow, handler))
        return None if found[0][0] is None else int(found[0][0])

    def held_keys(self, workflow: str, handler: str, keys: Collection[str]) -> set[str]:
        """Those of the keys whose turn another task has, or waits for."""
        found: set[str] = set()
        listed = sorted(keys)
        for first in range(0, len(listed), KEYS_AT_ONCE):
            part = listed[first : first + KEYS_AT_ONCE]
            marks = ", ".join("?" * KEYS_AT_ONCE)
            sql = (
                "SELECT DISTINCT key FROM workflow_tasks WHERE workflow = ? AND handler = ? AND status <> 'parked' "
                f"AND key IN ({marks})"
            )
            asked = (workflow, handler, *part, *[part[0]] * (KEYS_AT_ONCE - len(part)))
            found.update(str(row[0]) for row in self._session.rows(sql, asked))
        return found

    def is_held(self, task: TaskRow) -> bool:
        """Whether another task with its key is worked on, or is about to be."""
        sql = (
            "SELECT 1 FROM workflow_tasks WHERE workflow = ? AND handler = ? AND key = ? AND event_id <> ? "
            "AND status IN ('ready', 'running', 'retrying', 'uncertain') LIMIT 1"
        )
        return bool(self._session.rows(sql, (task.workflow, task.handler, task.key, task.event_id)))

    def next_of_key(self, workflow: str, handler: str, key: str) -> TaskRow | None:
        """The oldest that waits for its turn with that key."""
        return self._tasks.one(
            "WHERE workflow = ? AND handler = ? AND key = ? AND status = 'queued' ORDER BY seq LIMIT 1",
            workflow,
            handler,
            key,
        )

    def unkeyed(self, workflow: str, topic: str, after: int, limit: int) -> list[EventRow]:
        """Pending events behind that number, oldest first."""
        return self._events.all(
            "WHERE workflow = ? AND topic = ? AND status = 'pending' AND seq > ? ORDER BY seq LIMIT ?",
            workflow,
            topic,
            after,
            limit,
        )

    def begun(self, workflow: str, handler: str) -> list[TaskRow]:
        """Those that have an attempt and are not worked on now."""
        return self._tasks.all(
            "WHERE workflow = ? AND handler = ? AND run_id IS NOT NULL AND status <> 'running' ORDER BY seq",
            workflow,
            handler,
        )

    def with_status(self, workflow: str, status: str, limit: int, before: int | None = None) -> list[TaskRow]:
        """The newest events first."""
        clause, params = where([("workflow = ?", workflow), ("status = ?", status), ("event_id < ?", before)])
        return self._tasks.all(f"{clause} ORDER BY event_id DESC LIMIT ?", *params, limit)

    def counts(self, workflow: str) -> dict[str, int]:
        """How many tasks there are, by status."""
        sql = "SELECT status, count(*) FROM workflow_tasks WHERE workflow = ? GROUP BY status"
        return {str(status): int(count) for status, count in self._session.rows(sql, (workflow,))}

    def waiting_handlers(self, now: int) -> set[tuple[str, str]]:
        """(workflow, handler) of tasks that can be worked on now."""
        sql = (
            "SELECT DISTINCT workflow, handler FROM workflow_tasks WHERE status = 'ready' "
            "OR (status = 'retrying' AND retry_at <= ?)"
        )
        return {(str(workflow), str(handler)) for workflow, handler in self._session.rows(sql, (now,))}

    def set_back(self, now: int, back_ms: int) -> None:
        """The clock was set back: what lies ahead comes no later for it."""
        self._session.execute(
            "UPDATE workflow_tasks SET retry_at = CASE WHEN retry_at - ? > ? THEN retry_at - ? ELSE ? END "
            "WHERE retry_at > ? AND updated_at > ?",
            (back_ms, now, back_ms, now, now, now),
        )

    # -- steps --------------------------------------------------------------------------------------------------------

    def steps(self, event_id: int) -> list[StepRow]:
        """In the order in which they were begun first."""
        return self._steps.all("WHERE event_id = ? ORDER BY number", event_id)

    def steps_of(self, event_ids: Sequence[int]) -> Mapping[int, list[StepRow]]:
        """The same of several events."""
        found: dict[int, list[StepRow]] = {}
        rows = self._steps.among("event_id", event_ids)
        for row in sorted(rows, key=lambda one: (one.event_id, one.number)):
            found.setdefault(row.event_id, []).append(row)
        return found

    def save_step(self, row: StepRow) -> None:
        """Insert it, or replace what is known of it."""
        self._steps.put(row, key=("event_id", "name"))

    def doubt_steps(self, event_id: int) -> int:
        """What was being called was cut off: nobody knows whether it happened; how many there are."""
        sql = "UPDATE workflow_steps SET status = 'uncertain' WHERE event_id = ? AND status = 'running'"
        return self._session.execute(sql, (event_id,))

    def catch_steps(self, event_id: int, names: Sequence[str]) -> None:
        """The handler went on after these steps had failed: they stay so."""
        for name in names:
            sql = "UPDATE workflow_steps SET caught = 1 WHERE event_id = ? AND name = ? AND status = 'failed'"
            self._session.execute(sql, (event_id, name))

    def ask_anew(self, event_id: int) -> None:
        """Reconcile is asked again about what is uncertain, however often it was asked before."""
        sql = "UPDATE workflow_steps SET tries = 0 WHERE event_id = ? AND status = 'uncertain'"
        self._session.execute(sql, (event_id,))

    def forget_steps(self, event_ids: Sequence[int]) -> None:
        self._session.delete_in("workflow_steps", "event_id", event_ids)
