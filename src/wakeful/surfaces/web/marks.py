"""How states and outcomes are shown: a shape, a tone and a word for each, the same on every page."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.kernel.model.job import Job, Run


class Look(NamedTuple):
    """A shape, its tone, and the word beside it."""

    shape: str
    tone: str
    word: str


LONGEST_SAID = 2_000
OUTCOMES = {
    "success": Look("ok", "ok", "success"),
    "noop": Look("noop", "", "nothing to do"),
    "skipped": Look("skipped", "", "skipped"),
    "deferred": Look("deferred", "", "deferred"),
    "cancelled": Look("cancelled", "", "cancelled"),
    "unknown": Look("unknown", "wait", "unknown"),
    "error": Look("error", "bad", "error"),
    "timeout": Look("timeout", "bad", "timeout"),
    "crashed": Look("crashed", "crash", "crashed"),
}
OPEN = {
    "active": Look("active", "run", "running"),
    "waiting": Look("waiting", "wait", "waiting"),
    "queued": Look("queued", "", "queued"),
}
JOBS = {
    "idle": Look("idle", "", "idle"),
    "running": Look("active", "run", "running"),
    "waiting": Look("waiting", "wait", "waits for you"),
    "paused": Look("paused", "", "paused"),
    "done": Look("ok", "ok", "done"),
    "disabled": Look("disabled", "bad", "off"),
}


def look_of_run(run: Run) -> Look:
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


def look_of_job(job: Job) -> Look:
    look = JOBS[job.status]
    if job.status == "disabled" and job.consecutive_errors:
        errors = job.consecutive_errors
        return look._replace(word=f"off, {errors} {'error' if errors == 1 else 'errors'}")
    if job.status == "idle" and job.waiting_for is not None:
        return Look("queued", "", f"waits for {job.waiting_for}")
    if job.status == "idle" and job.consecutive_errors:
        return Look("error", "bad", "failed last")
    return look
