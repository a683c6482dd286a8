"""Runs as users see them: for handlers, and for history; and what a run sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.errors import InvalidJob
from wakeful.kernel.model.explanations import PHASES, STEPS
from wakeful.kernel.rules.approval import ABOUT, APPROVED, approvals
from wakeful.kernel.rules.option_reading import NAME
from wakeful.kernel.rules.outcome import GOES_ON, Outgoing, clean
from wakeful.store.records import RunDetails, RunRow
from wakeful.triggers.moments import from_ms, iso

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction


Source = Callable[["Transaction", Sequence[int]], Mapping[int, list[dict[str, Any]]]]

#: Who knows what was sent about runs; domains add themselves.
SOURCES: dict[str, Source] = {}
#: Who knows how many messages made from an id on were given up; domains add themselves.
GIVEN_UP: dict[str, Callable[[Transaction, int], int]] = {}
#: Who knows how many messages wait to be sent, and since when the first of them does; domains add themselves.
UNSENT: dict[str, Callable[[Transaction], tuple[int, int | None]]] = {}

MAX_TEXT = 100_000
MAX_MESSAGES = 100
MAX_TITLE = 300


def check_message(text: object, to: object, title: object = None) -> Outgoing:
    """A message as it can be stored, or InvalidJob with what is wrong with it."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT:
        message = f"A message is a text of 1 to {MAX_TEXT} characters, not {text!r:.80}."
        raise InvalidJob(message)
    if not isinstance(to, str) or NAME.fullmatch(to) is None:
        message = f"to is the name of a connector, last or none, not {to!r:.80}."
        raise InvalidJob(message)
    if title is not None and (not isinstance(title, str) or len(title) > MAX_TITLE):
        message = f"A title is a text of at most {MAX_TITLE} characters, not {title!r:.80}."
        raise InvalidJob(message)
    return Outgoing(clean(text), to, clean(" ".join(title.split())) if title else None)


class Accepted:
    """A message was taken. Async handlers may await it; there is nothing to wait for."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class RunOutbox:
    """The part of a run that sends."""

    __slots__ = ("_deliveries", "_outgoing")

    def __init__(self) -> None:
        self._outgoing: list[Outgoing] = []
        self._deliveries: list[dict[str, Any]] = []

    @property
    def outgoing(self) -> tuple[Outgoing, ...]:
        """What `deliver` was given so far."""
        return tuple(self._outgoing)

    @property
    def deliveries(self) -> list[dict[str, Any]]:
        """What was sent about this run, and what became of it: `id`, `connector`, `status`, `last_error`."""
        return self._deliveries

    def deliver(self, text: str, *, to: str = "last", title: str | None = None) -> Accepted:
        """Send a message with the end of this run: stored only if the run ends as success or noop.

        One that waits (`Wait`) keeps it until then.

        `to` is a connector, or `last`: the connector through which a person last wrote.
        """
        if len(self._outgoing) >= MAX_MESSAGES:
            message = f"A run sends {MAX_MESSAGES} messages at most."
            raise InvalidJob(message)
        self._outgoing.append(check_message(text, to, title))
        return Accepted()


def with_deliveries(tx: Transaction, runs: Sequence[tuple[int, RunOutbox]]) -> None:
    """Give each run, besides its number, what was sent about it."""
    numbers = [number for number, _ in runs]
    for source in SOURCES.values() if numbers else ():
        found = source(tx, numbers)
        for number, run in runs:
            run._deliveries += found.get(number, [])  # noqa: SLF001 - filled in here alone


def moment(ms: int | None) -> datetime | None:
    """A stored time as an aware datetime, if there is one."""
    return from_ms(ms) if ms is not None else None


def wire(ms: int | None) -> str | None:
    """A stored time as ISO 8601 in UTC, if there is one."""
    return iso(ms) if ms is not None else None


def approval_record(run: Run) -> str | None:
    """What the run asked people and what they said, as it is stored, with what each question was about."""
    return run._details.approval if run._details is not None else None  # noqa: SLF001 - for kinds, not for users


class Run(RunOutbox):
    """A run, for handlers and for history. `id`, `slot` and `attempt` are what a handler needs to be idempotent."""

    __slots__ = ("_details", "_name", "_node", "_payload", "_row", "_steps", "context")

    def __init__(
        self, row: RunRow, name: str, payload: str, details: RunDetails | None = None, node: str | None = None
    ) -> None:
        super().__init__()
        self._row = row
        self._name = name
        self._payload = payload
        self._details = details
        self._node = node
        self._steps: list[dict[str, Any]] = []
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
        return moment(self._row.slot)

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
        """Why it should have ended, although it still runs; None for every other run."""
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
        shown = [{name: value for name, value in entry.items() if name != ABOUT} for entry in entries]
        return [{**entry, **{name: wire(entry.get(name)) for name in times}} for entry in shown]

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
        return moment(self._row.started_at)

    @property
    def finished_at(self) -> datetime | None:
        return moment(self._row.finished_at)

    @property
    def node(self) -> str | None:
        return self._node

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps of a run of a workflow, in the order in which they began; empty where it has none."""
        return self._steps

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC."""
        row = self._row
        return {
            "id": self.id,
            "job": self.job,
            "job_id": self.job_id,
            "kind": self.kind,
            "reason": self.reason,
            "slot": wire(row.slot),
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
            "steps": self.steps,
            "due_at": iso(row.due_at),
            "started_at": wire(row.started_at),
            "finished_at": wire(row.finished_at),
            "node": self.node,
        }


def run_views(tx: Transaction, rows: list[RunRow]) -> list[Run]:
    """Runs with their names, nodes and details."""
    jobs = tx.jobs.definitions(sorted({row.job_id for row in rows}))
    details = tx.runs.details_of([row.id for row in rows])
    nodes = tx.nodes.names_of(sorted({row.node for row in rows if row.node is not None}))
    found = []
    for row in _with_phases(tx, rows):
        job, detail = jobs.get(row.job_id), details.get(row.id)
        payload = (
            detail.payload if detail is not None and detail.payload is not None else job.payload if job else "null"
        )
        name = job.name if job is not None else "(removed)"
        found.append(Run(row, name, payload, detail, nodes.get(row.node) if row.node is not None else None))
    with_deliveries(tx, [(row.id, run) for row, run in zip(rows, found, strict=True)])
    _add_steps(tx, rows, found)
    return found


def _add_steps(tx: Transaction, rows: list[RunRow], runs: list[Run]) -> None:
    """Give the runs the steps that their kinds know."""
    for kind, steps in STEPS.items():
        asked = [row.id for row in rows if row.kind == kind]
        known = steps(tx, asked) if asked else {}
        for row, run in zip(rows, runs, strict=True):
            run._steps += known.get(row.id, [])  # noqa: SLF001 - filled in here alone


def _with_phases(tx: Transaction, rows: list[RunRow]) -> list[RunRow]:
    """The runs with the phases that their kinds know."""
    known: dict[int, str] = {}
    for kind, phases in PHASES.items():
        asked = [row.id for row in rows if row.kind == kind and row.phase is None]
        known |= phases(tx, asked) if asked else {}
    return [row._replace(phase=known[row.id]) if row.id in known else row for row in rows]
