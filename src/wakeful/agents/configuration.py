"""`server.sessions` of `wakeful.yaml`: where sessions live, and how they are installed in a server."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from wakeful.agents import SessionSettings, install
from wakeful.config.models import Duration, Section, WebAddress

if TYPE_CHECKING:
    from wakeful.kernel.domain import ServerAddress
    from wakeful.scheduler import Scheduler


class Sessions(Section):
    """Where sessions live that schedules send messages to, what says that they are done, how many are kept."""

    url: WebAddress | None = None
    token: str | None = None
    done: Literal["answer", "report"] = "answer"
    max: Annotated[int, Field(ge=1, le=100_000)] = 100
    deadline: Annotated[Duration, Field(gt=0)] = 7_200_000


def install_configured(scheduler: Scheduler, settings: Sessions, server: ServerAddress) -> None:
    """Schedules can be run, and those who work on them can call back."""
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
