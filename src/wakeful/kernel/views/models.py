"""Jobs and runs as users see them: read-only views with aware datetimes and ids as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.kernel.rules import options as job_options
from wakeful.kernel.rules.approval import APPROVED, approvals
from wakeful.kernel.rules.limits import too_often
from wakeful.kernel.rules.outcome import GOES_ON
from wakeful.kernel.rules.policy import next_start, trigger_of, upcoming_starts
from wakeful.kernel.views.monitors import monitor_of
from wakeful.kernel.views.outgoing import Outbox
from wakeful.store.listing import status_of
from wakeful.store.records import JobDef, JobState, RunDetails, RunRow
from wakeful.triggers import Trigger
from wakeful.triggers.moments import from_ms, iso

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction


def _moment(ms: int | None) -> datetime | None:
    return from_ms(ms) if ms is not None else None


def _wire(ms: int | None) -> str | None:
    return iso(ms) if ms is not None else None


@lru_cache(maxsize=8192)
def _trigger_words(text: str) -> tuple[str, str]:
    """A stored trigger as data, in JSON, and in words. Cached by text, as triggers are."""
    trigger = trigger_of(text)
    return json.dumps(trigger.to_data()), trigger.describe()


class Job:
    """A job: its definition and where it stands, as of one moment."""

    __slots__ = ("_asking", "_definition", "_min_interval", "_now", "_state")

    def __init__(
        self,
        definition: JobDef,
        state: JobState,
        now: int,
        min_interval: int | None = None,
        *,
        asking: bool = False,
    ) -> None:
        """`asking`: its run in progress waits for a person."""
        self._definition = definition
        self._state = state
        self._now = now
        self._asking = asking
        self._min_interval = min_interval  # what bounded jobs obey where it runs

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.status} {self.trigger.describe()}>"

    @property
    def id(self) -> str:
        return ids.job_text(self._definition.id)

    @property
    def name(self) -> str:
        return self._definition.name

    @property
    def kind(self) -> str:
        return self._definition.kind

    @property
    def owner(self) -> str | None:
        return self._definition.owner

    @property
    def source(self) -> str:
        """Who made it: file, cli, api, mcp or code."""
        return self._definition.source

    @property
    def trigger(self) -> Trigger:
        return trigger_of(self._definition.trigger)

    @property
    def payload(self) -> Any:
        return json.loads(self._definition.payload)

    @property
    def options(self) -> dict[str, Any]:
        """What was chosen beside the defaults."""
        return job_options.as_written(job_options.from_text(self._definition.options))

    @property
    def enabled(self) -> bool:
        return bool(self._state.enabled)

    @property
    def status(self) -> str:
        """idle, running, waiting (for a person), paused, done or disabled."""
        return status_of(self._state, asking=self._asking)

    @property
    def over(self) -> bool:
        """Whether no further time comes: its one time has passed, or `until` or `max_runs` is reached."""
        return self._state.ended_at is not None

    @property
    def next_run_at(self) -> datetime | None:
        return _moment(self._next_ms())

    @property
    def last_run_at(self) -> datetime | None:
        return _moment(self._state.last_run_at)

    @property
    def last_outcome(self) -> str | None:
        return self._state.last_outcome

    @property
    def last_error(self) -> str | None:
        return self._state.last_error

    @property
    def consecutive_errors(self) -> int:
        return self._state.errors

    @property
    def missed(self) -> int:
        """Slots that will never have a run of their own."""
        return self._state.missed

    @property
    def notes(self) -> list[str]:
        """What a person should know about this job."""
        return json.loads(self._state.notes) if self._state.notes else []

    @property
    def revision(self) -> int:
        return self._state.revision

    @property
    def current_run(self) -> str | None:
        return ids.run_text(self._state.run_id) if self._state.run_id is not None else None

    @property
    def waiting_for(self) -> str | None:
        """The lane or handler a due job waits for."""
        return self._state.parked

    @property
    def monitor(self) -> dict[str, Any] | None:
        """Of a monitor, whether it is up and until when its silence is tolerated; None for other jobs."""
        return monitor_of(self.trigger, self._state, self._now)

    @property
    def created_at(self) -> datetime:
        return from_ms(self._definition.created_at)

    @property
    def updated_at(self) -> datetime:
        return from_ms(self._definition.updated_at)

    def upcoming(self, n: int) -> list[datetime]:
        """When it will start next by time, as if each run ended in the moment it began; nothing while it is stopped."""
        return [from_ms(at) for at in islice(self.starts(), max(0, n))]

    def starts(self) -> Iterator[int]:
        """The same without an end, where it has none, in milliseconds."""
        options = job_options.from_text(self._definition.options)
        if not self._state.enabled or self._state.paused:
            return iter(())
        if options.bounded and too_often(self.trigger, self._min_interval):
            return iter(())  # its slots are passed over when they come
        return upcoming_starts(self.trigger, options, self._state, self._now)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC."""
        trigger, schedule = _trigger_words(self._definition.trigger)
        return {
            "id": self.id,
            "name": self.name,
            "kind": self.kind,
            "owner": self.owner,
            "source": self.source,
            "trigger": json.loads(trigger),
            "schedule": schedule,
            "payload": self.payload,
            "options": self.options,
            "enabled": self.enabled,
            "status": self.status,
            "next_run_at": _wire(self._next_ms()),
            "last_run_at": _wire(self._state.last_run_at),
            "last_outcome": self.last_outcome,
            "last_error": self.last_error,
            "consecutive_errors": self.consecutive_errors,
            "missed": self.missed,
            "notes": self.notes,
            "revision": self.revision,
            "current_run": self.current_run,
            "waiting_for": self.waiting_for,
            "monitor": self.monitor,
            "created_at": iso(self._definition.created_at),
            "updated_at": iso(self._definition.updated_at),
        }

    def _next_ms(self) -> int | None:
        state = self._state
        if state.run_id is None and state.queued and state.due_at is not None:
            return state.due_at  # a further attempt, or a start somebody asked for, comes before the next slot
        if state.next_at is not None or state.run_id is None or not state.enabled or state.paused:
            return state.next_at
        # While it runs nothing is armed; what a person wants to see is when it would start again.
        return next_start(self.trigger, state, self._now, 0.0, completed=self._now).at


def job_views(tx: Transaction, pairs: Sequence[tuple[JobDef, JobState]], min_interval: int | None = None) -> list[Job]:
    """Jobs as users see them; `min_interval` holds for bounded ones where no node says another."""
    if any(job_options.from_text(job.options).bounded for job, _ in pairs):
        said = [json.loads(node.details).get("min_interval", min_interval) for node in tx.journal.serving()]
        limits = said or [min_interval]
        min_interval = None if None in limits else min(limits)
    runs = [state.run_id for _, state in pairs if state.run_id is not None]
    asking = tx.runs.asking(runs) if runs else ()
    return [Job(job, state, tx.now, min_interval, asking=state.run_id in asking) for job, state in pairs]


def job_view(tx: Transaction, pair: tuple[JobDef, JobState]) -> Job:
    """One job as users see it."""
    return job_views(tx, [pair])[0]


class Run(Outbox):
    """A run, for handlers and for history. `id`, `slot` and `attempt` are what a handler needs to be idempotent."""

    __slots__ = ("_details", "_name", "_node", "_payload", "_row", "context")

    def __init__(
        self, row: RunRow, name: str, payload: str, details: RunDetails | None = None, node: str | None = None
    ) -> None:
        super().__init__()
        self._row = row
        self._name = name
        self._payload = payload
        self._details = details
        self._node = node
        self.context: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.job} {self.outcome or self.status}>"

    @property
    def id(self) -> str:
        return ids.run_text(self._row.id)

    @property
    def job(self) -> str:
        """The job's name."""
        return self._name

    @property
    def job_id(self) -> str:
        return ids.job_text(self._row.job_id)

    @property
    def kind(self) -> str:
        return self._row.kind

    @property
    def payload(self) -> Any:
        return json.loads(self._payload)

    @property
    def reason(self) -> str:
        """Why it was started: schedule, catch_up, manual, retry, recovery, after, approval."""
        return self._row.reason

    @property
    def slot(self) -> datetime | None:
        """The time this run was scheduled for; None if it was not started by time."""
        return _moment(self._row.slot)

    @property
    def attempt(self) -> int:
        return self._row.attempt

    @property
    def retry_of(self) -> str | None:
        return ids.run_text(self._row.retry_of) if self._row.retry_of is not None else None

    @property
    def caused_by(self) -> str | None:
        """The run of another job whose end started this one."""
        return ids.run_text(self._row.caused_by) if self._row.caused_by is not None else None

    @property
    def phase(self) -> str | None:
        return self._row.phase

    @property
    def status(self) -> str:
        return self._row.status

    @property
    def unstoppable(self) -> str | None:
        """Why it should have ended, while it goes on all the same; None for every other run."""
        return GOES_ON.get(self._row.phase or "") if self._row.status == "active" else None

    @property
    def outcome(self) -> str | None:
        return self._row.outcome

    @property
    def error(self) -> str | None:
        return self._details.error if self._details is not None else None

    @property
    def error_type(self) -> str | None:
        """The name of the exception's class."""
        return self._details.error_type if self._details is not None else None

    @property
    def trace(self) -> str | None:
        return self._details.trace if self._details is not None else None

    @property
    def output(self) -> Any:
        """What the handler returned."""
        text = self._details.output if self._details is not None else None
        return json.loads(text) if text is not None else None

    @property
    def approvals(self) -> list[dict[str, Any]]:
        """What it asked people, oldest first: question, verdict (approved, rejected or None), by, note and times."""
        entries = approvals(self._details.approval if self._details is not None else None)
        times = ("asked_at", "decided_at")
        return [{**entry, **{name: _wire(entry.get(name)) for name in times}} for entry in entries]

    @property
    def approved_by(self) -> str | None:
        """Who approved it last; None before that."""
        return self._last_approval("by")

    @property
    def approval_note(self) -> str | None:
        """What they said with it."""
        return self._last_approval("note")

    def _last_approval(self, field: str) -> str | None:
        given = [entry[field] for entry in self.approvals if entry["verdict"] == APPROVED]
        return given[-1] if given else None

    @property
    def usage(self) -> Any:
        """What it cost: tokens and money, where its kind knows."""
        text = self._details.usage if self._details is not None else None
        return json.loads(text) if text is not None else None

    @property
    def log_file(self) -> str | None:
        return self._details.log_file if self._details is not None else None

    @property
    def due_at(self) -> datetime:
        return from_ms(self._row.due_at)

    @property
    def started_at(self) -> datetime | None:
        return _moment(self._row.started_at)

    @property
    def finished_at(self) -> datetime | None:
        return _moment(self._row.finished_at)

    @property
    def node(self) -> str | None:
        return self._node

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC."""
        row = self._row
        return {
            "id": self.id,
            "job": self.job,
            "job_id": self.job_id,
            "kind": self.kind,
            "reason": self.reason,
            "slot": _wire(row.slot),
            "attempt": self.attempt,
            "retry_of": self.retry_of,
            "caused_by": self.caused_by,
            "phase": self.phase,
            "status": self.status,
            "outcome": self.outcome,
            "error": self.error,
            "error_type": self.error_type,
            "output": self.output,
            "approvals": self.approvals,
            "deliveries": self.deliveries,
            "due_at": iso(row.due_at),
            "started_at": _wire(row.started_at),
            "finished_at": _wire(row.finished_at),
            "node": self.node,
        }
