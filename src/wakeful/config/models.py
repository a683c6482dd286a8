"""What may be in `wakeful.yaml`. Every section refuses keys it does not know."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from wakeful.errors import SchedulerError
from wakeful.kernel.actions.drafts import check_name
from wakeful.kernel.loop.config import DAY_MS, Retention
from wakeful.triggers import zone_name
from wakeful.triggers.durations import interval_ms


def _web_address(value: str) -> str:
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or "@" in parts.netloc:
        raise ValueError("must be an address such as https://jobs.example.org, without a user or password")
    return value.rstrip("/")


def _origin(value: str) -> str:
    if urlsplit(value).path or urlsplit(value).query or urlsplit(value).fragment:
        raise ValueError("must be an address without a path, such as https://jobs.example.org")
    return value


def _host(value: str) -> str:
    try:
        parts = urlsplit(f"//{value}")
        good = bool(parts.hostname) and parts.port != 0 and not parts.path and "@" not in value and "*" not in value
    except ValueError:
        good = False
    if not good:
        raise ValueError("must be a host name such as jobs.example.org, with or without a port")
    return value


def _network(value: str) -> str:
    try:
        ip_network(value, strict=False)
    except ValueError as error:
        raise ValueError("must be an address such as 10.0.0.5, or a network such as 10.0.0.0/24") from error
    return value


def _duration(value: Any) -> Any:
    try:
        return 0 if value in (0, "0") and not isinstance(value, bool) else interval_ms(value)
    except (SchedulerError, TypeError) as error:
        raise ValueError(f"must be a duration such as 30m or 1h ({str(error).rstrip('.')})") from error


def _zone(value: str) -> str:
    try:
        zone_name(value)
    except SchedulerError as error:
        raise ValueError("must be a time zone such as Europe/Berlin, or local") from error
    return value


def _fleet_name(value: str) -> str:
    try:
        return check_name("fleet", value)
    except SchedulerError as error:
        raise ValueError("must be a name of 1 to 200 printable characters") from error


WebAddress = Annotated[str, AfterValidator(_web_address)]
Duration = Annotated[int, BeforeValidator(_duration, json_schema_input_type=str | float)]
"""A duration such as 1h, or seconds; milliseconds once it is read."""


class Section(BaseModel):
    """A part of the file: nothing in it goes unread."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Metrics(Section):
    """Who reads /metrics, and how many jobs are named there."""

    open: bool = False
    per_job: Annotated[int, Field(ge=0, le=10_000)] = 0


class Traces(Section):
    """Where traces of runs are sent, over OTLP."""

    endpoint: WebAddress


class Server(Section):
    """Where the server listens, and by which names it may be called."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 7878
    public_url: Annotated[WebAddress, AfterValidator(_origin)] | None = None
    allowed_hosts: list[Annotated[str, AfterValidator(_host)]] = []
    proxies: list[Annotated[str, AfterValidator(_network)]] = []
    metrics: Metrics = Metrics()
    traces: Traces | None = None


def _whole_days(ms: int) -> int:
    if ms < DAY_MS or ms % DAY_MS:
        raise ValueError("must be whole days, such as 30d")
    return ms


class Limits(Section):
    """How much at once, how often, how much an agent may have stored, and what all agents may use in a day."""

    max_running: Annotated[int, Field(ge=1)] | None = None
    min_interval: Duration = Field(default="1h", validate_default=True)
    jobs_per_agent: Annotated[int, Field(ge=1)] | None = 100
    bytes_per_agent: Annotated[int, Field(ge=1)] | None = 16 * 1024 * 1024
    runs_per_day: Annotated[int, Field(ge=0)] | None = None
    cost_per_day: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = 20.0
    tokens_per_day: Annotated[int, Field(ge=0)] | None = None

    def of_agents(self) -> dict[str, Any]:
        """What all agents together may use in a day, as `scheduler.agents.limit` takes it."""
        runs = self.runs_per_day if "runs_per_day" in self.model_fields_set else ...
        return {"runs_per_day": runs, "cost_per_day": self.cost_per_day, "tokens_per_day": self.tokens_per_day}


class RetentionSection(Section):
    """How long, and how many, ended runs and other records are kept."""

    age: Annotated[Duration, AfterValidator(_whole_days)] = Field(default="30d", validate_default=True)
    runs_per_job: Annotated[int, Field(ge=1)] = 1000
    slots: Annotated[Duration, AfterValidator(_whole_days)] = Field(default="365d", validate_default=True)
    events: Annotated[int, Field(ge=1)] = 50_000
    records: Annotated[int, Field(ge=1)] = 10_000
    logs: Annotated[Duration, AfterValidator(_whole_days)] | None = None
    deliveries: Annotated[Duration, AfterValidator(_whole_days)] | None = None

    def rules(self) -> Retention:
        """What the engine is told."""
        days, slot_days = self.age // DAY_MS, self.slots // DAY_MS
        logs, messages = (None if ms is None else ms // DAY_MS for ms in (self.logs, self.deliveries))
        return Retention(
            days, self.runs_per_job, slot_days, events=self.events, records=self.records, log_days=logs,
            message_days=messages,
        )  # fmt: skip


class CatchUpSection(Section):
    """A missed slot is run if it is no later than this."""

    within: Duration


class Defaults(Section):
    """What holds for jobs that do not say otherwise."""

    timezone: Annotated[str, AfterValidator(_zone)] | None = None
    catch_up: Literal["once", "skip"] | CatchUpSection | None = None

    def job_options(self) -> dict[str, Any]:
        """Options for a job that has none of its own."""
        if self.catch_up is None:
            return {}
        within = self.catch_up
        return {"catch_up": {"within": within.within / 1000} if isinstance(within, CatchUpSection) else within}


class BaseConfig(Section):
    """The sections that belong to no domain."""

    store: Annotated[str, Field(min_length=1)] | None = None
    env_file: str | None = None
    fleet: Annotated[str, AfterValidator(_fleet_name)] = "main"
    include: list[Annotated[str, Field(min_length=1)]] = []
    server: Server = Server()
    limits: Limits = Limits()
    retention: RetentionSection = RetentionSection()
    defaults: Defaults = Defaults()
