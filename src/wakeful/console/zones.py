"""The zone of times that name none: `defaults.timezone` of the configuration beside a store, else the system's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.console.humanize import zone_named, zone_of_trigger
from wakeful.console.store_location import StoreLocation
from wakeful.errors import InvalidSetting, InvalidTrigger
from wakeful.kernel.rules.policy import trigger_of
from wakeful.triggers import settled_zone, system_zone, zone_name

if TYPE_CHECKING:
    from wakeful.kernel.model.run import Run
    from wakeful.scheduler import Scheduler


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
