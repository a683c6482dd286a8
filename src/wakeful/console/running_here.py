"""Running one job in this process, as `run` and `agent ask` do where no server is running."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.console.following import POLL_S
from wakeful.console.opening import is_lone_run
from wakeful.console.store_location import CONFIG, FOLDER, StoreLocation, nearest_config, place_beside
from wakeful.domains import domains
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.domain import load
from wakeful.kernel.model.job import Job
from wakeful.kernel.model.run import Run
from wakeful.scheduler import Scheduler
from wakeful.trust import ADVICE, distrust_below


class LoneRun(NamedTuple):
    """How a run in this process ended, and what to tell the person besides."""

    run: Run
    notes: list[str]


def runs_here(kind: str) -> bool:
    """Whether jobs of this kind need no server."""
    return kind in _prepared_by()


def _prepared_by() -> dict[str, str]:
    return {kind: prepare for domain in domains() for kind, prepare in domain.run_here.items()}


async def run_in_this_process(scheduler: Scheduler, place: StoreLocation, job: Job, payload: Any = None) -> LoneRun:
    """Run a job to its end as a server would, with what its configuration file sets."""
    _refuse_what_only_a_server_runs(job, scheduler)
    file = await _file_of(scheduler, place, job)
    notes = [load(_prepared_by()[job.kind])(scheduler, job, file)]
    after = [await load(domain.alone)(scheduler, job, file) for domain in domains() if domain.alone is not None]
    run = await _until_signalled(scheduler, job, payload)
    notes += [await said(run) for said in after if said is not None]
    return LoneRun(await scheduler.get_run(run.id) or run, [note for note in notes if note is not None])


async def _file_of(scheduler: Scheduler, place: StoreLocation, job: Job) -> Path | None:
    """The configuration file that counts for the job, however its store was named: what it sets is not left out.

    Its own, else the one of the store, else the one beside the store, else the nearest, which a server here would read.
    """
    found, elsewhere = await _applied_from(scheduler, job)
    if found is not None:
        if found != place.config and (why := distrust_below(found)) is not None:
            raise ScheduleTriggerError(f"{found}, which has {job.name}, is not used because {why}: {ADVICE}.")
        return found
    file = place.config or _beside(place) or nearest_config(Path.cwd())
    missing = [name for name in _taken_from_outside(job.payload) if name not in os.environ]
    if elsewhere is not None and file is None and missing:
        raise ScheduleTriggerError(
            f"{job.name} takes {', '.join(missing)} from its environment, and the file that has it ({elsewhere}) is "
            f"not here to say what its env_file sets: set {'them' if len(missing) > 1 else 'it'}, or run the job there."
        )
    return file


async def _applied_from(scheduler: Scheduler, job: Job) -> tuple[Path | None, str | None]:
    number = parsed[1] if (parsed := ids.decode(job.id)) is not None else 0
    ask = next(load(domain.file_of) for domain in domains() if domain.file_of is not None)
    found: tuple[Path | None, str | None] = await scheduler.read(lambda tx: ask(tx, number))
    return found


def _beside(place: StoreLocation) -> Path | None:
    """The file beside the store, or beside its `.wakeful`, if that is its store and no other user could change it."""
    folder = place.path.parent if place.path is not None else None
    for at in () if folder is None else (folder, folder.parent) if folder.name == FOLDER else (folder,):
        file = at / CONFIG
        if file.is_file() and distrust_below(file) is None:
            named = {name: value for name, value in os.environ.items() if name != "WAKEFUL_DB"}
            return file if place_beside(file, None, named, at).path == place.path else None
    return None


def _taken_from_outside(payload: Mapping[str, Any]) -> list[str]:
    """The variables that a job is given from the environment of its server."""
    runner = payload.get("runner")
    listed = runner.get("env", ()) if isinstance(runner, Mapping) else ()
    return [*payload.get("pass_env", ()), *(name for name in listed if "=" not in name)]


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
