"""What tools answer: plain data with JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakeful.triggers import to_ms
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from datetime import datetime

    from wakeful.kernel.model.job import Job
    from wakeful.kernel.model.run import Run

TEXT: Mapping[str, Any] = {"type": "string"}
MAYBE: Mapping[str, Any] = {"type": ["string", "null"]}
TIMES: Mapping[str, Any] = {"type": "array", "items": TEXT, "description": "Times in UTC."}
OUTPUT = 4_000  # characters of a run's output that are shown unless another limit is given


def answers(required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    """The schema of an answer."""
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


SCHEDULE = answers(
    {
        "name": TEXT,
        "schedule": {**TEXT, "description": "When it runs, in words."},
        "status": {**TEXT, "description": "active, waits_for_approval, paused, running, disabled, done, ..."},
        "next": TIMES,
        "last": {"type": ["object", "null"], "description": "The last run: at, outcome, error."},
        "kind": TEXT,
        "made_by": {**TEXT, "description": "Who made it: file, cli, api, mcp or code."},
    },
    does={**TEXT, "description": "What it does: the prompt, command or address."},
    approval={**TEXT, "description": "The run that waits for a person's approval."},
    note=TEXT,
)
RUN = answers(
    {"run": TEXT, "job": TEXT, "status": TEXT, "outcome": MAYBE, "reason": TEXT},
    started_at=MAYBE,
    finished_at=MAYBE,
    output={**TEXT, "description": "What it returned, cut to the limit."},
    truncated={"type": "boolean"},
    error=TEXT,
    note=TEXT,
)
SENTENCES = answers({"sentences": {"type": "array", "items": TEXT}})


def schedule_shape(job: Job, approval: str | None, now: int, *, times: int = 3) -> dict[str, Any]:
    """A job as a schedule."""
    status = "waits_for_approval" if approval is not None else "active" if job.status == "idle" else job.status
    coming = job.upcoming(times)
    next_ = [iso_of(at) for at in coming] if approval is None else [iso(ms) for ms in _slots(job, now, times)]
    last = None
    if job.last_run_at is not None:
        last = {"at": iso_of(job.last_run_at), "outcome": job.last_outcome, "error": job.last_error}
    found = {"name": job.name, "schedule": job.schedule, "status": status, "next": next_, "last": last}
    found |= {"kind": job.kind, "made_by": job.source}
    does = what_it_does(job)
    return {
        **found,
        **({"does": does} if does else {}),
        **({"approval": approval} if approval is not None else {}),
    }


def _slots(job: Job, now: int, times: int) -> list[int]:
    """When it would start if it were approved."""
    return job.trigger.upcoming_slots(now, times)


def what_it_does(job: Job) -> str | None:
    """The prompt, command or address of a job, cut."""
    payload = job.payload
    if not isinstance(payload, dict):
        return None
    for key in ("prompt", "url"):
        if isinstance(payload.get(key), str):
            return str(payload[key])[:500]
    argv = payload.get("argv")
    return " ".join(map(str, argv))[:500] if isinstance(argv, list) else None


def run_shape(run: Run, limit: int = OUTPUT) -> dict[str, Any]:
    """A run, with as much of its output as was asked for."""
    found: dict[str, Any] = {
        "run": run.id,
        "job": run.job,
        "status": run.status,
        "outcome": run.outcome,
        "reason": run.reason,
        "started_at": None if run.started_at is None else iso_of(run.started_at),
        "finished_at": None if run.finished_at is None else iso_of(run.finished_at),
    }
    if run.output is not None:
        said = run.output if isinstance(run.output, str) else json.dumps(run.output, ensure_ascii=False)
        found |= {"output": said[:limit], "truncated": len(said) > limit}
    if run.error is not None:
        found["error"] = run.error[:limit]
    return found


def iso_of(at: datetime) -> str:
    return iso(to_ms(at))
