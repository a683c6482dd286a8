"""`alerts` of `wakeful.yaml`: who is notified of incidents, and when."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated
from weakref import WeakKeyDictionary

from pydantic import AfterValidator, Field

from wakeful.config.models import Duration, Section
from wakeful.domains.alerts.dead_man import DeadMan
from wakeful.domains.alerts.settings import store_rules
from wakeful.errors import SchedulerError
from wakeful.kernel.engine.alerts import MEANINGS, RULES
from wakeful.kernel.rules.alerting import AFTER, URGENT, AlertRules, rules_text
from wakeful.outbound import read_address

if TYPE_CHECKING:
    from wakeful.kernel.domain import ServerAddress
    from wakeful.scheduler import Scheduler


log = logging.getLogger("wakeful.alerts")
_dead_men: WeakKeyDictionary[Scheduler, DeadMan] = WeakKeyDictionary()


def _kind(value: str) -> str:
    if value not in MEANINGS:
        raise ValueError(f"must be a kind of alert ({', '.join(sorted(MEANINGS))})")
    return value


def _address(value: str) -> str:
    try:
        read_address(value)
    except (SchedulerError, ValueError):
        raise ValueError("must be an address such as https://example.org/ping/KEY") from None
    return value


def _longer_than_nothing(value: int) -> int:
    if value <= 0:
        raise ValueError("must be longer than nothing")
    return value


class AlertsSection(Section):
    """Who is notified of incidents, and when."""

    to: Annotated[str, Field(min_length=1)] | None = None
    after: Annotated[int, Field(ge=1, le=1000)] = AFTER
    cooldown: Duration = Field(default="1h", validate_default=True)
    grace: Annotated[Duration, AfterValidator(_longer_than_nothing)] = Field(default="5m", validate_default=True)
    urgent: list[Annotated[str, AfterValidator(_kind)]] = Field(default=list(URGENT))
    dead_man_url: Annotated[str, AfterValidator(_address)] | None = None

    def rules(self) -> AlertRules:
        """What every process on the store is to know."""
        to = None if self.to == "none" else self.to
        return AlertRules(to, self.after, self.cooldown, self.grace, tuple(self.urgent))


def install(scheduler: Scheduler, settings: AlertsSection, server: ServerAddress) -> None:  # noqa: ARG001 - all are called alike
    """The settings are in the store before anything fires; the dead man's URL is called while the loop turns."""

    async def keep() -> None:
        await store_rules(scheduler, settings.rules())

    scheduler.host.before_start(keep)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # the address is a secret
    _dead_men[scheduler] = DeadMan(scheduler, settings.dead_man_url)
    scheduler.host.add_service(_dead_men[scheduler])


async def reload(scheduler: Scheduler, settings: AlertsSection) -> None:
    """Take over what changed in the file, for every process on the store; the dead man's URL in this one."""
    rules = settings.rules()
    stored = await scheduler.read(lambda tx: tx.facts.get(RULES))
    if stored != rules_text(rules):
        await store_rules(scheduler, rules)
        log.info("settings of alerts changed")
    if scheduler in _dead_men:
        await _dead_men[scheduler].take(settings.dead_man_url)
