"""Schedules as they travel: camelCase, definition and state in one flat object."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from wakeful.agents.task import MAX_MODEL, MAX_PROMPT, Task
from wakeful.api import forms
from wakeful.api.strict import Strict

MINUTE_MS = 60_000
LONGEST_MINUTES = 36_500 * 1440
#: What answers show and requests may carry along, so that what was read can be changed and written back.
STATE = (
    "lastRun", "lastResult", "lastError", "sessionId", "nextRun", "nextRunLocal", "timezone", "description",
    "status", "currentRun", "owner",
)  # fmt: skip


class Camel(Strict):
    """Field names as the wire has them."""

    model_config = ConfigDict(alias_generator=to_camel)


Minutes = Annotated[float, Field(le=LONGEST_MINUTES, allow_inf_nan=False)]
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PROMPT)]


class Timing(Camel):
    """When: `cron` has an expression, `interval` minutes after each run, `once` a time."""

    model_config = ConfigDict(json_schema_extra=forms.instead(forms.TIMING))

    type: Literal["cron", "interval", "every", "once", "at"]
    expression: Annotated[str, StringConstraints(max_length=1000)] | None = Field(None, examples=["0 9 * * 1-5"])
    interval_minutes: Minutes | None = Field(None, description="not below the server's minimum")
    at: Annotated[str, StringConstraints(max_length=100)] | None = Field(None, examples=["2030-01-01T09:00:00Z"])
    timezone: Annotated[str, StringConstraints(max_length=100)] | None = Field(None, examples=["Europe/Berlin"])

    def to_data(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)


class SessionConfig(Camel):
    """Which session a schedule talks to."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=MAX_MODEL)] | None = None
    persist_session: bool = Field(default=True, description="one session for all runs, or a new one for each")
    session_id: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="a session that exists, shared by name"
    )
    timeout_minutes: Annotated[float, Field(gt=0, le=30 * 1440, allow_inf_nan=False)] | None = Field(
        None, description="how long a run may wait for the report of its end"
    )

    def onto(self, task: Task) -> Task:
        """The task with what was said here; what was not said stays."""
        said = self.model_fields_set
        if "model" in said:
            task = task._replace(model=self.model)
        if "persist_session" in said:
            task = task._replace(persist=self.persist_session)
        if "session_id" in said:
            task = task._replace(session=self.session_id)
        if "timeout_minutes" in said:
            minutes = self.timeout_minutes
            task = task._replace(deadline_ms=None if minutes is None else max(1, round(minutes * MINUTE_MS)))
        return task


class ScheduleIn(Camel):
    """A whole schedule. Without `enabled` a new one is enabled, and one that exists stays as it is."""

    model_config = ConfigDict(
        json_schema_extra=partial(
            forms.carries,
            state=STATE,
            examples=[
                {
                    "prompt": "Generate daily standup summary from git commits",
                    "schedule": {"type": "cron", "expression": "0 9 * * 1-5"},
                    "sessionConfig": {"model": "claude-sonnet", "persistSession": True},
                }
            ],
        )
    )

    slug: Annotated[str, StringConstraints(max_length=1000)] | None = Field(None, description="as in the address")
    prompt: Prompt
    timing: Timing = Field(alias="schedule")
    session_config: SessionConfig | None = None
    enabled: bool | None = None

    @classmethod
    def carried(cls) -> tuple[str, ...]:
        return STATE


class ScheduleChange(Camel):
    """Some of a schedule: what is left out stays as it is, in `sessionConfig` too."""

    model_config = ConfigDict(
        json_schema_extra=partial(
            forms.says_something, state=STATE, parts=("prompt", "schedule", "enabled", "sessionConfig")
        )
    )

    slug: Annotated[str, StringConstraints(max_length=1000)] | None = Field(None, description="as in the address")
    prompt: Prompt | None = None
    timing: Timing | None = Field(None, alias="schedule")
    session_config: SessionConfig | None = None
    enabled: bool | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set - {"slug"}:
            raise PydanticCustomError(
                "empty", "nothing is to be changed: give prompt, enabled, schedule or sessionConfig"
            )
        return self

    @classmethod
    def carried(cls) -> tuple[str, ...]:
        return STATE


class Shown(BaseModel):
    """What answers have in common."""

    model_config = ConfigDict(alias_generator=to_camel)


class TimingOut(Shown):
    """When, as it is stored; the zone only where it is not the server's own."""

    type: str
    expression: str | None = None
    interval_minutes: float | None = None
    at: str | None = None
    timezone: str | None = None


class SessionConfigOut(Shown):
    """Which session it talks to."""

    model: str | None
    persist_session: bool
    session_id: str | None = None
    timeout_minutes: float | None = None


class ScheduleOut(Shown):
    """A schedule: its definition and where it stands. Times are UTC; `nextRunLocal` is for people."""

    slug: str
    prompt: str
    enabled: bool
    timing: TimingOut = Field(alias="schedule")
    session_config: SessionConfigOut
    last_run: str | None
    last_result: str | None
    last_error: str | None
    session_id: str | None
    next_run: str | None
    next_run_local: str | None
    timezone: str
    description: str
    status: Literal["idle", "running", "waiting", "paused", "done", "disabled"]
    current_run: str | None
    owner: str | None


class Written(Shown):
    """What became of a PUT."""

    slug: str
    next_run: str | None
    created: bool


class Started(Shown):
    """A run that was asked for; it is not waited for."""

    status: str
    run_id: str
    session_id: str | None
