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

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind
from wakeful.triggers import from_ms

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.domains.http.settings import HttpSettings
    from wakeful.kernel.hooks import Writer
    from wakeful.kernel.model.run import Run
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef

__all__ = ["HTTP", "HttpResult", "HttpSettings", "Poster", "domain", "install"]

HTTP = "http"


class HttpResult(NamedTuple):
    """What came back for a message: the code, after how many milliseconds to try again, the beginning of the body."""

    status: int
    retry_after: int | None
    said: str


def __getattr__(name: str) -> Any:
    if name == "HttpSettings":
        from wakeful.domains.http.settings import HttpSettings  # loads the rules about addresses

        return HttpSettings
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def _check(payload: Any) -> None:
    from wakeful.domains.http.spec import RequestSpec  # loaded when a request is used

    RequestSpec.from_payload(payload)


def _check_writer(_: Transaction, writer: Writer, payload: str, before: JobDef | None) -> None:
    from wakeful.domains.http.guarding import check_writer

    check_writer(writer, payload, before)


def _redact(payload: Any) -> Any:
    from wakeful.domains.http.secrets import redacted

    return redacted(payload)


def _guarded(payload: Any) -> Any:
    """Marked as written over the network; what the caller says about that does not count."""
    return {**payload, "guarded": True} if isinstance(payload, dict) else payload


async def _execute(run: Run, _: Path) -> Any:
    from wakeful.domains.http.kind import default_kind  # loads httpx with the first request

    return await default_kind()(run)


domain = Domain(
    "http",
    kinds=(
        Kind(
            HTTP,
            handler=_execute,
            check_payload=_check,
            check_writer=_check_writer,
            options={"timeout": "1m"},
            from_outside=_guarded,
            redact=_redact,
            fields="wakeful.domains.http.fields:FIELDS",
            finish="wakeful.domains.http.fields:finish",
        ),
    ),
    section="server.outbound",
    settings="wakeful.domains.http.configuration:Outbound",
    install="wakeful.domains.http.configuration:install_configured",
    obstacles={HTTP: "wakeful.domains.http.guarding:oddities"},
    run_here={HTTP: "wakeful.domains.http.configuration:prepare_here"},
)


class Poster:
    """Posts messages to addresses that an operator wrote, without following redirects."""

    def __init__(self, clock: Clock, settings: HttpSettings | None = None) -> None:
        from wakeful.domains.http.sending import HttpSender  # loads httpx
        from wakeful.domains.http.settings import HttpSettings

        self._clock = clock
        self._sender = HttpSender(settings if settings is not None else HttpSettings(), clock)

    async def post(self, url: str, headers: Mapping[str, str], body: str) -> HttpResult:
        """What came back. SchedulerError when nothing did: its `sent` says whether the message may have arrived."""
        from wakeful.domains.http.answer import retry_at
        from wakeful.domains.http.secrets import secret_values, without
        from wakeful.domains.http.spec import RequestSpec

        spec = RequestSpec(url, "POST", headers, body, follow_redirects=False)
        reply = await self._sender.send(spec)
        said = without(reply.body.decode("utf-8", "replace"), secret_values(spec))
        now = from_ms(self._clock.now())
        wanted = retry_at(reply.headers, now)
        wait = None if wanted is None else max(0, round((wanted - now).total_seconds() * 1000))
        return HttpResult(reply.status, wait, said)


def install(scheduler: Scheduler, settings: HttpSettings) -> None:
    """Let the scheduler send requests by these settings, unless it has a handler of its own for them."""
    from wakeful.domains.http.kind import HttpKind

    if HTTP not in scheduler.host.handled_kinds:
        scheduler.on_job_due(HTTP, HttpKind(settings, scheduler.clock))
