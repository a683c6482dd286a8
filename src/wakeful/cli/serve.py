"""`serve`: the engine on a store, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful import Event, Scheduler
from wakeful.cli.app import SERVER, app
from wakeful.cli.failures import WrongUse, say_note
from wakeful.cli.place import Db, chosen
from wakeful.cli.words import count, plain, span
from wakeful.errors import SchedulerShutdownError
from wakeful.triggers import parse_interval

if TYPE_CHECKING:
    from datetime import datetime

log = logging.getLogger("wakeful.serve")

MOST_NAMES = 10_000  # remembered, so that a busy job is looked up once
UNWELL = ("error", "timeout", "crashed", "unknown")


@app.command("serve", rich_help_panel=SERVER)
def serve(
    ctx: typer.Context,
    *,
    app_ref: Annotated[
        str | None,
        typer.Option(
            "--app", metavar="MODULE:NAME", help="Serve a Scheduler of your own, or a function that makes one."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; 0.0.0.0 is every address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Where to listen; 0 takes any free one.")
    ] = 7878,
    node: Annotated[str | None, typer.Option("--node", metavar="NAME", help="What this server is called.")] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", metavar="A,B", help="What this node has, for jobs that need it (repeatable)."),
    ] = None,
    shutdown_wait: Annotated[
        str, typer.Option("--shutdown-wait", metavar="DURATION", help="How long running jobs may take to end.")
    ] = "30s",
    db: Db = None,
) -> None:
    """Run jobs when they are due, until Ctrl-C or SIGTERM; a second signal does not wait for running jobs."""
    patience = parse_interval(shutdown_wait).total_seconds()
    place = chosen(ctx, db)
    if app_ref is None:
        scheduler = Scheduler(place.url, node=node, labels=_labels(labels))
    else:
        scheduler = load_app(app_ref)
        if db is not None or (ctx.obj or {}).get("db") is not None:
            say_note(f"--db does not count here: {app_ref} brings its own store, {scheduler.url}.")
        if node is not None:
            say_note(f"--node does not count here: {app_ref} names its own node.")
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s")
    asyncio.run(_serve(scheduler, patience, host, port))


def _labels(given: list[str] | None) -> list[str]:
    """`--labels a,b --labels c` as a list."""
    return [label for part in given or [] for word in part.split(",") if (label := word.strip())]


def load_app(ref: str) -> Scheduler:
    """The Scheduler behind `module:name`, looked for from here; a function is called for it."""
    module_name, _, name = ref.partition(":")
    if not module_name or not name:
        raise WrongUse(f"--app {ref!r} is not MODULE:NAME: write --app jobs:scheduler for scheduler in jobs.py.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise WrongUse(f"--app {ref}: {module_name} needs {error.name}, which is not installed here.") from error
        raise WrongUse(f"--app {ref}: there is no module {module_name!r} in {Path.cwd()}.") from error
    except Exception as error:
        raise WrongUse(f"--app {ref}: importing it failed: {type(error).__name__}: {error}") from error
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise WrongUse(f"--app {ref}: {module_name} has no {name!r}.{_nearest(module)}")
        found = getattr(found, part)
    found = found() if callable(found) and not isinstance(found, Scheduler) else found
    if not isinstance(found, Scheduler):
        raise WrongUse(
            f"--app {ref} is a {type(found).__name__}: it must be a Scheduler, or a function that makes one."
        )
    return found


def _nearest(module: Any) -> str:
    """The scheduler that was probably meant."""
    schedulers = [key for key, value in vars(module).items() if isinstance(value, Scheduler)]
    return f" Did you mean {schedulers[0]!r}?" if schedulers else ""


async def _serve(scheduler: Scheduler, patience: float, host: str, port: int) -> None:
    """Engine and HTTP in one process: the port is ours before the engine is, and answers only while it runs."""
    from wakeful.api.app import create_app
    from wakeful.api.server import HttpServer, bind, first_token
    from wakeful.api.settings import ServerSettings

    stop = asyncio.Event()

    def impatient() -> None:
        log.info("stopping at once")
        asyncio.get_running_loop().create_task(scheduler.stop(wait_for_jobs=False))

    with contextlib.closing(bind(host, port)) as bound:
        settings = ServerSettings(host=host, port=bound.getsockname()[1], shutdown_wait=patience)
        on_signals(stop.set, impatient)
        async with scheduler:
            teller = Teller(scheduler)
            token_file = await first_token(scheduler)
            await scheduler.start()
            server = HttpServer(create_app(scheduler, settings), bound)
            await server.begin()
            log.info("serving %s, process %s; Ctrl-C stops it", scheduler.url, os.getpid())
            log.info("listening on %s; %s", settings.url, _where(token_file))
            await stop.wait()
            running = scheduler.running_count()
            log.info("stopping%s", f", {count(running, 'run')} may take up to {patience:g} s to end" if running else "")
            try:
                await asyncio.gather(server.end(), scheduler.stop(timeout=patience))
            except SchedulerShutdownError as error:
                log.warning("%s; cut off, and run again at the next start", error)
            await teller.finish()
            log.info("stopped")


def _where(token_file: Path | None) -> str:
    if token_file is None:
        return "its first token is not on this machine, wakeful token create NAME --role admin makes another"
    return f"an admin's token is in {token_file}"


def on_signals(first: Callable[[], None], second: Callable[[], None]) -> None:
    """What Ctrl-C and SIGTERM do; whoever asks a third time means it, and the next start recovers what ran."""
    received = 0

    def on_signal() -> None:
        nonlocal received
        received += 1
        if received > 2:
            os._exit(1)
        (first if received == 1 else second)()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)


class Teller:
    """Says in the log what happened, from events alone and one after the other: it cannot hold up the engine."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._started: dict[str, datetime] = {}
        self._names: dict[str, str] = {}
        self._ended: asyncio.Queue[Event] = asyncio.Queue()
        self._worker = asyncio.get_running_loop().create_task(self._work())
        scheduler.subscribe(self._told)

    async def finish(self) -> None:
        """Tell what is left to tell; nothing after that."""
        await self._ended.join()
        self._worker.cancel()
        await asyncio.wait({self._worker})

    def _told(self, event: Event) -> None:
        data = event.data
        if event.stream == "alert":
            log.warning("alert %s: %s", event.type, plain(str(data.get("message", ""))))
        elif event.stream == "job":
            self._names[data["job_id"]] = data["job"]
            log.info("job %s was %s", data["job"], event.type)
        elif event.stream == "run" and event.type == "started":
            self._started[data["run"]] = event.at
        elif event.stream == "run":
            self._ended.put_nowait(event)

    async def _work(self) -> None:
        while True:
            event = await self._ended.get()
            try:
                await self._tell_end(event)
            except Exception:
                log.exception("%s has ended, and could not be told in full", event.data["run"])
            finally:
                self._ended.task_done()

    async def _tell_end(self, event: Event) -> None:
        run_id, outcome = event.data["run"], event.data.get("outcome")
        started = self._started.pop(run_id, None)
        took = f" after {span(max(0, int((event.at - started).total_seconds() * 1000)))}" if started is not None else ""
        name, error = await self._name(event.data["job_id"]), ""
        if outcome in UNWELL:
            run = await self._scheduler.get_run(run_id)
            error = f": {plain(run.error)}" if run is not None and run.error else ""
        level = logging.WARNING if outcome in UNWELL else logging.INFO
        log.log(level, "%s %s %s%s%s", name, run_id, outcome or event.type, took, error)

    async def _name(self, job_id: str) -> str:
        if job_id not in self._names:
            if len(self._names) >= MOST_NAMES:
                self._names.clear()
            job = await self._scheduler.get_job(job_id)
            self._names[job_id] = job.name if job is not None else job_id
        return self._names[job_id]
