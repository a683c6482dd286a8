"""How states and outcomes are shown: a shape, a tone and a word for each, the same on every page."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.kernel.model.job import Job, Run


class StatusMark(NamedTuple):
    """A shape, its tone, and the word next to it."""

    shape: str
    tone: str
    word: str


LONGEST_SAID = 2_000
OUTCOMES = {
    "success": StatusMark("ok", "ok", "success"),
    "noop": StatusMark("noop", "", "nothing to do"),
    "skipped": StatusMark("skipped", "", "skipped"),
    "deferred": StatusMark("deferred", "", "deferred"),
    "cancelled": StatusMark("cancelled", "", "cancelled"),
    "unknown": StatusMark("unknown", "wait", "unknown"),
    "error": StatusMark("error", "bad", "error"),
    "timeout": StatusMark("timeout", "bad", "timeout"),
    "crashed": StatusMark("crashed", "crash", "crashed"),
}
OPEN = {
    "active": StatusMark("active", "run", "running"),
    "waiting": StatusMark("waiting", "wait", "waiting"),
    "queued": StatusMark("queued", "", "queued"),
}
JOBS = {
    "idle": StatusMark("idle", "", "idle"),
    "running": StatusMark("active", "run", "running"),
    "waiting": StatusMark("waiting", "wait", "waits for you"),
    "paused": StatusMark("paused", "", "paused"),
    "done": StatusMark("ok", "ok", "done"),
    "disabled": StatusMark("disabled", "bad", "off"),
}


def look_of_run(run: Run) -> StatusMark:
    if run.outcome is not None:
        return OUTCOMES[run.outcome]
    return OPEN.get(run.status, OPEN["queued"])


def said(run: Run) -> str:
    """What a list shows of a run: its error, else what an agent replied, else the last line it printed."""
    if run.error:
        return run.error
    output = run.output
    if isinstance(output, dict):
        output = next((output[name] for name in ("reply", "output", "text") if isinstance(output.get(name), str)), None)
    lines = output[-LONGEST_SAID:].strip().splitlines() if isinstance(output, str) else []
    return "" if not lines else lines[-1] if run.kind == "command" else " ".join(lines)


def look_of_job(job: Job) -> StatusMark:
    look = JOBS[job.status]
    if job.status == "disabled" and job.consecutive_errors:
        errors = job.consecutive_errors
        return look._replace(word=f"off, {errors} {'error' if errors == 1 else 'errors'}")
    if job.status == "idle" and job.waiting_for is not None:
        return StatusMark("queued", "", f"waits for {job.waiting_for}")
    if job.status == "idle" and job.consecutive_errors:
        return StatusMark("error", "bad", "failed last")
    return look
