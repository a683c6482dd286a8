"""Finding what a person means: a job by its name or id, a run by its id, the run a job is in."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Annotated, Any, cast

import typer

from wakeful.domains import domains
from wakeful.errors import JobNotFound, RunNotFound
from wakeful.kernel.domain import load
from wakeful.kernel.model.job import Job
from wakeful.kernel.model.run import Run
from wakeful.scheduler import Scheduler

LOOKED_AT = 20  # of a job's runs, only the latest can still be open
OPEN = ("active", "waiting", "queued")

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


async def run_with_id(scheduler: Scheduler, run_id: str) -> Run:
    """A run that there is, as it is now."""
    run = await scheduler.get_run(run_id)
    if run is None:
        raise RunNotFound(f"{run_id} is no longer on record.")
    return run


async def run_meant(scheduler: Scheduler, ref: str, statuses: Sequence[str]) -> Run | None:
    """The run itself; of a job the latest in the first of these statuses that one is in, or None."""
    job = await job_or_run(scheduler, ref)
    if isinstance(job, Run):
        return job
    log = await scheduler.get_run_log(job.id, LOOKED_AT)
    return next((run for status in statuses for run in log if run.status == status), None)


def offered_by_id(verb: str, ref: str) -> Callable[..., Any] | None:
    """What a domain does with an id of one of its things, such as a delivery; None for jobs and runs."""
    for domain in domains():
        for prefix, verbs in domain.by_id.items():
            if ref.startswith(prefix) and verb in verbs:
                return cast("Callable[..., Any]", load(verbs[verb]))
    return None
