"""Agents: sessions on a session server that schedules talk to.

`install(scheduler, SessionSettings(url=…))` lets a scheduler run jobs of kind `session`, and asks about work that goes
on there for as long as the engine runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.agents.settings import SessionSettings

if TYPE_CHECKING:
    from wakeful.scheduler import Scheduler

__all__ = ["SessionSettings", "install"]


def install(scheduler: Scheduler, settings: SessionSettings) -> None:
    """Let the scheduler run jobs of kind `session`, unless it has a handler of its own for them."""
    from wakeful.agents.client import SessionClient  # loads httpx
    from wakeful.agents.polling import Polling
    from wakeful.agents.session_kind import SessionKind
    from wakeful.agents.sharing import SESSION

    if SESSION in scheduler.handled_kinds:
        return
    client = SessionClient(settings)
    kind = SessionKind(scheduler, settings, client)
    polling = Polling(scheduler, settings, client)
    kind.on_watch = polling.watch
    scheduler.on_job_due(SESSION, kind)
    scheduler.accompany(polling)
