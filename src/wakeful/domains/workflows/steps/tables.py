"""The tables of tasks and steps: what handlers with steps have begun or are about to, and what each step came to.

A task is an event on its way through such a handler. It is made when its key is known, and gone when the event is
consumed or skipped; its steps stay as long as the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.workflows.tables import OF_JOB, HandlerRow, WorkflowRow, with_workflow
from wakeful.domains.workflows.topics.tables import EventRow
from wakeful.store.rows import Rows, Verbs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wakeful.store.session import Session

READY, QUEUED, RUNNING, RETRYING, UNCERTAIN, PARKED = "ready", "queued", "running", "retrying", "uncertain", "parked"
DONE, FAILED = "done", "failed"
KEYS_AT_ONCE = 64  # in one question: so it stays prepared
_OF_HANDLERS = (
    "JOIN workflow_handlers h ON h.workflow = t.workflow AND h.name = t.handler WHERE h.workflow = ? AND t.status = ?"
)
_HOLDS = "status IN ('ready', 'running', 'retrying', 'uncertain')"
FREED_AT_ONCE = 16  # keys in one question
_KEYS = " UNION ".join(["SELECT CAST(? AS text) AS key"] * FREED_AT_ONCE)
_OF_KEY = "o.workflow = ? AND o.handler = ? AND o.key = k.key"
_FREED = (  # of each key, whose turn nobody has, the oldest that waits
    f"FROM ({_KEYS}) k JOIN workflow_tasks t ON t.event_id = (SELECT o.event_id FROM workflow_tasks o "
    f"WHERE {_OF_KEY} AND o.status = 'queued' ORDER BY o.seq LIMIT 1) "
    f"WHERE NOT EXISTS (SELECT 1 FROM workflow_tasks o WHERE {_OF_KEY} AND o.{_HOLDS})"
)

#: Where nothing but the start of a place itself changes what is read of it.
_DUE = (
    "FROM workflow_handlers h JOIN workflows w ON w.name = h.workflow JOIN job_state s ON s.job_id = h.job_id "
    "WHERE h.workflow = ? AND h.type = 'steps' AND h.open_run IS NULL AND w.issue IS NULL AND w.working_run IS NULL "
    "AND s.queued > 0 AND s.run_id IS NULL AND s.due_at <= ?"
)
_OVER = (
    "SELECT r.id FROM workflow_handlers h JOIN job_state s ON s.job_id = h.job_id "
    "JOIN workflow_runs r ON r.id = s.last_run_id WHERE h.workflow = ? AND r.status = 'committed'"
)


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

    def save(self, *rows: TaskRow) -> None:
        self._tasks.save(*rows)

    def drop(self, event_ids: Sequence[int]) -> None:
        self._session.delete_in("workflow_tasks", "event_id", event_ids)

    def drop_unbegun(self, workflow: str, handler: str) -> None:
        """Forget the keys of what was never begun: other code may give it others."""
        self._session.execute(
            "DELETE FROM workflow_tasks WHERE workflow = ? AND handler = ? AND run_id IS NULL", (workflow, handler)
        )

    def ready(self, workflow: str, handler: str, limit: int) -> list[TaskRow]:
        """Those whose turn it is, oldest first."""
        return self._tasks.all(
            "WHERE workflow = ? AND handler = ? AND status = 'ready' ORDER BY seq LIMIT ?", workflow, handler, limit
        )

    def due(self, workflow: str, handler: str, now: int, limit: int) -> list[TaskRow]:
        """Those that are to be tried again, since the longest first."""
        return self._tasks.all(
            "WHERE workflow = ? AND handler = ? AND status = 'retrying' "
            "AND retry_at <= ? ORDER BY retry_at, seq LIMIT ?",
            workflow,
            handler,
            now,
            limit,
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
            f"AND {_HOLDS} LIMIT 1"
        )
        return bool(self._session.rows(sql, (task.workflow, task.handler, task.key, task.event_id)))

    def freed(self, workflow: str, handler: str, keys: Collection[str]) -> list[TaskRow]:
        """Of each of these keys, whose turn nobody has, the oldest that waits for it."""
        listed, found = sorted(keys), list[TaskRow]()
        for first in range(0, len(listed), FREED_AT_ONCE):
            part = listed[first : first + FREED_AT_ONCE]
            asked = [*part, *[part[0]] * (FREED_AT_ONCE - len(part))]
            sql = f"SELECT {self._tasks.of('t')} {_FREED}"
            found += self._tasks.answered(sql, *asked, workflow, handler, workflow, handler)
        return found

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

    def with_status(self, workflow: str, status: str) -> list[TaskRow]:
        """All with that status, the oldest event first; they are found by handler, however many others wait."""
        return self._tasks.joined("t", f"{_OF_HANDLERS} ORDER BY t.seq", workflow, status)

    def newest(self, workflow: str, status: str) -> TaskRow | None:
        """The one of the newest event."""
        found = self._tasks.joined("t", f"{_OF_HANDLERS} ORDER BY t.event_id DESC LIMIT 1", workflow, status)
        return found[0] if found else None

    def count(self, workflow: str, status: str) -> int:
        """How many have that status."""
        return self._count(f"SELECT count(*) FROM workflow_tasks t {_OF_HANDLERS}", workflow, status)

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

    def save_step(self, *rows: StepRow) -> None:
        """Insert them, or replace what is known of them."""
        self._steps.put(*rows, key=("event_id", "name"))

    def doubt_steps(self, event_id: int, whys: Mapping[str, str], otherwise: str) -> list[StepRow]:
        """What was being called was cut off: nobody knows whether it happened. The steps as they are then.

        `whys`: the reason of each that is known; of another it is `otherwise`.
        """
        steps = self.steps(event_id)
        cut = {
            step.name: step._replace(status=UNCERTAIN, error=whys.get(step.name, otherwise))
            for step in steps
            if step.status == RUNNING
        }
        self.save_step(*cut.values())
        return [cut.get(step.name, step) for step in steps]

    def catch_steps(self, event_id: int, names: Sequence[str]) -> None:
        """The handler went on after these steps had failed: they stay so."""
        for name in names:
            sql = "UPDATE workflow_steps SET caught = 1 WHERE event_id = ? AND name = ? AND status = 'failed'"
            self._session.execute(sql, (event_id, name))

    def ask_anew(self, *event_ids: int) -> None:
        """Reconcile is asked again about what is uncertain, however often it was asked before."""
        asked = [step for step in self._steps.among("event_id", event_ids, only="status = 'uncertain'") if step.tries]
        self._steps.put(*(step._replace(tries=0) for step in asked), key=("event_id", "name"))

    def forget_steps(self, event_ids: Sequence[int]) -> None:
        self._session.delete_in("workflow_steps", "event_id", event_ids)


class ReadAhead(Verbs):
    """What the starts and ends of several places ask about one workflow: a turn of the engine has many.

    The first of them in a transaction asks for itself alone; the second asks for all.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._due: dict[int, tuple[HandlerRow, WorkflowRow]] = {}
        self._over: set[int] = set()
        self._looks: dict[tuple[str, str], int] = {}  # how often, by what is asked and workflow

    def due(self, job_id: int, workflow: str, now: int) -> tuple[HandlerRow, WorkflowRow] | None:
        """The place of a job that is due, and its workflow; None where that was not read. Each is given once."""
        if self._is_second("due", workflow):
            rows = self._session.rows(f"SELECT {OF_JOB} {_DUE}", (workflow, now))
            self._due = {handler.job_id: (handler, row) for handler, row in map(with_workflow, rows) if handler.job_id}
        return self._due.pop(job_id, None)

    def is_over(self, run_id: int, workflow: str) -> bool:
        """Whether the last run of a job is known to be committed, which is for good."""
        if run_id not in self._over and self._is_second("over", workflow):
            self._over.update(self._column(_OVER, workflow))
        return run_id in self._over

    def _is_second(self, what: str, workflow: str) -> bool:
        looks = self._looks[what, workflow] = self._looks.get((what, workflow), 0) + 1
        return looks == 2
