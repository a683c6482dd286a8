"""Jobs, runs and the rest as they travel: the shapes of requests and answers.

Requests are read through these models: an unknown field is refused, and what a field may hold is the kernel's to say,
in its own sentences. Answers are made by `shapes` and described here; the tests hold both against each other.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model, model_validator

from wakeful.kernel.rules.outcome import OUTCOMES
from wakeful.kernel.rules.parking import PARKED_REASONS
from wakeful.routing import json_schema
from wakeful.routing.strict import Strict
from wakeful.store.listing import STATUS_SQL

T = TypeVar("T")

MAX_NOTE = 2_000

Named = Annotated[str, Field(max_length=1000), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 200})]
"""A name; the kernel limits its length."""
Json = Annotated[Any, WithJsonSchema({})]
RunStatus = Literal["queued", "active", "waiting", "done"]
if TYPE_CHECKING:
    Status: TypeAlias = str
    Outcome: TypeAlias = str
    ParkedReason: TypeAlias = str
else:
    Status, Outcome, ParkedReason = Literal[tuple(STATUS_SQL)], Literal[OUTCOMES], Literal[PARKED_REASONS]


class _Written(Strict):
    """A job as it is written. The trigger is given as `trigger`, or by its short form besides the other fields.

    Options may also be nested under `options`, as answers show them.
    """

    trigger: dict[str, Any] | None = None
    kind: Named | None = Field(None, description="what runs the job; `command` when a command is given")
    payload: Json = None
    command: Annotated[list[str] | None, WithJsonSchema(json_schema.nullable(json_schema.COMMAND.described))] = Field(
        None, max_length=10_000
    )
    owner: Named | None = None
    enabled: bool | None = None

    options: Annotated[dict[str, Any] | None, WithJsonSchema(json_schema.nullable(json_schema.NESTED))] = None

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers(cls, data: Any) -> Any:
        """As they are meant; the payload stays as it was written."""
        if not isinstance(data, dict):
            return data
        return {name: value if name == "payload" else json_schema.whole(value) for name, value in data.items()}


if TYPE_CHECKING:

    class JobFields(_Written):
        """A job as it is written."""

else:
    JobFields = create_model(
        "JobFields",
        __base__=_Written,
        __doc__=_Written.__doc__,
        **{
            name: (Annotated[json_schema.plain_type(schema) | None, WithJsonSchema(json_schema.nullable(schema))], None)
            for name, schema in {**json_schema.WHEN, **json_schema.OPTIONS}.items()
        },
    )


class JobCreate(JobFields):
    """A job to be made under a free name."""

    model_config = ConfigDict(
        json_schema_extra=partial(
            json_schema.one_trigger,
            examples=[
                {"name": "report", "kind": "report", "trigger": {"every": "6h"}, "payload": {"to": "team"}},
                {"name": "backup", "cron": "0 2 * * *", "tz": "Europe/Berlin", "command": ["./backup.sh"]},
            ],
        )
    )

    name: Named


class JobPut(JobFields):
    """A whole job; fields that are left out get defaults. The name is in the address, and may be repeated here."""

    model_config = ConfigDict(json_schema_extra=json_schema.one_trigger)

    name: Named | None = None


class JobPatch(JobFields):
    """What to change; null puts an option back to its default."""

    model_config = ConfigDict(json_schema_extra=partial(json_schema.one_trigger, keeps=True))

    name: Named | None = None


class Noted(Strict):
    """Why."""

    note: str | None = Field(None, max_length=MAX_NOTE)


class RunNow(Strict):
    """What to run it with, where that is not the job's own payload."""

    payload: Json = None


class Completion(Strict):
    """How work that went on elsewhere has ended. A success has no error."""

    model_config = ConfigDict(json_schema_extra=json_schema.ended)

    outcome: Literal["success", "error"] | None = None
    output: Json = None
    error: str | None = Field(None, max_length=100_000)


# -- answers -----------------------------------------------------------------------------------------------------------


class MonitorOut(BaseModel):
    """Whether what a monitor watches is up; `ping_url` is shown with one job, to callers who may change it."""

    state: Literal["new", "up", "late", "down", "paused"]
    running: bool
    expected_at: datetime | None
    deadline: datetime | None
    grace: str
    last_ping_at: datetime | None
    down_since: datetime | None
    ping_url: str | None


class JobOut(BaseModel):
    """A job: its definition, and where it stands. Times are UTC; `next_run_local` is in the job's zone."""

    model_config = ConfigDict(extra="forbid")

    id: str
    name: str
    kind: str
    owner: str | None
    source: str
    trigger: dict[str, Any]
    schedule: str
    zone: str
    payload: Json
    options: dict[str, Any]
    enabled: bool
    status: Status
    next_run_at: datetime | None
    next_run_local: str | None
    last_run_at: datetime | None
    last_outcome: Outcome | None
    last_error: str | None
    consecutive_errors: int
    missed: int
    notes: list[str]
    revision: int
    current_run: str | None
    waiting_for: str | None
    monitor: MonitorOut | None
    created_at: datetime
    updated_at: datetime


class ApprovalOut(BaseModel):
    """A question a run asked, and the answer."""

    question: str
    asked_at: datetime | None
    verdict: Literal["approved", "rejected"] | None
    by: str | None
    note: str | None
    decided_at: datetime | None


class DeliveryBrief(BaseModel):
    """A message about a run, and what became of it."""

    id: str
    connector: str | None
    status: str
    last_error: str | None


class StepOut(BaseModel):
    """A step of a run of a workflow."""

    name: str
    status: Literal["running", "done", "uncertain", "failed"]
    attempts: int
    started_at: datetime
    ended_at: datetime | None
    value: Any
    error: str | None


class RunOut(BaseModel):
    """A run, as lists show it."""

    model_config = ConfigDict(extra="forbid")

    id: str
    job: str
    job_id: str
    kind: str
    reason: str
    slot: datetime | None
    attempt: int
    retry_of: str | None
    caused_by: str | None
    phase: str | None
    status: RunStatus
    outcome: Outcome | None
    error: str | None
    error_type: str | None
    output: Json
    approvals: list[ApprovalOut]
    deliveries: list[DeliveryBrief]
    steps: list[StepOut]
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    node: str | None


class RunDetail(RunOut):
    """A run with everything there is to know about it; `trace` is for operators."""

    payload: Json
    trace: str | None
    usage: Json
    has_log: bool


class Completed(BaseModel):
    """A report was taken; `settled` when the run has ended with it."""

    run: str
    settled: bool


class Explained(BaseModel):
    """Sentences for people, and the facts they were made from."""

    subject: str
    sentences: list[str]
    facts: dict[str, Any]


class Moment(BaseModel):
    """A time, in UTC and in the job's zone."""

    at: datetime
    local: str


class Upcoming(BaseModel):
    """When a job would start next."""

    job: str
    zone: str
    schedule: str
    items: list[Moment]


class LatenessOut(BaseModel):
    """How late runs were started, of the last day's starts by time."""

    starts: int
    p50_ms: int | None
    p95_ms: int | None
    max_ms: int | None


class Waiting(BaseModel):
    """How many due jobs wait for one thing."""

    waits_for: str
    reason: ParkedReason
    count: int


class EngineOut(BaseModel):
    """What the engine of this server is doing."""

    status: Literal["stopped", "standby", "running", "stopping"]
    started_at: datetime | None
    check_count: int
    trigger_count: int
    last_check_at: datetime | None
    running: int


class ServiceOut(BaseModel):
    """What this server does again and again besides its engine, such as watching a file."""

    name: str
    every_s: float | None  # None: when it is woken
    failing: bool  # its last step failed, and is tried again; the server's log says why


class Stats(BaseModel):
    """Statistics of the scheduler."""

    at: datetime
    jobs: dict[str, int]
    runs_24h: dict[str, int]
    runs_7d: dict[str, int]
    open_runs: dict[str, int]
    queue_depth: int
    parked: list[Waiting]
    lateness: LatenessOut
    next_alarm_at: datetime | None
    open_alerts: int
    engine: EngineOut
    services: list[ServiceOut]


class NodeOut(BaseModel):
    """A process that runs, or ran, jobs of this store."""

    model_config = ConfigDict(extra="allow")

    id: str
    name: str
    state: str
    host: str | None
    pid: int | None
    version: str | None
    labels: list[str]
    kinds: list[str]
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    running: int
    taken_by: str | None
