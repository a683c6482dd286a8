"""Answers: jobs, runs and the rest as plain data, as `models` describes them and each caller may see them.

An answer about one job has the secrets that its kind shows to callers who may change it.
"""

from __future__ import annotations

import contextlib
import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from starlette.responses import Response

from wakeful.domains import domains
from wakeful.errors import JobNotFound
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.context import Rights
from wakeful.kernel.domain import load
from wakeful.kernel.model.job import Job
from wakeful.kernel.model.run import Run
from wakeful.routing.auth import Caller
from wakeful.routing.idempotency import StoredAnswer, answer, respond
from wakeful.routing.settings import ServerSettings
from wakeful.scheduler import Scheduler


def job_shape(job: Job, caller: Caller, zone: str) -> dict[str, Any]:
    """A job; a command's variables are shown only to callers who may write them."""
    shown = job.to_dict()
    place = zone_of(job, zone)
    shown["zone"] = place
    shown["next_run_local"] = local(job.next_run_at, place)
    shown["payload"] = _seen(job.kind, shown["payload"], caller)
    return shown


def zone_of(job: Job, default: str) -> str:
    """The job's own zone, else the server's."""
    return getattr(job.trigger, "tz", None) or default


def local(moment: datetime | None, zone: str) -> str | None:
    """A time as the clock on the wall shows it there."""
    return moment.astimezone(ZoneInfo(zone)).isoformat(timespec="seconds") if moment is not None else None


def run_shape(run: Run) -> dict[str, Any]:
    return run.to_dict()


def run_detail(run: Run, caller: Caller, *, has_log: bool) -> dict[str, Any]:
    return {
        **run.to_dict(),
        "payload": _seen(run.kind, run.payload, caller),
        "trace": trace_for(caller, run.trace),
        "usage": run.usage,
        "has_log": has_log,
    }


def trace_for(caller: Caller, trace: str | None) -> str | None:
    """A trace as this caller may see it: its source lines are for operators, wherever it is shown."""
    return trace if caller.may("operator") else None


def _seen(kind: str, payload: Any, caller: Caller) -> Any:
    """A payload as this caller may see it."""
    redact = None if caller.may("admin") else _REDACTED.get(kind)
    return payload if redact is None else redact(payload)


_REDACTED = {kind.name: kind.redact for domain in domains() for kind in domain.kinds if kind.redact is not None}


_SECRETS = {kind: secrets for domain in domains() for kind, secrets in domain.job_secrets.items()}
_BY_TRIGGER = {kind.trigger: kind.name for domain in domains() for kind in domain.kinds if kind.trigger is not None}


def etag(revision: int) -> str:
    """The revision of a job as a header has it."""
    return f'"{revision}"'


async def whole_job(job: Job, caller: Caller, scheduler: Scheduler, settings: ServerSettings) -> StoredAnswer:
    """One job, with its secrets for callers who may change it."""
    shown = job_shape(job, caller, scheduler.host.default_zone)
    if caller.role != "viewer":
        await _add_secrets(shown, scheduler, settings)
    return answer(200, shown, ETag=etag(job.revision))


async def answer_job(
    scheduler: Scheduler, settings: ServerSettings, caller: Caller, rights: Rights, ref: str
) -> Response:
    """The same for a reference to the job."""
    job = await scheduler.server_side.get_job(ref, rights)
    return respond(await whole_job(job, caller, scheduler, settings))


def has_secrets(new: NewJob) -> bool:
    """Whether a new job is of a kind that has secrets."""
    return _BY_TRIGGER.get(new.trigger.type, new.kind) in _SECRETS


async def with_secrets(response: Response, scheduler: Scheduler, settings: ServerSettings) -> Response:
    """The answer about a new job with its secrets, which are not kept with answers to idempotent requests."""
    shown = json.loads(bytes(response.body))
    with contextlib.suppress(JobNotFound):  # a repeated request, after it was removed
        await _add_secrets(shown, scheduler, settings)
    headers = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
    return respond(answer(response.status_code, shown, **headers))


async def _add_secrets(shown: dict[str, Any], scheduler: Scheduler, settings: ServerSettings) -> None:
    if (secrets := _SECRETS.get(shown["kind"])) is not None:
        for name, part in (await load(secrets)(scheduler, shown["id"], settings)).items():
            shown[name] = {**shown[name], **part}
