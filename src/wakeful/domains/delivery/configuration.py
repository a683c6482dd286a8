"""`connectors` of `wakeful.yaml`: where messages go, and how connectors are made of what is written there."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, RootModel, ValidationInfo, field_validator, model_validator

from wakeful.child_processes import listed_variable
from wakeful.config.models import Section
from wakeful.config.reading import ConfigError
from wakeful.domains.delivery.apprise_urls import AppriseConnector, check_url
from wakeful.domains.delivery.connector import Connector
from wakeful.domains.delivery.local import CommandConnector, FileConnector, LazyCall, LogConnector
from wakeful.domains.delivery.registry import CONNECTOR_RULE, ConnectorRegistry, check_connector_name
from wakeful.domains.delivery.results import PUBLIC_URL
from wakeful.domains.delivery.rules import Rules, read_age, read_quiet, read_rate, read_rules
from wakeful.domains.delivery.telegram.api import check_token
from wakeful.domains.delivery.telegram.connector import TelegramConnector
from wakeful.domains.delivery.webhook import WebhookConnector, read_secret
from wakeful.errors import SchedulerError
from wakeful.outbound import read_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wakeful.clock import Clock
    from wakeful.kernel.domain import ServerAddress
    from wakeful.kernel.model.job import Job
    from wakeful.kernel.model.run import Run
    from wakeful.scheduler import Scheduler

log = logging.getLogger("wakeful.config")

_CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)

#: The keys each type takes besides the rules, and those it needs.
TYPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "apprise": (("url",), ("url",)),
    "webhook": (("url", "secret", "headers"), ("url",)),
    "file": (("path",), ("path",)),
    "log": ((), ()),
    "python": (("callable",), ("callable",)),
    "command": (("argv", "env"), ("argv",)),
    "telegram": (("token", "allow_from", "base_url"), ("token",)),
}
OWN = ("url", "secret", "headers", "path", "callable", "argv", "env", "token", "allow_from", "base_url")


def _text_of(error: SchedulerError) -> str:
    return str(error).rstrip(".")


def _callable(value: str) -> str:
    if _CALLABLE.fullmatch(value) is None:
        raise ValueError("must be module:name, such as my_module:send")
    return value


def _secret(value: str) -> str:
    read_secret(value)
    return value


def _sender(value: int | str) -> str:
    text = str(value).strip()
    if not text.isascii() or not text.isdigit() or isinstance(value, bool) or int(text) == 0:
        raise ValueError("must be the number of a person on Telegram, such as 123456789")
    return text


def _base(value: str) -> str:
    read_address(value)
    if "?" in value or "#" in value:
        raise ValueError("must be an address without a query, such as https://api.telegram.org")
    return value


class ConnectorSettings(Section):
    """One connector: its type, what that needs, and how it sends."""

    type: Literal["apprise", "webhook", "file", "log", "python", "command", "telegram"] = "apprise"
    url: Annotated[str, Field(min_length=1)] | None = None
    secret: Annotated[str, AfterValidator(_secret)] | None = None
    headers: dict[str, str] | None = None
    path: Annotated[str, Field(min_length=1)] | None = None
    callable: Annotated[str, AfterValidator(_callable)] | None = None
    argv: Annotated[list[str], Field(min_length=1)] | None = None
    env: list[Annotated[str, AfterValidator(listed_variable)]] | None = None
    token: Annotated[str, AfterValidator(check_token)] | None = None
    allow_from: list[Annotated[int | str, AfterValidator(_sender)]] | None = None
    base_url: Annotated[str, AfterValidator(_base)] | None = None
    rate: str | None = None
    attempts: Annotated[int, Field(ge=1, le=100)] = 5
    quiet_hours: Annotated[Any, Field(json_schema_extra={"type": ["object", "string", "null"]})] = None
    max_age: str | float | None = None

    @field_validator("rate", "quiet_hours", "max_age")
    @classmethod
    def _rule(cls, value: Any, info: ValidationInfo) -> Any:
        read: Any = {"rate": read_rate, "quiet_hours": read_quiet, "max_age": read_age}[info.field_name or ""]
        if value is not None:
            try:
                read(value)
            except SchedulerError as error:
                raise ValueError(_text_of(error).removeprefix(f"{info.field_name} ")) from None
        return value

    @field_validator("headers")
    @classmethod
    def _sendable(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name, text in (value or {}).items():
            if _HEADER.fullmatch(name) is None or not text.isprintable() or not text.isascii():
                raise ValueError("must map names to values that a request can carry")
        return value

    @field_validator("url")
    @classmethod
    def _address(cls, value: str | None, info: ValidationInfo) -> str | None:
        kind = info.data.get("type")
        if value is None or kind not in ("apprise", "webhook"):
            return value
        if kind == "webhook":
            read_address(value)
            return value
        try:
            check_url(value)
        except SchedulerError as error:
            raise ValueError(_text_of(error)) from None
        return value

    @model_validator(mode="after")
    def _complete(self) -> ConnectorSettings:
        takes, needs = TYPES[self.type]
        for name in needs:
            if getattr(self, name) is None and name in self.model_fields_set | set(needs):
                raise ValueError(f"is of type {self.type}, which needs {name}")
        for name in OWN:
            if getattr(self, name) is not None and name not in takes:
                raise ValueError(f"is of type {self.type}, which takes no {name}")
        return self

    def rules(self) -> Rules:
        return read_rules(
            {"rate": self.rate, "attempts": self.attempts, "quiet_hours": self.quiet_hours, "max_age": self.max_age}
        )

    def make(self, name: str, folder: Path, clock: Clock) -> Connector:
        """The connector of that name; paths are those of the file's folder."""
        if self.type == "webhook":
            return WebhookConnector(str(self.url), clock, secret=self.secret, headers=self.headers)
        if self.type == "file":
            return FileConnector(folder / Path(str(self.path)).expanduser(), name)
        if self.type == "log":
            return LogConnector()
        if self.type == "python":
            return LazyCall(str(self.callable), folder, name)
        if self.type == "command":
            return CommandConnector(self.argv or [], folder, self.env or ())
        if self.type == "telegram":
            return TelegramConnector(
                name, str(self.token), clock, allow_from=self.allow_from or (), base_url=self.base_url
            )
        return AppriseConnector(str(self.url), name)


def _name(value: str) -> str:
    try:
        return check_connector_name(value)
    except SchedulerError:
        raise ValueError(CONNECTOR_RULE) from None


class ConnectorsSection(RootModel[dict[Annotated[str, AfterValidator(_name)], ConnectorSettings]]):
    """Where messages go, by name."""

    root: dict[Annotated[str, AfterValidator(_name)], ConnectorSettings] = {}

    _folder: Path | None = None

    @model_validator(mode="after")
    def _placed(self, info: ValidationInfo) -> ConnectorsSection:
        self._folder = (info.context or {}).get("folder")
        return self

    @property
    def folder(self) -> Path:
        """Where the file is."""
        return self._folder if self._folder is not None else Path.cwd()


def register_all(registry: ConnectorRegistry, settings: ConnectorsSection, clock: Clock) -> None:
    """Register what a file says."""
    for name, entry in settings.root.items():
        registry.add(name, entry.make(name, settings.folder, clock), entry.rules(), "file")
    registry.configured(settings.root)


async def reload_configured(scheduler: Scheduler, settings: ConnectorsSection) -> None:
    """Take over what changed in the file; what is as it was continues undisturbed."""
    registry = scheduler.connectors
    assert isinstance(registry, ConnectorRegistry)  # noqa: S101 - ours
    before = registry.written
    changed = {name: entry for name, entry in settings.root.items() if before.get(name) != entry}
    gone = set(before) - set(settings.root)
    if changed or gone:
        made = {
            name: (entry.make(name, settings.folder, scheduler.clock), entry.rules()) for name, entry in changed.items()
        }
        await registry.replace(made, gone)
        registry.configured(settings.root)
        names = ", ".join(sorted([*changed, *gone]))
        log.info("connectors changed: %s", names)


def install_configured(scheduler: Scheduler, settings: ConnectorsSection, server: ServerAddress) -> None:
    """Connectors are registered before anything fires."""
    for name in ("httpx", "requests", "urllib3"):  # an address may hold a secret
        logging.getLogger(name).setLevel(logging.WARNING)
    registry = scheduler.connectors
    assert isinstance(registry, ConnectorRegistry)  # noqa: S101 - ours
    register_all(registry, settings, scheduler.clock)
    if server.public_url is not None:
        url = server.public_url

        async def keep_address() -> None:
            await scheduler.transact(lambda tx, _: tx.facts.put({PUBLIC_URL: url}))

        scheduler.host.before_start(keep_address)


async def send_alone(
    scheduler: Scheduler, job: Job, file: Path | None
) -> Callable[[Run], Awaitable[str | None]] | None:
    """A process runs this job alone: it has the connectors of the file, and sends what the run leaves for them."""
    if file is None or (job.kind != "agent" and job.options.get("deliver") is None):
        return None
    registry, wrong, names = scheduler.connectors, "", frozenset[str]()
    assert isinstance(registry, ConnectorRegistry)  # noqa: S101 - ours
    try:
        settings = _connectors_in(file)
    except ConfigError as error:  # they may not be needed
        wrong = f": {error}"
    else:
        register_all(registry, settings, scheduler.clock)
        names = frozenset(settings.root)
        if names:
            await registry.store()

    async def after(run: Run) -> str | None:
        waiting = [one["connector"] for one in await _messages_of(scheduler, run) if one["status"] == "pending"]
        refused = wrong
        for name in sorted(names.intersection(waiting)):
            try:
                await scheduler.run_here(await registry.job_of(name))
            except SchedulerError as error:  # the run has ended, and how it did is what the command is about
                refused = f": {error}".rstrip(".")
        left = [one for one in await _messages_of(scheduler, run) if one["status"] not in ("sent", "expired")]
        if not left:
            return None
        why = f": {left[0]['last_error']}" if left[0]["last_error"] else refused
        to = left[0]["connector"] or "a connector"
        return (
            f"The message to {to} is not sent, but {left[0]['status']}{why}. A server (wakeful serve) sends what waits."
        )

    return after


def _connectors_in(file: Path) -> ConnectorsSection:
    from wakeful.config.loading import load
    from wakeful.references import own_environment

    found = load(file, own_environment(), needs=("env_file", "connectors")).config.connectors  # type: ignore[attr-defined]
    assert isinstance(found, ConnectorsSection)  # noqa: S101 - ours
    return found


async def _messages_of(scheduler: Scheduler, run: Run) -> list[dict[str, Any]]:
    found = await scheduler.get_run(run.id)
    return found.deliveries if found is not None else []
