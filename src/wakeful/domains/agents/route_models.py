"""Schedules as they travel: camelCase, definition and state in one flat object."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from wakeful.domains.agents.routes.timing_models import AnswerModel, Camel, Options, OptionsOut, Timing, TimingOut
from wakeful.domains.agents.task import MAX_MODEL, MAX_PROMPT, Task
from wakeful.domains.agents.waking import EVENT_LABEL
from wakeful.routing import json_schema
from wakeful.routing.models import Status
from wakeful.routing.problems import PATTERN_WORDS
from wakeful.routing.strict import Strict

MINUTE_MS = 60_000
#: What answers show and requests may carry along, so that what was read can be changed and written back.
STATE = (
    "lastRun", "lastResult", "lastError", "sessionId", "nextRun", "nextRunLocal", "timezone", "description",
    "status", "currentRun", "owner",
)  # fmt: skip


def _whole(value: object) -> object:
    """2.0 is as whole a number as 2 in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


SAYS_SOMETHING = r"[^\s\x00-\x1f\x7f-\xa0]"
PATTERN_WORDS[SAYS_SOMETHING] = "have a visible character"
PATTERN_WORDS[EVENT_LABEL] = "be one line with a visible character"
"""A text with a character that is seen."""

Prompt = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PROMPT)]


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
        """The task with the given fields changed; fields that were left out stay."""
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


class _Schedule(Camel):
    slug: Annotated[str, StringConstraints(max_length=1000)] | None = Field(None, description="as in the address")
    session_config: SessionConfig | None = None
    agent: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = Field(
        None,
        description="the agent that gets the prompt, instead of a session; a schedule stays with its agent",
        examples=["reporter"],
    )
    options: Options = Field(
        None,
        description="how its job runs: what is not named stays as it is, null puts it back",
        examples=[{"timeout": "10m"}],
    )
    enabled: bool | None = None

    @classmethod
    def carried(cls) -> tuple[str, ...]:
        return STATE


class ScheduleIn(_Schedule):
    """A whole schedule. Without `enabled` a new one is enabled, and one that exists stays as it is."""

    model_config = ConfigDict(
        json_schema_extra=partial(
            json_schema.carries,
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

    prompt: Prompt
    timing: Timing = Field(alias="schedule")


class ScheduleChange(_Schedule):
    """Part of a schedule: fields that are left out stay as they are, in `sessionConfig` too."""

    model_config = ConfigDict(
        json_schema_extra=partial(
            json_schema.says_something, state=STATE, parts=("prompt", "schedule", "enabled", "options", "sessionConfig")
        )
    )

    prompt: Prompt | None = None
    timing: Timing | None = Field(None, alias="schedule")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set - {"slug"}:
            raise PydanticCustomError(
                "empty", "nothing is to be changed: give prompt, enabled, schedule, options or sessionConfig"
            )
        return self


class SessionConfigOut(AnswerModel):
    """Which session it talks to."""

    model: str | None
    persist_session: bool
    session_id: str | None = None
    timeout_minutes: float | None = None


class ScheduleOut(AnswerModel):
    """A schedule: its definition and its state. Times are UTC; `nextRunLocal` is for people."""

    slug: str
    prompt: str
    enabled: bool
    timing: TimingOut = Field(alias="schedule")
    agent: str | None = Field(description="the agent that gets the prompt, instead of a session", examples=[None])
    session_config: SessionConfigOut | None
    options: OptionsOut = Field(description="how its job runs, where that is not the default", examples=[{}])
    last_run: str | None
    last_result: str | None
    last_error: str | None
    session_id: str | None
    next_run: str | None
    next_run_local: str | None
    timezone: str
    description: str
    status: Status
    current_run: str | None
    owner: str | None


class Written(AnswerModel):
    """What became of a PUT."""

    slug: str
    next_run: str | None
    created: bool


class Started(AnswerModel):
    """A requested run; the answer does not wait for its end."""

    status: str
    run_id: str
    session_id: str | None


# -- agents -----------------------------------------------------------------------------------------------------------


class WakeIn(Strict):
    """A request to wake an agent."""

    reason: Literal["interval", "cron", "message", "manual", "hook"] = Field(
        default="manual",
        description="why it is woken; of several requests the most important counts",
        examples=["hook"],
    )


class WakeOut(BaseModel):
    """When an agent is woken."""

    agent: str = Field(description="the agent's name", examples=["reporter"])
    reason: str = Field(description="the most important reason of the requests", examples=["hook"])
    wake_at: str | None = Field(
        description="when it is woken; null where it is paused", examples=["2026-01-29T09:00:00.250Z"]
    )
    coalesced: bool = Field(description="whether it joined an earlier request", examples=[False])
    waits_for: Literal["held", "rate_limited", "over_budget", "outside_active_hours"] | None = Field(
        description="why it waits longer; null where it does not", examples=[None]
    )
    waits_until: str | None = Field(description="until when it waits, where that is known", examples=[None])
    run: str | None = Field(description="the run that waits for it", examples=["run_1hbm1n0w2c9kd"])


Label = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=EVENT_LABEL)]


class EventIn(Strict):
    """Something an agent is to hear when it is next woken."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=SAYS_SOMETHING)] = Field(
        description="the text of the event", examples=["The build is red."]
    )
    source: Label | None = Field(default=None, description="where the event comes from", examples=["ci"])
    context_key: Label | None = Field(
        default=None, description="a newer event with the same key replaces this one", examples=["build"]
    )
    wake: bool = Field(default=False, description="whether to wake the agent for it", examples=[True])


class EventAdded(BaseModel):
    """An event that waits."""

    id: str = Field(description="the event's id", examples=["evt_1hbm1n0w2c9kd"])
    waiting: int = Field(description="how many events wait for the agent", examples=[1])


class LimitOut(BaseModel):
    """The rate limit of an account."""

    account: str = Field(description="whose limit it is", examples=["claude"])
    until: str = Field(description="when the account is tried again", examples=["2026-01-29T15:45:00.000Z"])
    since: str | None = Field(
        description="since when no run of the account has succeeded", examples=["2026-01-29T10:12:00.000Z"]
    )
    why: str = Field(description="what its tool said", examples=["You've hit your session limit"])
    agents: list[str] = Field(description="the agents that wait for it", examples=[["reporter"]])


class SessionsForgotten(BaseModel):
    """Sessions that were forgotten."""

    forgotten: int = Field(description="how many there were", examples=[2])


class SpentOut(BaseModel):
    """What an agent's runs that ended today have used; a run that reports no cost counts its `max_cost`."""

    runs: int = Field(description="how many runs", examples=[3])
    cost: float = Field(description="what they cost", examples=[0.12])
    tokens: int = Field(description="tokens that went in and came out", examples=[1200])


class ReservedOut(BaseModel):
    """What an agent's runs in progress may use."""

    runs: int = Field(description="how many runs", examples=[1])
    cost: float = Field(description="what they may cost", examples=[0.5])


class AgentSummary(BaseModel):
    """An agent."""

    name: str = Field(description="the agent's name", examples=["reporter"])
    status: Literal["idle", "running", "paused", "disabled"] = Field(description="what it does", examples=["idle"])
    running: int = Field(description="how many runs are in progress", examples=[0])
    cut_off: int = Field(description="how many runs were cut off: their server has ended", examples=[0])
    paused: bool = Field(description="whether it starts nothing more; a run in progress finishes", examples=[False])
    over_budget: str | None = Field(
        description="why no run may start today; null where one may",
        examples=["reporter is over budget: 50 of 50 runs are used today"],
    )
    rate_limited: dict[str, str] | None = Field(
        description="the rate limit of its account (account, until, why); null where there is none", examples=[None]
    )
    max_concurrent: int = Field(description="how many there may be", examples=[1])
    schedules: Any = Field(description="how many schedules it has; for one agent, the schedules", examples=[2])
    next_run_at: str | None = Field(description="when it starts next by itself", examples=["2026-01-29T09:00:00Z"])
    last_run_at: str | None = Field(description="when its last run started", examples=["2026-01-28T09:00:00Z"])
    last_outcome: str | None = Field(description="how its last run ended", examples=["success"])
    last_error: str | None = Field(description="what went wrong last", examples=[None])
    events_waiting: int = Field(description="how many events wait for it", examples=[0])
    work_waiting: int = Field(description="how many work items wait for it", examples=[0])
    spent_today: SpentOut = Field(
        description="what it has spent today", examples=[{"runs": 3, "cost": 0.12, "tokens": 1200}]
    )
    reserved: ReservedOut = Field(description="what its runs in progress may use", examples=[{"runs": 1, "cost": 0.5}])
    budget: dict[str, Any] = Field(description="what it may spend in a day", examples=[{"runs_per_day": 50}])
    skips: dict[str, int] = Field(description="refused starts by reason", examples=[{"rate_limited": 1}])


class AgentOut(AgentSummary):
    """An agent with its schedules, sessions and events."""

    description: str | None = Field(description="what it is for", examples=["Looks after the repository"])
    self_schedule: dict[str, Any] = Field(
        description="what it may schedule itself, and the schedules that it asked for",
        examples=[{"mode": "ask", "max": 10, "asked": []}],
    )
    env: list[str] = Field(
        description="names of the variables that its program is given, where the server has them",
        examples=[["ANTHROPIC_API_KEY"]],
    )
    sessions: list[dict[str, Any]] = Field(description="the sessions it keeps", examples=[[]])
    events: list[dict[str, Any]] = Field(description="events that wait for its next run, oldest first", examples=[[]])
    heartbeat: dict[str, Any] | None = Field(description="its heartbeat; null where it has none", examples=[None])


class WorkIn(Strict):
    """A work item to be added."""

    agent: str = Field(description="the agent that works on it", examples=["reporter"])
    title: Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=SAYS_SOMETHING)] = Field(
        description="what is to be done", examples=["Mend the roof"]
    )
    body: Annotated[str, StringConstraints(max_length=100_000)] | None = Field(
        default=None, description="more about it", examples=["It leaks above the desk."]
    )
    external_id: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = Field(
        default=None, description="its id in another system; such an item is added only once", examples=["TICKET-7"]
    )
    priority: Annotated[Annotated[int, Field(ge=-100, le=100)], BeforeValidator(_whole)] = Field(
        default=0, description="items with a higher priority come first", examples=[10]
    )


class WorkOut(BaseModel):
    """A work item."""

    id: str = Field(description="the item's id", examples=["wrk_1hbm1n0w2c9kd"])
    agent: str = Field(description="the agent that works on it", examples=["reporter"])
    orphaned: bool = Field(description="whether that agent no longer exists", examples=[False])
    title: str = Field(description="what is to be done", examples=["Mend the roof"])
    body: str | None = Field(description="more about it", examples=[None])
    external_id: str | None = Field(description="its id in another system", examples=["TICKET-7"])
    source: str | None = Field(description="where it is from; null: the queue", examples=["github:owner/name"])
    priority: int = Field(description="items with a higher priority come first", examples=[0])
    status: Literal["ready", "claimed", "done", "failed"] = Field(description="its status", examples=["ready"])
    run: str | None = Field(description="the run that claimed it last", examples=["run_1hbm1n0w2c9kd"])
    attempts: int = Field(description="how often it was tried", examples=[1])
    created_at: str = Field(description="when it was added", examples=["2026-01-29T09:00:00Z"])
    last_error: str | None = Field(description="what went wrong last", examples=[None])
