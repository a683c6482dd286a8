"""Monitors on the command line: from options to a trigger, and from a monitor to words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from wakeful.console.failures import WrongUse
from wakeful.console.tables import Cell
from wakeful.console.words import relative, stamp
from wakeful.domains.monitors import MONITOR, ping_key
from wakeful.surfaces.cli.definition import Definition, trigger_data
from wakeful.surfaces.cli.fields import OF_KINDS
from wakeful.surfaces.cli.typed import duration
from wakeful.triggers import read_moment
from wakeful.triggers.fields import BY_WORD

if TYPE_CHECKING:
    from wakeful import Job, Scheduler
    from wakeful.console.place import Place

__all__ = ["MONITOR", "monitor_data", "monitor_facts", "ping_address", "refuse_beside_ping", "state_cell", "when_data"]

LOCAL = "http://127.0.0.1:7878"
_STYLES = {"up": "green", "late": "yellow", "down": "red"}


def refuse_beside_ping(definition: Definition, argv: list[str] | None) -> None:
    """A monitor runs nothing."""
    if argv is not None:
        raise WrongUse("--ping and a command after -- do not go together: a monitor runs nothing here.")
    others = (field for kind, fields in OF_KINDS.items() if kind != MONITOR for field in fields)
    for field in (*others, BY_WORD["at"].field, BY_WORD["after"].field):
        if field.flag is not None and field.name in definition:
            raise WrongUse(f"{field.option} does not go with --ping: a monitor has a schedule and a grace.")


def when_data(
    wanted: Definition, now: datetime, zone: str, old: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The trigger as plain data, a monitor's or another; None if no option about it was given."""
    was_ping = old is not None and old["type"] == "ping"
    if "ping" not in wanted and not was_ping:
        if "grace" in wanted:
            raise WrongUse("--grace goes with --ping: how late a ping may be.")
        return trigger_data(wanted, now, zone, old)
    if old is not None and not was_ping:
        raise WrongUse("A job that runs something cannot become a monitor: add another one with --ping.")
    schedule = trigger_data(wanted, now, zone, old["schedule"] if old is not None else None)
    if old is not None and schedule is None and "grace" not in wanted:
        return None
    grace = duration("--grace", wanted["grace"]) if "grace" in wanted else (old or {}).get("grace", "1h")
    return {"type": "ping", "schedule": schedule or (old or {})["schedule"], "grace": grace}


async def ping_address(scheduler: Scheduler, place: Place, job: Job) -> str | None:
    """Where a monitor is pinged: at the server's public address, or where it was last seen; None for other jobs."""
    if job.monitor is None:
        return None
    from wakeful.domains.monitors.keys import ping_url

    key = await ping_key(scheduler, job.id)
    base = public_url(place) or await scheduler.look(lambda tx: tx.facts.of(["server_url"]).get("server_url"))
    return None if key is None else ping_url(base or LOCAL, key)


def public_url(place: Place) -> str | None:
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
