"""Answers: jobs, runs and the rest as plain data, as `models` describes them and each caller may see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.domains import domains
from wakeful.kernel.model.job import Job
from wakeful.kernel.model.run import Run
from wakeful.routing.auth import Caller


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
