"""Running one job in this process, as `run` and `agent ask` do where no server is running."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Any

from wakeful import Job, Run, Scheduler
from wakeful.agents.naming import AGENT
from wakeful.cli.failures import say_note
from wakeful.cli.job_warnings import COMMAND, HTTP
from wakeful.cli.opening import is_lone_run
from wakeful.cli.place import Place
from wakeful.cli.runs import POLL_S
from wakeful.domains import domains
from wakeful.errors import ScheduleTriggerError

RUN_HERE = (COMMAND, HTTP, AGENT)  # kinds that need no server


async def run_in_this_process(scheduler: Scheduler, place: Place, job: Job, payload: Any = None) -> Run:
    """Run a job to its end as a server would, with what its configuration file sets."""
    _refuse_what_only_a_server_runs(job, scheduler)
    _read_policy(job, scheduler, place)
    _adopt_env_file(job, place)
    if job.kind == AGENT:
        _ = scheduler.agents  # which handles them
    return await _until_signalled(scheduler, job, payload)


def say_who_wakes(job: Job) -> None:
    """What only wakes an agent leaves the rest to a server."""
    if job.kind == AGENT and job.payload.get("does") in ("beat", "event"):
        agent = job.payload["agent"]
        say_note(f"{agent} is woken when a server runs (wakeful serve), or now with wakeful run {agent}.wake.")


def _refuse_what_only_a_server_runs(job: Job, scheduler: Scheduler) -> None:
    holder = scheduler.engine_holder()
    if holder is not None and is_lone_run(holder):
        raise ScheduleTriggerError(
            f"Another wakeful run (process {holder.get('pid')}) is using this store: wait for its end, or start a "
            "server (wakeful serve) to run jobs side by side."
        )
    if job.kind not in RUN_HERE:
        ours = any(job.kind == kind.name for domain in domains() for kind in domain.kinds)
        start = "wakeful serve" if ours else "wakeful serve --app MODULE:NAME, with the program that has its handler"
        raise ScheduleTriggerError(
            f"{job.name} is of kind {job.kind!r}, which only a server can run: start one with {start}."
        )


def _read_policy(job: Job, scheduler: Scheduler, place: Place) -> None:
    """A request whose address came over the network obeys the same file here as under the server."""
    if job.kind != HTTP or place.config is None or not job.payload.get("guarded"):
        return
    from wakeful.config.loading import load_config
    from wakeful.http.configuration import install_configured

    install_configured(scheduler, load_config(place.config).server.outbound)  # type: ignore[attr-defined]


def _adopt_env_file(job: Job, place: Place) -> None:
    """What the job takes from its server's environment, a server would also find in its env_file."""
    needs = job.kind == AGENT or job.payload.get("env_refs") or job.payload.get("pass_env")
    if place.config is None or not needs:
        return
    from wakeful.config.loading import load
    from wakeful.references import adopt, own_environment

    adopt(load(place.config, own_environment(), needs=("env_file",)).env_file)


async def _until_signalled(scheduler: Scheduler, job: Job, payload: Any = None) -> Run:
    """Run the job here. Ctrl-C and SIGTERM end what it runs, not this command: the run's end is still recorded."""
    loop, this = asyncio.get_running_loop(), asyncio.current_task()

    ended: set[asyncio.Task[object]] = set()

    def end() -> None:
        """End what goes on, each task once, and look again: the run may not have begun yet."""
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
