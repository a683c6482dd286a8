"""Finding what a person means: a job by its name or id, a run by its id, the run a job is in."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from wakeful import Job, Run, Scheduler
from wakeful.errors import JobNotFound, ScheduleTriggerError

Ref = Annotated[str, typer.Argument(metavar="ID", help="A job's name or id, or a run's id.", show_default=False)]


async def job_named(scheduler: Scheduler, ref: str) -> Job:
    """The job of that name or id; JobNotFound offers the nearest name, or says that it was removed."""
    job = await scheduler.get_job(ref)
    if job is not None:
        return job
    try:
        await scheduler.get_run_log(ref, 1)
    except JobNotFound:
        await scheduler.explain(ref)  # raises, and knows the nearest name
    raise JobNotFound(f"{ref!r} was removed; its history stays: wakeful runs {shlex.quote(ref)}")


async def job_or_run(scheduler: Scheduler, ref: str) -> Job | Run:
    """The job or the run that is meant."""
    return await scheduler.get_run(ref) or await job_named(scheduler, ref)


async def latest_run(scheduler: Scheduler, ref: str, *, open_only: bool = False) -> Run:
    """The run that is meant: itself, or of a job the one that is going on, else the latest."""
    job = await job_or_run(scheduler, ref)
    if isinstance(job, Run):
        return job
    log = await scheduler.get_run_log(job.id, 20)
    going = [run for run in log if run.status != "done"]
    if going:
        return next((run for run in going if run.id == job.current_run), going[-1])
    if open_only:
        raise ScheduleTriggerError(f"{job.name} is not running.", {"job": job.name, "reason": "not_running"})
    if not log:
        raise JobNotFound(f"{job.name} has never run.")
    return log[0]
