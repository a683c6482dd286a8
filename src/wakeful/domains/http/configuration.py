"""`server.outbound` of `wakeful.yaml`: where addresses from the network may lead, and whether agents may name any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from wakeful.config.loading import load_config
from wakeful.config.models import Section
from wakeful.console.running_here import adopt_what_it_refers_to
from wakeful.domains.http import HttpSettings, install
from wakeful.outbound import OutboundPolicy, read_allowed

if TYPE_CHECKING:
    from pathlib import Path

    from wakeful.kernel.domain import ServerAddress
    from wakeful.kernel.model.job import Job
    from wakeful.scheduler import Scheduler


def _entry(value: str) -> str:
    read_allowed(value)
    return value


class Outbound(Section):
    """Private places that addresses from the network may lead to, and whether agents may write jobs of kind `http`."""

    allow: list[Annotated[str, AfterValidator(_entry)]] = Field(default_factory=list)
    agents: bool = False

    def policy(self) -> OutboundPolicy:
        return OutboundPolicy(tuple(self.allow))


def install_configured(scheduler: Scheduler, settings: Outbound, _: ServerAddress | None = None) -> None:
    """Requests are sent, and those from the network only where the file lets them."""
    install(scheduler, HttpSettings(policy=settings.policy()))


def prepare_here(scheduler: Scheduler, job: Job, file: Path | None) -> None:
    """A request whose address came over the network obeys the same file without a server as with one."""
    if file is not None and job.payload.get("guarded"):
        install_configured(scheduler, load_config(file).server.outbound)  # type: ignore[attr-defined]
    adopt_what_it_refers_to(scheduler, job, file)
