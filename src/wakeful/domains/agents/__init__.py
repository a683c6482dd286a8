"""Agents: sessions on a session server that schedules talk to.

`install(scheduler, SessionSettings(url=…))` lets a scheduler run jobs of kind `session`, and asks about work that goes
on there for as long as the engine runs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.naming import LANE
from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind

if TYPE_CHECKING:
    from wakeful.domains.agents.runners.turn import Reply, Turn
    from wakeful.domains.agents.settings import SessionSettings
    from wakeful.kernel.hooks import Writer
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow

__all__ = ["SESSION", "Reply", "SessionSettings", "Turn", "domain", "install"]

SESSION = "session"


def __getattr__(name: str) -> Any:
    if name == "SessionSettings":
        from wakeful.domains.agents.settings import SessionSettings  # loaded when a server has sessions

        return SessionSettings
    if name in ("Reply", "Turn"):
        from wakeful.domains.agents.runners import turn  # loaded when an agent is a Python function

        return getattr(turn, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def _check(payload: Any) -> None:
    from wakeful.domains.agents.task import read_task  # loaded when a session is used

    read_task(payload)


def _check_writer(tx: Transaction, writer: Writer, payload: str, before: JobDef | None) -> None:
    from wakeful.domains.agents.sharing import check_writer

    check_writer(tx, writer, payload, before)


def _takes_lanes(tx: Transaction, job: JobDef, run: RunRow | None) -> Collection[str]:
    from wakeful.domains.agents.session_lanes import lanes_of_session_job

    return lanes_of_session_job(tx, job, run)


def _lanes_of(payload: Any) -> Collection[str]:
    """A session that is named is worked in by one run at a time; who may name which is checked apart."""
    named = payload.get("session") if isinstance(payload, dict) else None
    return (LANE + named,) if isinstance(named, str) else ()


domain = Domain(
    "agents",
    kinds=(
        Kind(
            SESSION,
            check_payload=_check,
            check_writer=_check_writer,
            takes_lanes=_takes_lanes,
            lanes_of=_lanes_of,
        ),
    ),
    job_tables=("sessions",),
    section="server.sessions",
    settings="wakeful.domains.agents.configuration:SessionsSection",
    install="wakeful.domains.agents.configuration:install_configured",
    routes="wakeful.domains.agents.routes.schedules:router",
)


def install(scheduler: Scheduler, settings: SessionSettings) -> None:
    """Let the scheduler run jobs of kind `session`, unless it has a handler of its own for them."""
    from wakeful.domains.agents.client import SessionClient  # loads httpx
    from wakeful.domains.agents.polling import Polling
    from wakeful.domains.agents.session_kind import SessionKind

    if SESSION in scheduler.host.handled_kinds:
        return
    client = SessionClient(settings)
    kind = SessionKind(scheduler, settings, client)
    polling = Polling(scheduler, SESSION, settings.poll_s, lambda watch: client.status(watch.url), client.close)
    kind.talk.on_watch = polling.watch
    scheduler.on_job_due(SESSION, kind)
    scheduler.host.add_service(polling)
