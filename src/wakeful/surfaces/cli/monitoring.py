"""Monitors on the command line, in words."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from wakeful.console.humanize import relative, stamp
from wakeful.console.tables import Cell
from wakeful.domains.monitors import ping_key
from wakeful.triggers import read_moment

if TYPE_CHECKING:
    from wakeful import Job, Scheduler
    from wakeful.console.store_location import StoreLocation

LOCAL = "http://127.0.0.1:7878"
_STYLES = {"up": "green", "late": "yellow", "down": "red"}


async def ping_address(scheduler: Scheduler, place: StoreLocation, job: Job) -> str | None:
    """Where a monitor is pinged: at the server's public address, or where it was last seen; None for other jobs."""
    if job.monitor is None:
        return None
    from wakeful.domains.monitors.keys import ping_url

    key = await ping_key(scheduler, job.id)
    base = public_url(place) or await scheduler.read(lambda tx: tx.facts.of(["server_url"]).get("server_url"))
    return None if key is None else ping_url(base or LOCAL, key)


def public_url(place: StoreLocation) -> str | None:
    if place.config is None:
        return None
    from wakeful.config.loading import load
    from wakeful.config.reading import ConfigError

    try:
        return load(place.config, needs=("server",)).config.server.public_url
    except ConfigError:  # `wakeful check` reports its mistakes; the server's own address is stored
        return None


def monitor_data(job: Job, url: str | None) -> dict[str, Any]:
    """The job as plain data, with where it is pinged."""
    shown = job.to_dict()
    return shown if job.monitor is None else {**shown, "monitor": {**job.monitor, "ping_url": url}}


def state_cell(state: str) -> Cell:
    """new, up, late, down or paused, in its colour."""
    return Cell(state, _STYLES.get(state, ""))


def monitor_facts(job: Job, url: str | None, now: int, zone: tzinfo) -> list[tuple[str, str | Cell]]:
    """What there is to say about a monitor; nothing about other jobs."""
    monitor = job.monitor
    if monitor is None:
        return []
    facts: list[tuple[str, str | Cell]] = [("ping", url or "")]
    facts += [("state", state_cell(monitor["state"]))]
    for name, label in (
        ("last_ping_at", "last ping"),
        ("expected_at", "expected"),
        ("deadline", "down at"),
        ("down_since", "down since"),
    ):
        if monitor[name] is not None and not (name == "deadline" and monitor["state"] == "down"):
            ms = read_moment(monitor[name], name)
            facts += [(label, f"{stamp(ms, zone)}, {relative(ms, now)}")]
    return facts
