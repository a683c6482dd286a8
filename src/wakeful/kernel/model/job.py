"""Jobs as users see them: read-only views with aware datetimes and ids as text; and runs, from `run.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.kernel.model.explanations import HOURS, PASSING, STARTED_WHEN, WATCHED, PassedOver
from wakeful.kernel.model.run import Run, moment, wire
from wakeful.kernel.rules import options as job_options
from wakeful.kernel.rules.policy import next_start, too_often, trigger_of, upcoming_starts
from wakeful.store.listing import status_of
from wakeful.store.records import JobDef, JobState
from wakeful.triggers import Manual, Trigger
from wakeful.triggers.moments import from_ms, iso

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.triggers.active_hours import ActiveHours

__all__ = ["Job", "Run", "job_view", "job_views", "next_jobs"]


@lru_cache(maxsize=8192)
def _trigger_words(text: str, kind: str) -> tuple[str, str]:
    """A stored trigger as data, in JSON, and in words. Cached by text, as triggers are."""
    trigger = trigger_of(text)
    by_kind = STARTED_WHEN.get(kind) if isinstance(trigger, Manual) else None
    return json.dumps(trigger.to_data()), by_kind or trigger.brief()


class Job:
    """A job: its definition and its state, as of one moment."""

    __slots__ = ("_asking", "_definition", "_min_interval", "_now", "_passed", "_state")

    def __init__(
        self,
        definition: JobDef,
        state: JobState,
        now: int,
        min_interval: int | None = None,
        *,
        asking: bool = False,
        passed: PassedOver | None = None,
    ) -> None:
        """`asking`: its run in progress waits for a person. `passed`: until when its times are passed over."""
        self._definition = definition
        self._state = state
        self._now = now
        self._asking, self._passed = asking, passed
        self._min_interval = min_interval  # what bounded jobs obey where it runs

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.status} {self.schedule}>"

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
    def schedule(self) -> str:
        """When it runs, in words that `when` reads; a rhythm without the moment from which it counts."""
        return _trigger_words(self._definition.trigger, self._definition.kind)[1]

    @property
    def payload(self) -> Any:
        return json.loads(self._definition.payload)

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from the defaults."""
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
        return moment(self._next_ms())

    @property
    def last_run_at(self) -> datetime | None:
        return moment(self._state.last_run_at)

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
        notes: list[str] = json.loads(self._state.notes) if self._state.notes else []
        return [*notes, self.passed_over] if self.passed_over is not None else notes

    @property
    def passed_over(self) -> str | None:
        """Why times that lie ahead will have no run, and until when; None where none will be passed over."""
        at = self._state.next_at
        lies_ahead = self._passed is not None and at is not None and at < self._passed.until
        return self._passed.why if self._passed is not None and lies_ahead else None

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
        watched = WATCHED.get(self._definition.kind)
        return None if watched is None else watched(self.trigger, self._state, self._now)

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
        starts = upcoming_starts(self.trigger, options, self._state, self._now, self._hours())
        until = self._passed.until if self._passed is not None else 0
        if self.trigger.type == "once":  # one time waits
            return (max(at, until) for at in starts)
        return dropwhile(lambda at: at < until, starts) if until else starts

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC."""
        trigger, schedule = _trigger_words(self._definition.trigger, self._definition.kind)
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
            "next_run_at": wire(self._next_ms()),
            "last_run_at": wire(self._state.last_run_at),
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

    @property
    def is_put_off(self) -> bool:
        """Whether the time it is armed for will not be its next start: that is passed over, or waits for its hours."""
        return self.passed_over is not None or (self._hours() is not None and self._next_ms() != self._state.next_at)

    def _hours(self) -> ActiveHours | None:
        found = HOURS.get(self._definition.kind)
        return None if found is None else found(self._definition)

    def _next_ms(self) -> int | None:
        state = self._state
        if state.run_id is None and state.queued and state.due_at is not None:
            return state.due_at  # a further attempt, or a requested start, comes before the next slot
        passes = self._passed is not None and state.next_at is not None and state.run_id is None
        if passes or (state.enabled and not state.paused and self._hours() is not None):
            return next(self.starts(), None)
        if state.next_at is not None or state.run_id is None or not state.enabled or state.paused:
            return state.next_at
        # While it runs nothing is armed; what a person wants to see is when it would start again.
        return next_start(self.trigger, state, self._now, 0.0, completed=self._now).at


def job_views(tx: Transaction, pairs: Sequence[tuple[JobDef, JobState]], min_interval: int | None = None) -> list[Job]:
    """Jobs as users see them; `min_interval` holds for bounded ones where no node says another."""
    if any(job_options.from_text(job.options).bounded for job, _ in pairs):
        said = [json.loads(node.details).get("min_interval", min_interval) for node in tx.members.serving()]
        limits = said or [min_interval]
        min_interval = None if None in limits else min(limits)
    runs = [state.run_id for _, state in pairs if state.run_id is not None]
    asking = tx.runs.asking(runs) if runs else ()
    passed = _passed_over(tx, pairs)
    return [
        Job(job, state, tx.now, min_interval, asking=state.run_id in asking, passed=passed.get(job.id))
        for job, state in pairs
    ]


def _passed_over(tx: Transaction, pairs: Sequence[tuple[JobDef, JobState]]) -> Mapping[int, PassedOver]:
    """The jobs whose next times their kind will not run."""
    found: dict[int, PassedOver] = {}
    for kind, passing in PASSING.items():
        armed = [job for job, state in pairs if job.kind == kind and state.next_at is not None and state.enabled]
        found.update(passing(tx, armed) if armed else {})
    return found


def job_view(tx: Transaction, pair: tuple[JobDef, JobState]) -> Job:
    """One job as users see it."""
    return job_views(tx, [pair])[0]


def next_jobs(tx: Transaction, number: int, hidden: Sequence[str] = ()) -> list[Job]:
    """Among these are the `number` jobs that start next; times that are passed over are no starts."""
    wanted = number
    while True:
        found = job_views(tx, tx.jobs.soonest(wanted, hidden))
        if len(found) < wanted or sum(not job.is_put_off for job in found) >= number:
            return found
        wanted *= 4
