"""What crosses the border between the store and the rest: plain immutable rows, one type per table.

They are named tuples because the engine makes and reads several per run. The order of fields is the order of
columns in the queries. Every record is a value: a change is a new record, saved by a verb of the transaction.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class JobDef(NamedTuple):
    """A job's definition as stored: JSON stays text until it is needed."""

    id: int
    name: str
    kind: str
    owner: str | None
    source: str
    trigger: str
    payload: str
    options: str
    created_at: int
    updated_at: int
    removed_at: int | None


class JobState(NamedTuple):
    """A job's hot row: everything admission and settling read and write."""

    job_id: int
    revision: int
    enabled: int
    paused: int
    due_at: int | None
    next_at: int | None
    slot: int | None
    run_id: int | None
    queued: int
    parked: str | None
    ready_at: int | None
    last_slot: int | None
    last_run_id: int | None
    last_run_at: int | None
    last_finished_at: int | None
    last_outcome: str | None
    last_error: str | None
    errors: int
    crashes: int
    missed: int
    slot_runs: int
    backoff_until: int | None
    notes: str | None
    failing_since: int | None = None  # when the first of the errors in a row was
    priority: int = 0  # as the job's options have it
    ended_at: int | None = None  # since when it is over: no further time comes
    counted_to: int = 0  # its slots up to here are accounted for, by runs and stretches; but for `slot`, if that is one

    @classmethod
    def new(cls, job_id: int, notes: str | None = None, *, priority: int = 0, counted_to: int = 0) -> JobState:
        """A job that was just stored: enabled, idle, and not placed in time yet."""
        return cls(
            job_id, revision=1, enabled=1, paused=0, due_at=None, next_at=None, slot=None, run_id=None, queued=0,
            parked=None, ready_at=None, last_slot=None, last_run_id=None, last_run_at=None, last_finished_at=None,
            last_outcome=None, last_error=None, errors=0, crashes=0, missed=0, slot_runs=0, backoff_until=None,
            notes=notes, priority=priority, counted_to=counted_to,
        )  # fmt: skip


class RunRow(NamedTuple):
    """One run, without its details."""

    id: int
    job_id: int
    kind: str
    reason: str
    slot: int | None
    attempt: int
    retry_of: int | None
    caused_by: int | None
    phase: str | None
    status: str
    outcome: str | None
    due_at: int
    started_at: int | None
    finished_at: int | None = None
    node: int | None = None
    lanes: str | None = None
    cancel: int = 0

    @classmethod
    def queued(
        cls,
        run_id: int,
        job: JobDef,
        reason: str,
        due_at: int,
        *,
        slot: int | None = None,
        attempt: int = 1,
        retry_of: int | None = None,
        caused_by: int | None = None,
    ) -> RunRow:
        """A requested run that waits for its turn."""
        return cls(
            id=run_id, job_id=job.id, kind=job.kind, reason=reason, slot=slot, attempt=attempt, retry_of=retry_of,
            caused_by=caused_by, phase=None, status="queued", outcome=None, due_at=due_at, started_at=None,
        )  # fmt: skip

    @classmethod
    def again(cls, run_id: int, before: RunRow, reason: str, due_at: int) -> RunRow:
        """A further attempt at what a run did not do, waiting for its turn."""
        return cls(
            id=run_id, job_id=before.job_id, kind=before.kind, reason=reason, slot=before.slot,
            attempt=before.attempt + 1, retry_of=before.id, caused_by=before.caused_by, phase=None, status="queued",
            outcome=None, due_at=due_at, started_at=None,
        )  # fmt: skip


class RunDetails(NamedTuple):
    """What a run has to say beyond its row; most runs have none."""

    run_id: int
    payload: str | None = None
    output: str | None = None
    error_type: str | None = None
    error: str | None = None
    trace: str | None = None
    log_file: str | None = None
    usage: str | None = None
    approval: str | None = None
    messages: str | None = None  # what is sent once the run, which waits, has ended well


class Given(NamedTuple):
    """What a run starts with besides its job's own payload."""

    payload: str | None = None
    approval: str | None = None


class Finish(NamedTuple):
    """The end of a run: what `finish` writes on its row. A waiting run keeps `finished_at` and `outcome` empty."""

    run_id: int
    status: str
    outcome: str | None
    started_at: int | None
    finished_at: int | None
    lanes: str | None


class SkipRow(NamedTuple):
    """Starts refused for one reason."""

    job_id: int
    reason: str
    times: int
    last_at: int
    detail: str | None


class AlertRow(NamedTuple):
    """One incident, open until `closed_at`."""

    id: int
    key: str
    kind: str
    job_id: int | None
    message: str
    opened_at: int
    last_at: int
    times: int
    closed_at: int | None
    acked_at: int | None
    notified_at: int | None = None  # when the last message about it was stored
    snoozed_until: int | None = None  # no message before
    data: str | None = None  # JSON: what it is about beyond its message


class EventGroup(NamedTuple):
    """The events of one stream that one transaction wrote; `seq` is the last one's number."""

    id: int
    stream: str
    seq: int
    at: int
    body: str


class CountedGroup(EventGroup):
    """A group as the listeners of this process get it, with what its transaction had counted; that is not stored."""

    counted: tuple[Any, ...] = ()


class NodeRow(NamedTuple):
    """A process that ran, or runs, the engine on this store."""

    id: int
    name: str
    started_at: int
    seen_at: int
    stopped_at: int | None
    details: str


class NodeState(NamedTuple):
    """What a node must know before it claims."""

    draining: bool | None = False  # a person asked it to start nothing more; None: another node took over from it
    held: int | None = None  # how far everything is held (`hold_level`); None: not read
    parked: bool = False  # whether any job is parked


class NodeDetails(NamedTuple):
    """A node with all that people want to know about it."""

    id: int
    name: str
    started_at: int
    seen_at: int
    stopped_at: int | None
    details: str
    taken_by: int | None
    draining: int
    loop_at: int | None
    held: int = 0


class TokenRow(NamedTuple):
    """A caller over the network; the token itself is not kept, only its hash."""

    hash: str
    name: str
    role: str
    created_at: int
    revoked_at: int | None
    last_used_at: int | None


class PageCode(NamedTuple):
    """A one-time code of a link to the dashboard; the code itself is not kept, only its hash."""

    hash: str
    name: str
    role: str
    expires_at: int


class PageSession(NamedTuple):
    """A person who is signed in to the dashboard; the cookie itself is not kept, only its hash."""

    hash: str
    name: str
    role: str
    token_hash: str | None
    created_at: int
    expires_at: int


class KeptAnswer(NamedTuple):
    """What a request with a key was answered; no answer while the first one is still being done."""

    caller: str
    key: str
    request: str
    content: str
    answer: str | None
    created_at: int


JOB_COLUMNS = JobDef._fields
STATE_COLUMNS = JobState._fields
RUN_COLUMNS = RunRow._fields
DETAIL_COLUMNS = RunDetails._fields
