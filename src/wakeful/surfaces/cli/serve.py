"""`serve`: the engine and its HTTP API on a store, until it is stopped.

Options of the command line take precedence over the configuration file, and the file over the defaults.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import importlib
import inspect
import logging
import os
import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from wakeful import Scheduler
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.humanize import count
from wakeful.console.opening import is_lone_run
from wakeful.console.output import JsonFormatter, log_to
from wakeful.console.store_location import ConfigFile, Db, given_store, nearest_config, place_beside
from wakeful.errors import InvalidSetting, SchedulerShutdownError, StoreLocked
from wakeful.kernel.rules.holding import hold_of, hold_words
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.surfaces.cli.linking import new_link
from wakeful.surfaces.cli.serve_log import ServeLog, on_signals
from wakeful.threads import LimitedThreadPool
from wakeful.triggers import parse_interval

if TYPE_CHECKING:
    from wakeful.config.loading import Loaded
    from wakeful.config.models import BaseConfig
    from wakeful.routing.settings import ServerSettings
    from wakeful.surfaces.api.server import HttpServer

log = logging.getLogger("wakeful.serve")
LOOP_THREADS = 64
LOG_LINE = "%(asctime)s %(levelname)-7s %(message)s"


class LogFormat(StrEnum):
    """How the log is written."""

    text = "text"
    json = "json"


@app.command("serve", rich_help_panel=SERVER)
def serve(
    ctx: typer.Context,
    *,
    config: ConfigFile = None,
    app_ref: Annotated[
        str | None,
        typer.Option("--app", metavar="MODULE:NAME", help="Serve your own Scheduler, or a function that returns one."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen on (default: 127.0.0.1; 0.0.0.0: all)."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Port to listen on (default: 7878; 0: any free one)."
        ),
    ] = None,
    node: Annotated[str | None, typer.Option("--node", metavar="NAME", help="Name of this node.")] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", metavar="A,B", help="Labels of this node, for jobs that require them (repeatable)."),
    ] = None,
    shutdown_wait: Annotated[
        str,
        typer.Option("--shutdown-wait", metavar="DURATION", help="How long to wait for running jobs when stopping."),
    ] = "30s",
    log_format: Annotated[
        LogFormat | None,
        typer.Option("--log", help="How the log is written: text or json (default: WAKEFUL_LOG, or text)."),
    ] = None,
    db: Db = None,
) -> None:
    """Run due jobs and answer HTTP requests until Ctrl-C or SIGTERM. A second signal does not wait for jobs."""
    patience = parse_interval(shutdown_wait).total_seconds()
    file = config if config is not None else nearest_config(Path.cwd())
    loaded = _loaded(file)
    settings, known = server_settings(file, loaded)
    settings = dataclasses.replace(
        settings,
        host=host if host is not None else settings.host,
        port=port if port is not None else settings.port,
        shutdown_wait=patience,
    )
    if app_ref is None:
        scheduler = _scheduler(
            place_beside(file, given_store(ctx, db), os.environ, Path.cwd()).url, known, node, _labels(labels)
        )
    else:
        scheduler = load_app(app_ref)
        _say_ignored(ctx, app_ref, scheduler, {"--db": db, "--node": node, "--labels": labels})
    as_json = _log_format(log_format) is LogFormat.json
    log_to(sys.stderr, JsonFormatter(scheduler.host.origin().actor) if as_json else LOG_LINE)
    if app_ref is None or file is not None:  # an app without a file sets them itself
        from wakeful.surfaces.cli.served_file import store_budget

        scheduler.host.before_start(partial(store_budget, scheduler, known))
    served = Served(file, loaded) if file is not None and loaded is not None else None
    asyncio.run(_serve(scheduler, settings, known, served))


def _log_format(given: LogFormat | None) -> LogFormat:
    """The option, else what the environment says."""
    said = os.environ.get("WAKEFUL_LOG") or LogFormat.text
    if given is None and said not in [*LogFormat]:
        raise WrongUse(f"WAKEFUL_LOG is text or json, not {said!r:.40}.")
    return given if given is not None else LogFormat(said)


class Served(NamedTuple):
    """The file of a server, as it was read."""

    file: Path
    loaded: Loaded


def _loaded(file: Path | None) -> Loaded | None:
    from wakeful.surfaces.cli.served_file import load_here

    return load_here(file) if file is not None else None


def server_settings(file: Path | None, loaded: Loaded | None) -> tuple[ServerSettings, BaseConfig]:
    from wakeful.config.schema import config_model
    from wakeful.routing.settings import LOCAL, ConnectionLimits, MetricsSettings, ServerSettings

    known = loaded.config if loaded is not None else config_model()()
    server = known.server
    settings = ServerSettings(
        host=server.host,
        port=server.port,
        public_url=server.public_url,
        folder=file.resolve().parent if file is not None else None,
        allowed_hosts=tuple(server.allowed_hosts),
        connections=ConnectionLimits(proxies=(*LOCAL, *server.proxies)),
        metrics=MetricsSettings(server.metrics.open, server.metrics.per_job),
        min_interval_ms=known.limits.min_interval,
        jobs_per_agent=known.limits.jobs_per_agent,
        bytes_per_agent=known.limits.bytes_per_agent,
        **_outbound(known),
    )
    return settings, known


def _outbound(known: BaseConfig) -> dict[str, Any]:
    """Where callers may send requests, and whether agents may."""
    outbound = known.server.outbound  # type: ignore[attr-defined]  # a section that its domain adds
    return {"outbound": outbound.policy(), "agents_request": outbound.agents}


def _scheduler(url: str, known: BaseConfig, node: str | None, labels: list[str]) -> Scheduler:
    return Scheduler(
        url,
        node=node,
        labels=labels,
        timezone=known.defaults.timezone,
        max_running=known.limits.max_running,
        min_interval=known.limits.min_interval / 1000,
        job_defaults=known.defaults.job_options(),
        retention=known.retention.rules(),
    )


def _say_ignored(ctx: typer.Context, app_ref: str, scheduler: Scheduler, given: dict[str, Any]) -> None:
    """An app sets these itself; options that have no effect are reported."""
    if given["--db"] is not None or (ctx.obj or {}).get("db") is not None:
        say_note(f"--db is ignored: {app_ref} brings its own store, {scheduler.url}.")
    for option, what in (("--node", "names its own node"), ("--labels", "has its own labels")):
        if given[option] is not None:
            say_note(f"{option} is ignored: {app_ref} {what}.")


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
    if inspect.iscoroutinefunction(found):
        raise WrongUse(f"--app {ref} is an async function: it must be a Scheduler, or a plain function that makes one.")
    found = found() if callable(found) and not isinstance(found, Scheduler) else found
    if not isinstance(found, Scheduler):
        raise WrongUse(
            f"--app {ref} is of type {type(found).__name__}: it must be a Scheduler, or a function that makes one."
        )
    return found


def _nearest(module: Any) -> str:
    """The scheduler that was probably meant."""
    schedulers = [key for key, value in vars(module).items() if isinstance(value, Scheduler)]
    return f" Did you mean {schedulers[0]!r}?" if schedulers else ""


async def _serve(scheduler: Scheduler, settings: ServerSettings, known: BaseConfig, served: Served | None) -> None:
    """Engine and HTTP in one process: the port is ours before the engine is, and answers only while it runs."""
    from wakeful.surfaces.api.server import HttpServer, bind, first_token
    from wakeful.surfaces.cli.served_file import watch_file
    from wakeful.surfaces.mcp.endpoint import router as mcp_router
    from wakeful.surfaces.web.routes import nothing_here, routers

    _refuse_second(scheduler)
    _trace(scheduler, known)
    # What handlers and libraries give to threads of the loop is not waited for at the end either.
    asyncio.get_running_loop().set_default_executor(LimitedThreadPool("the event loop", LOOP_THREADS))
    stop = asyncio.Event()
    with contextlib.closing(bind(settings.host, settings.port)) as bound:
        settings = dataclasses.replace(settings, port=bound.getsockname()[1])
        server = HttpServer(scheduler, settings, bound, routers(), nothing_here, first=[mcp_router])
        _install_domains(scheduler, known, settings)
        # Last: what it applies may need all of them.
        watch = watch_file(scheduler, *served) if served is not None else None

        def impatient() -> None:
            log.info("stopping without waiting for runs")
            server.hurry()
            asyncio.get_running_loop().create_task(scheduler.stop(wait_for_jobs=False))

        on_signals(stop.set, impatient)
        async with scheduler:
            serve_log = ServeLog(scheduler)
            token_file = await first_token(scheduler)
            await scheduler.start()
            await server.begin()
            # What is loaded by now stays: else every larger request would have all of it looked through for garbage.
            gc.freeze()
            _say_served(scheduler, settings, served.file if served is not None else None, token_file)
            log.info("dashboard: %s", await new_link(scheduler, settings.public_url or settings.url, "admin"))
            await _say_hold(scheduler)
            if watch is not None:
                watch.report()
            await stop.wait()
            await _stop(scheduler, server, settings.shutdown_wait)
            await serve_log.finish()
            log.info("stopped")


async def _say_hold(scheduler: Scheduler) -> None:
    """Warn where everything is paused, as after a restore: else the log of a server that starts nothing is silent."""
    hold = hold_of(await scheduler.read(lambda tx: tx.nodes.held()))
    if hold is not None:
        log.warning("everything is paused %s: nothing starts until wakeful resume --all", hold_words(hold))


def _trace(scheduler: Scheduler, known: BaseConfig) -> None:
    """Send traces where the file or the variables of OpenTelemetry say so; else nothing of that is loaded."""
    traces = known.server.traces
    if traces is None and not any(name.startswith("OTEL_") for name in os.environ):
        return
    from wakeful.tracing import export_traces, is_wanted

    if traces is not None:
        export_traces(scheduler, traces.endpoint)
    elif is_wanted(os.environ):
        try:
            export_traces(scheduler)
        except InvalidSetting as error:
            log.warning("OTEL_ variables ask for traces. %s", error)


def _refuse_second(scheduler: Scheduler) -> None:
    """Name the server that runs this store before its port gets in the way."""
    holder = scheduler.engine_holder()
    if holder is not None and not is_lone_run(holder):
        who = f"process {holder.get('pid')} on {holder.get('host')}, node {holder.get('node')}"
        raise StoreLocked(f"Another server already runs this store ({who}): stop it first, or use another store.")


def _install_domains(scheduler: Scheduler, known: BaseConfig, settings: ServerSettings) -> None:
    """Every domain brings its handlers and services, with its own section of the file."""
    from wakeful.config.schema import section_of
    from wakeful.domains import domains
    from wakeful.kernel.domain import load

    for domain in domains():
        if domain.install is not None:
            load(domain.install)(scheduler, section_of(known, domain), settings)


def _say_served(scheduler: Scheduler, settings: ServerSettings, file: Path | None, token_file: Path | None) -> None:
    log.info("serving %s, process %s; press Ctrl-C to stop", scheduler.url, os.getpid())
    if file is not None:
        log.info("configuration: %s", file)
    lost = "no valid token is stored with it: create one with wakeful token create NAME --role admin"
    where = f"the admin token is in {token_file}" if token_file is not None else lost
    log.info("listening on %s; %s", settings.url, where)
    if not settings.is_local:
        log.warning("%s is reachable from other machines; only tokens protect it", settings.host)


async def _stop(scheduler: Scheduler, server: HttpServer, patience: float) -> None:
    """Admit nothing, accept nothing, end the streams, and give what runs its time."""
    running = scheduler.running_count()
    log.info("stopping%s", f", {count(running, 'run')} may take up to {patience:g} s" if running else "")
    ended, stopped = await asyncio.gather(server.end(), scheduler.stop(timeout=patience), return_exceptions=True)
    if isinstance(stopped, SchedulerShutdownError):
        log.warning("%s; interrupted runs start again at the next start", stopped)
    elif isinstance(stopped, BaseException):
        raise stopped
    if isinstance(ended, BaseException):
        raise ended
