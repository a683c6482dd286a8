"""The zone of times that name none: `defaults.timezone` of the configuration beside a store, else the system's."""

from __future__ import annotations

from datetime import tzinfo

from wakeful.cli.place import Place
from wakeful.cli.words import zone_named
from wakeful.errors import InvalidSetting, InvalidTrigger
from wakeful.triggers import settled_zone, system_zone, zone_name


def default_zone(place: Place) -> str:
    """Its name; InvalidSetting where the configuration gives something else."""
    try:
        return settled_zone(zone_name(place.timezone), system_zone())
    except InvalidTrigger:
        raise InvalidSetting(
            f"{place.config}: defaults.timezone must be a time zone such as Europe/Berlin, or local, "
            f"not {place.timezone!r:.60}."
        ) from None


def usable_zone(place: Place) -> str:
    """The same for commands that only look: a mistake in the configuration does not keep anyone from looking."""
    try:
        return default_zone(place)
    except InvalidSetting:
        return system_zone()


def shown_zone(place: Place) -> tzinfo:
    """The zone that listings use."""
    return zone_named(usable_zone(place))
