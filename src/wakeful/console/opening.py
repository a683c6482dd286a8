"""Opening a store for one command, and closing it again in every case.

Reading never creates a store. Commands work on it whether or not a server runs; a running server notices by itself.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from wakeful.clock import SystemClock
from wakeful.console.store_location import CONFIG, StoreLocation
from wakeful.console.zones import usable_zone
from wakeful.errors import StoreMissing, StoreNotFound
from wakeful.kernel.cluster.nodes import LONE_RUN
from wakeful.scheduler import Scheduler
from wakeful.store.process_identity import unique_name
from wakeful.triggers import from_ms

T = TypeVar("T")
Work = Callable[[Scheduler], Awaitable[T]]

RUN_NODE = LONE_RUN  # a `wakeful run` without a server is the store's engine for that long, and no server


def now_ms() -> int:
    return SystemClock().now()


def now() -> datetime:
    return from_ms(now_ms()).astimezone(UTC)


def read(place: StoreLocation, work: Work[T], missing: T) -> T:
    """What `work` finds in the store, or `missing` where there is none."""
    if not place.exists:
        return missing
    try:
        return _run(place, work)
    except StoreMissing:  # that nothing is in a database is known when it was opened
        return missing


def change(place: StoreLocation, work: Work[T], *, create: bool = False) -> T:
    """Run an action on the store; only `create` makes a store if there is none."""
    if not create and not place.exists and place.config is not None:
        file = place.config
        raise StoreNotFound(f"There is no store at {place}: {file} has not been applied: run {_apply(file)}.")
    if not create and not place.exists:
        raise StoreNotFound(f"There is no store at {place} yet: add a job first, or name another store with --db.")
    return _run(place, work, create=create, defaults=_defaults(place) if create else None)


def _apply(file: Path) -> str:
    """The commands that apply a file."""
    if file.name == CONFIG:
        return "wakeful apply, or wakeful serve"
    return f"wakeful apply {shlex.quote(str(file))}, or wakeful serve --config {shlex.quote(str(file))}"


def server_of(scheduler: Scheduler) -> dict[str, Any] | None:
    """The server that runs this store's jobs (pid, host, node, since), or None."""
    holder = scheduler.engine_holder()
    return None if holder is None or is_lone_run(holder) else holder


def is_lone_run(holder: dict[str, Any]) -> bool:
    """Whether the engine is held by a `wakeful run` that will be gone in a moment."""
    return str(holder.get("node", "")).startswith(RUN_NODE)


def _defaults(place: StoreLocation) -> dict[str, Any]:
    """What the configuration says about jobs that do not say it themselves."""
    if place.config is None:
        return {}
    from wakeful.config.loading import load

    defaults = load(place.config, needs=("defaults",)).config.defaults
    return {"timezone": defaults.timezone, "job_defaults": defaults.job_options()}


def _run(place: StoreLocation, work: Work[T], *, create: bool = False, defaults: dict[str, Any] | None = None) -> T:
    async def visit() -> T:
        if place.server:
            from wakeful.console.remote import server_at

            return await work(server_at(place.url))
        settings = defaults if defaults is not None else {"timezone": usable_zone(place)}
        scheduler = Scheduler(place.url, node=f"{RUN_NODE}{unique_name()}", **settings)
        await scheduler.open(create=create)
        try:
            return await work(scheduler)
        finally:
            await scheduler.close()

    return asyncio.run(visit())
