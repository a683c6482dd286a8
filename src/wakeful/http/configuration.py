"""`server.outbound` of `wakeful.yaml`: where addresses from the network may lead, and whether agents may name any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from wakeful.config.models import Section
from wakeful.http import HttpSettings, install
from wakeful.outbound import OutboundPolicy, read_allowed

if TYPE_CHECKING:
    from wakeful.kernel.domain import ServerAddress
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
