"""Agents: sessions on a session server that schedules talk to.

`install(scheduler, SessionSettings(url=…))` lets a scheduler run jobs of kind `session`, and asks about work that goes
on there for as long as the engine runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind

if TYPE_CHECKING:
    from wakeful.agents.runners.turn import Reply, Turn
    from wakeful.agents.settings import SessionSettings
    from wakeful.scheduler import Scheduler

__all__ = ["SESSION", "Reply", "SessionSettings", "Turn", "domain", "install"]

SESSION = "session"


def __getattr__(name: str) -> Any:
    if name == "SessionSettings":
        from wakeful.agents.settings import SessionSettings  # loaded when a server has sessions

        return SessionSettings
    if name in ("Reply", "Turn"):
        from wakeful.agents.runners import turn  # loaded when an agent is a Python function

        return getattr(turn, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def _check(payload: Any) -> None:
    from wakeful.agents.task import read_task  # loaded when a session is used

    read_task(payload)


domain = Domain(
    "agents",
    kinds=(Kind(SESSION, check_payload=_check),),
    job_tables=("sessions",),
    section="server.sessions",
    settings="wakeful.agents.configuration:Sessions",
    install="wakeful.agents.configuration:install_configured",
    routes="wakeful.agents.routes.schedules:router",
)


def install(scheduler: Scheduler, settings: SessionSettings) -> None:
    """Let the scheduler run jobs of kind `session`, unless it has a handler of its own for them."""
    from wakeful.agents.client import SessionClient  # loads httpx
    from wakeful.agents.polling import Polling
    from wakeful.agents.session_kind import SessionKind

    if SESSION in scheduler.handled_kinds:
        return
    client = SessionClient(settings)
    kind = SessionKind(scheduler, settings, client)
    polling = Polling(scheduler, settings, client)
    kind.on_watch = polling.watch
    scheduler.on_job_due(SESSION, kind)
    scheduler.accompany(polling)
