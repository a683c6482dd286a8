"""Opening a store for one command, and closing it again in every case.

Reading never creates a store. Commands work on it whether or not a server runs; a running server notices by itself.

Beside it: the zone of times that name none, which is `defaults.timezone` of the configuration beside a store, else the
system's; and who acts at this terminal.
"""

from __future__ import annotations

import asyncio
import getpass
import shlex
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wakeful import ids
from wakeful.clock import SystemClock
from wakeful.console.failures import say_aside
from wakeful.console.humanize import zone_named, zone_of_trigger
from wakeful.console.store_location import CONFIG, StoreLocation
from wakeful.errors import InvalidSetting, InvalidTrigger, StoreMissing, StoreNotFound
from wakeful.kernel.cluster.nodes import LONE_RUN
from wakeful.kernel.context import Rights
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.rules.undoing import UNDO_MS
from wakeful.scheduler import Scheduler
from wakeful.store.process_identity import unique_name
from wakeful.triggers import from_ms, settled_zone, system_zone, zone_name

if TYPE_CHECKING:
    from wakeful.kernel.model.run import Run


def default_zone(place: StoreLocation) -> str:
    """Its name; InvalidSetting where the configuration gives something else."""
    try:
        return settled_zone(zone_name(place.timezone), system_zone())
    except InvalidTrigger:
        raise InvalidSetting(
            f"{place.config}: defaults.timezone must be a time zone such as Europe/Berlin, or local, "
            f"not {place.timezone!r:.60}."
        ) from None


def usable_zone(place: StoreLocation) -> str:
    """The same for commands that only look: a mistake in the configuration does not keep anyone from looking."""
    try:
        return default_zone(place)
    except InvalidSetting:
        return system_zone()


def shown_zone(place: StoreLocation) -> tzinfo:
    """The zone that listings use."""
    return zone_named(usable_zone(place))


async def zones_of_runs(scheduler: Scheduler, runs: Iterable[Run], place: StoreLocation) -> dict[str, tzinfo]:
    """The zone of each run's job, by the job's id; a removed job keeps the zone it had."""
    numbers = {parsed[1]: run.job_id for run in runs if (parsed := ids.decode(run.job_id)) is not None}
    default = shown_zone(place)
    found = await scheduler.read(lambda tx: tx.jobs.definitions(sorted(numbers)))
    own = {numbers[number]: zone_of_trigger(trigger_of(job.trigger), default) for number, job in found.items()}
    return {job_id: own.get(job_id, default) for job_id in numbers.values()}


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


def user_name() -> str:
    """The person at this terminal, as far as the system knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def rights_here(scheduler: Scheduler | None = None) -> Rights:
    """A user who can open the store may do everything. With a scheduler, all of it is recorded as one action."""
    action = scheduler.server_side.new_action() if scheduler is not None else None
    return Rights(user_name(), admin_kinds=True, priority=True, via="cli", action=action)


def say_undo(action: str | None) -> None:
    """How what was just done can be undone."""
    if action is not None:
        say_aside(f"undo within {UNDO_MS // 60_000} minutes: wakeful undo {action}")
