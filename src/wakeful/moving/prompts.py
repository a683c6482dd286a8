"""Jobs that Open Alice and OpenClaw keep in a `jobs.json`, as schedules of an agent."""

from __future__ import annotations

from typing import Any

from wakeful.moving.naming import slug
from wakeful.moving.units import written
from wakeful.triggers import iso

EVERY = {"main": "main", "isolated": "isolated"}


class NoSchedule(Exception):
    """A job whose times cannot be mapped; the reason, as a sentence without its end."""


def timing(schedule: dict[str, Any]) -> dict[str, Any]:
    """When a job is due: `at`, `every` or `cron`, in the shapes of both programs."""
    kind = schedule.get("kind")
    if kind == "at" and isinstance(schedule.get("at"), str):
        return {"at": schedule["at"]}
    if kind == "at" and _is_ms(schedule.get("atMs")):
        return {"at": iso(schedule["atMs"])}
    if kind == "every" and isinstance(schedule.get("every"), str):
        return {"every": _span(schedule["every"])}
    if kind == "every" and _is_ms(schedule.get("everyMs")):
        anchor: Any = schedule.get("anchorMs")
        return {"every": written(schedule["everyMs"]), **({"anchor": iso(anchor)} if _is_ms(anchor) else {})}
    expression = schedule.get("cron", schedule.get("expr"))
    if kind == "cron" and isinstance(expression, str):
        zone, stagger = schedule.get("tz"), schedule.get("staggerMs")
        found: dict[str, Any] = {"cron": expression}
        if isinstance(zone, str) and zone:
            found["timezone"] = zone
        if _is_ms(stagger) and stagger:
            found["stagger"] = written(stagger)
        return found
    raise NoSchedule(f"its schedule of kind {kind!r:.40} is not known")


def _is_ms(value: Any) -> bool:
    return type(value) is int and 0 <= value < 253_402_300_800_000


def _span(text: str) -> str | float:
    """`1h30m` and the like."""
    total, number = 0, ""
    for sign in text.strip():
        if sign.isdecimal() and sign.isascii() and len(number) < 9:
            number += sign
        elif number and sign in "hms":
            total += int(number) * {"h": 3_600_000, "m": 60_000, "s": 1000}[sign]
            number = ""
        else:
            raise NoSchedule(f"its interval {text!r:.40} cannot be read")
    if number or not total:
        raise NoSchedule(f"its interval {text!r:.40} cannot be read")
    return written(total)


def job_name(job: dict[str, Any], number: int) -> str:
    """What to call a schedule: its name, else its id."""
    named = job.get("name") if isinstance(job.get("name"), str) else job.get("id")
    return slug(str(named or f"job-{number}").lower(), f"job-{number}")[:50]
