"""The built-in job kind `http`: one request per run, and its answer as the run's output.

What must stay true:
- the request ends with the run: the job's `timeout` bounds it, connecting has a limit of its own, and of an answer that
  never ends 64 KiB are read;
- an address that came over the network, and every redirect to another host, obeys the outbound policy, and the
  connection is made to the very address that was checked;
- secrets stay where they were sent: header values, passwords and keys in the address are shown to admins alone, go to
  no other origin, and appear in no error and no log.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind, WrittenForm

if TYPE_CHECKING:
    from wakeful.http.settings import HttpSettings
    from wakeful.kernel.views.models import Run
    from wakeful.scheduler import Scheduler

__all__ = ["HTTP", "HttpSettings", "domain", "install"]

HTTP = "http"


def __getattr__(name: str) -> Any:
    if name == "HttpSettings":
        from wakeful.http.settings import HttpSettings  # loads the rules about addresses

        return HttpSettings
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def _check(payload: Any) -> None:
    from wakeful.http.spec import RequestSpec  # loaded when a request is used

    RequestSpec.from_payload(payload)


def _redact(payload: Any) -> Any:
    from wakeful.http.secrets import redacted

    return redacted(payload)


def _guarded(payload: Any) -> Any:
    """Marked as written over the network; what the caller says about that does not count."""
    return {**payload, "guarded": True} if isinstance(payload, dict) else payload


def _written() -> WrittenForm:
    from wakeful.http.written import FORM  # loaded with the first file

    return FORM


async def _execute(run: Run, _: Path) -> Any:
    from wakeful.http.kind import default_kind  # loads httpx with the first request

    return await default_kind()(run)


domain = Domain(
    "http",
    kinds=(
        Kind(
            HTTP,
            handler=_execute,
            check_payload=_check,
            options={"timeout": "1m"},
            from_outside=_guarded,
            redact=_redact,
            written=_written,
        ),
    ),
    section="server.outbound",
    settings="wakeful.http.configuration:Outbound",
    install="wakeful.http.configuration:install_configured",
)


def install(scheduler: Scheduler, settings: HttpSettings) -> None:
    """Let the scheduler send requests by these settings, unless it has a handler of its own for them."""
    from wakeful.http.kind import HttpKind

    if HTTP not in scheduler.handled_kinds:
        scheduler.on_job_due(HTTP, HttpKind(settings, scheduler.clock))
