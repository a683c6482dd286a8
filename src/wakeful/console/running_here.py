"""Running one job in this process, as `run` and `agent ask` do where no server is running."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.console.following import POLL_S
from wakeful.console.opening import is_lone_run
from wakeful.console.store_location import StoreLocation
from wakeful.domains import domains
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.domain import load
from wakeful.kernel.model.job import Job
from wakeful.kernel.model.run import Run
from wakeful.scheduler import Scheduler


class LoneRun(NamedTuple):
    """How a run in this process ended, and what to tell the person besides."""

    run: Run
    note: str | None


def runs_here(kind: str) -> bool:
    """Whether jobs of this kind need no server."""
    return kind in _prepared_by()


def _prepared_by() -> dict[str, str]:
    return {kind: prepare for domain in domains() for kind, prepare in domain.run_here.items()}


async def run_in_this_process(scheduler: Scheduler, place: StoreLocation, job: Job, payload: Any = None) -> LoneRun:
    """Run a job to its end as a server would, with what its configuration file sets."""
    _refuse_what_only_a_server_runs(job, scheduler)
    note = load(_prepared_by()[job.kind])(scheduler, job, place.config)
    return LoneRun(await _until_signalled(scheduler, job, payload), note)


def adopt_what_it_refers_to(_: Scheduler, job: Job, file: Path | None) -> None:
    """What the job takes from its server's environment, a server would also find in its env_file."""
    if job.payload.get("env_refs") or job.payload.get("pass_env"):
        adopt_env_file(file)


def adopt_env_file(file: Path | None) -> None:
    """Take over the variables of the configuration's env_file, as a server does."""
    if file is None:
        return
    from wakeful.config.loading import load as load_file
    from wakeful.references import adopt, own_environment

    adopt(load_file(file, own_environment(), needs=("env_file",)).env_file)


def _refuse_what_only_a_server_runs(job: Job, scheduler: Scheduler) -> None:
    holder = scheduler.engine_holder()
    if holder is not None and is_lone_run(holder):
        raise ScheduleTriggerError(
            f"Another wakeful run (process {holder.get('pid')}) is using this store: wait for its end, or start a "
            "server (wakeful serve) to run jobs side by side."
        )
    if not runs_here(job.kind):
        ours = any(job.kind == kind.name for domain in domains() for kind in domain.kinds)
        start = "wakeful serve" if ours else "wakeful serve --app MODULE:NAME, with the program that has its handler"
        raise ScheduleTriggerError(
            f"{job.name} is of kind {job.kind!r}, which only a server can run: start one with {start}."
        )


async def _until_signalled(scheduler: Scheduler, job: Job, payload: Any = None) -> Run:
    """Run the job here. Ctrl-C and SIGTERM end what it runs, not this command: the run's end is still recorded."""
    loop, this = asyncio.get_running_loop(), asyncio.current_task()

    ended: set[asyncio.Task[object]] = set()

    def end() -> None:
        """End what is in progress, each task once, and look again: the run may not have begun yet."""
        others = {task for task in asyncio.all_tasks() if task is not this} - ended
        for task in others:
            task.cancel()
        ended.update(others)
        loop.call_later(POLL_S, end)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    reported_below, log = logging.NullHandler(), logging.getLogger("wakeful.runs")
    log.addHandler(reported_below)
    try:
        return await scheduler.run_here(job.id, payload=payload)
    finally:
        log.removeHandler(reported_below)
