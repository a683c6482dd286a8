"""`server.sessions` and `agents` of `wakeful.yaml`: what may be in them, and how they are installed in a server."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, RootModel, model_serializer

from wakeful.config.job_schema import JobKeys
from wakeful.config.models import Duration, Section, WebAddress
from wakeful.domains.agents import SessionSettings, install
from wakeful.domains.agents.inbound.configuration import ChatSection, Trust, Untrusted, WebhookSection, as_section
from wakeful.domains.agents.naming import check_name
from wakeful.errors import SchedulerError
from wakeful.triggers.active_hours import hours_of

if TYPE_CHECKING:
    from wakeful.kernel.domain import ServerAddress
    from wakeful.scheduler import Scheduler


class SessionsSection(Section):
    """Where sessions live that schedules send messages to, what says that they are done, how many are kept."""

    url: WebAddress | None = None
    token: str | None = None
    done: Literal["answer", "report"] = "answer"
    max: Annotated[int, Field(ge=1, le=100_000)] = 100
    deadline: Annotated[Duration, Field(gt=0)] = 7_200_000


def install_configured(scheduler: Scheduler, settings: SessionsSection, server: ServerAddress) -> None:
    """Schedules can be run, and servers that work on them can call back."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # an address may hold a secret; what came of it is in the run
    install(
        scheduler,
        SessionSettings(
            url=settings.url,
            callback_url=server.public_url or server.url,
            token=settings.token,
            done=settings.done,
            max_kept=settings.max,
            deadline_ms=settings.deadline,
        ),
    )


# -- agents -----------------------------------------------------------------------------------------------------------


def _name(value: str) -> str:
    try:
        return check_name(value)
    except SchedulerError as error:
        raise ValueError(str(error).rstrip(".")) from error


Words = list[Annotated[str, Field(min_length=1)]]
Rhythm = str | int | float | None


class PatternSection(Section):
    """A regular expression that is looked for in what a program prints."""

    pattern: Annotated[str, Field(min_length=1)]


class RateLimitSection(Section):
    """How a rate limit is recognised, and where the time is at which it ends."""

    pattern: Annotated[str, Field(min_length=1)] | None = None
    resets_at: str | None = None


class OutputSection(Section):
    """Where the parts of an answer are found in JSON."""

    format: Literal["json", "jsonl"]
    reply: str | None = None
    session: str | None = None
    cost: str | None = None
    tokens: str | list[str] | None = None
    error: str | None = None
    match: dict[str, Any] | None = None


class AccountSection(Section):
    """Whose rate limit agents share, and how many of their runs there may be at once."""

    name: Annotated[str, Field(min_length=1)] | None = None
    max_concurrent: Annotated[int, Field(ge=1, le=1000)] | None = None


class Runner(Section):
    """How an agent is called: by a preset, a program, a session server or a Python function."""

    preset: str | None = None
    start: Words | None = None
    resume: Words | None = None
    prompt: Literal["stdin", "argument"] | None = None
    output: Literal["text", "json", "jsonl"] | OutputSection | None = None
    url: str | None = None
    python: Annotated[str, Field(pattern=r"^.+:[A-Za-z_]\w*$")] | None = None
    cwd: str | None = None
    model: str | None = None
    tools: Words | None = None
    args: list[str] | None = None
    env: Words | None = None
    timeout: Annotated[Duration, Field(gt=0)] | None = None
    max_cost: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    account: str | AccountSection | None = None
    success: PatternSection | None = None
    failure: PatternSection | None = None
    rate_limit: RateLimitSection | None = None
    session_gone: PatternSection | None = None
    overload: PatternSection | None = None


class Hours(Section):
    """The part of each day in which an agent's heart beats."""

    start: str
    end: str
    timezone: str | None = None


def _hours(value: Any) -> Any:
    if value is None or isinstance(value, (str, dict, Hours)):
        return hours_of(value)
    raise ValueError(f"must be hours such as 09:00-17:00, or {{start: '09:00', end: '17:00'}}, not {value!r:.60}")


class HeartbeatSection(Section):
    """Wakes an agent at regular times, so that it looks for what needs attention."""

    enabled: bool = True
    every: Rhythm = "30m"
    prompt: str | None = None
    prompt_file: str | None = None
    ack_token: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    ack_max_chars: Annotated[int, Field(ge=0)] | None = None
    ack_anywhere: bool = False
    active_hours: Annotated[Hours | None, BeforeValidator(_hours, json_schema_input_type=str | Hours | None)] = None


class Hook(Section):
    """Which results of runs are sent, and through which connector."""

    to: Annotated[str, Field(min_length=1)]
    on: Literal["any", "success", "failure", "change"] = "any"


class AgentSchedule(JobKeys):
    """When an agent is called, with which prompt, and what jobs say besides their schedule."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: Literal["cron", "interval", "webhook", "chat"] | None = None
    """The long form of a schedule, with `expression` or `interval`."""
    expression: str | None = None
    """With `type: cron`: the cron expression."""
    prompt: str | None = None
    """What the agent is asked."""
    prompt_file: str | None = None
    """A file with the prompt, read at every run."""
    model: str | None = None
    """The model of this schedule's calls."""
    env: Words | None = None
    """Variables of this schedule's calls, in addition to those of the runner."""
    target: Literal["main", "isolated"] | None = None
    """`isolated` (default): asked in its own session. `main`: the prompt wakes the agent as an event."""
    deliver: str | None = None
    """Where replies and failures go: a connector, `last` or `none`."""
    hooks: str | Hook | None = None
    """Where results of runs go, apart from the reply."""
    enabled: bool = True
    """Whether it starts by itself."""
    work: bool | None = None
    """Each run takes a work item of the agent; without one the agent is not called."""
    webhook: WebhookSection | None = None
    """Starts with a signed request to `/hooks/AGENT/SCHEDULE`."""
    chat: Annotated[ChatSection | None, BeforeValidator(as_section)] = None
    """Starts when a paired person writes."""


class WorkSection(Section):
    """Where an agent's work items come from."""

    source: Literal["queue", "directory", "github"]
    path: Annotated[str, Field(min_length=1)] | None = None
    trust: Trust | None = None
    repo: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")] | None = None
    label: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    token: Annotated[str, Field(min_length=1)] | None = None
    base_url: WebAddress | None = None
    close: bool | None = None


class BudgetSection(Section):
    """What an agent may use in a day: runs, money, tokens. null is no limit."""

    runs_per_day: Annotated[int, Field(ge=0)] | None = None
    cost_per_day: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    tokens_per_day: Annotated[int, Field(ge=0)] | None = None

    @model_serializer
    def _said(self) -> dict[str, Any]:
        """What it says, also where that is null."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}


def _off(value: Any) -> Any:
    return "off" if value is False else value  # how YAML reads the word


class SelfSchedule(Section):
    """How far an agent may go with schedules of its own."""

    mode: Annotated[Literal["off", "ask", "allow"], BeforeValidator(_off)] = "ask"
    max: Annotated[int, Field(ge=1, le=1000)] | None = None
    min_interval: Annotated[Duration, Field(gt=0)] | None = None
    max_ahead: Annotated[Duration, Field(gt=0)] | None = None
    expires: Annotated[Duration, Field(gt=0)] | None = None


def _runner_may_be_shared(schema: dict[str, Any]) -> None:
    schema.pop("required", None)  # an agent without one takes that of the defaults


class AgentSettings(Section):
    """One agent: how it is called, when, and what it may do."""

    model_config = ConfigDict(json_schema_extra=_runner_may_be_shared)

    runner: Runner
    description: str | None = None
    session: Annotated[str, Field(min_length=1, max_length=64)] = "persistent"
    target: Literal["main", "isolated"] = "isolated"
    max_concurrent: Annotated[int, Field(ge=1, le=1000)] = 1
    heartbeat: HeartbeatSection | None = None
    deliver: str | None = None
    hooks: str | Hook | None = None
    labels: Words | None = None
    schedules: dict[Annotated[str, AfterValidator(_name)], AgentSchedule] = {}  # noqa: RUF012 - pydantic copies it
    work: Literal["queue"] | WorkSection | None = None
    budget: BudgetSection | None = None
    untrusted: Untrusted | None = None
    self_schedule: Annotated[Literal["off", "ask", "allow"] | SelfSchedule, BeforeValidator(_off)] = "ask"
    mcp: bool = False


def _or_none_at_all(value: Any) -> Any:
    return {} if value is None else value


_ByName = dict[Annotated[str, AfterValidator(_name)], AgentSettings]


class AgentsSection(RootModel[_ByName]):
    """Agents by name."""

    root: Annotated[_ByName, BeforeValidator(_or_none_at_all)] = {}


def install_agents(scheduler: Scheduler, _: AgentsSection, server: ServerAddress) -> None:
    """Agents can be asked. What the file says about them is stored as jobs; their programs run on this machine."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # as above
    scheduler.agents.url = server.url
    scheduler.agents.callback_url = server.public_url or server.url
