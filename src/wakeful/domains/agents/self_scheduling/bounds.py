"""How far an agent may go with schedules of its own: pure functions of settings, a trigger and the time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wakeful.counting import counted
from wakeful.errors import InvalidTrigger, NotAllowed, QuotaReached
from wakeful.kernel.rules.policy import too_often
from wakeful.triggers import Trigger
from wakeful.triggers.durations import UNITS, format_interval, interval_words
from wakeful.triggers.fields import trigger_from_data
from wakeful.triggers.moments import iso

OFF, ASK, ALLOW = "off", "ask", "allow"
ONCE = "once"
OFFERED = ("cron", "every", "interval", ONCE)
"""The triggers that an agent may use: those that have times of their own."""


class Bounds(NamedTuple):
    """What an agent may do, as `self_schedule` says it."""

    mode: str = ASK
    max: int = 10
    min_interval: int = UNITS["h"]
    max_ahead: int = 90 * UNITS["d"]
    expires: int = 30 * UNITS["d"]


def bounds_of(settings: Any) -> Bounds:
    """The bounds of an agent; `settings`: a mode, a mapping, or None where it says nothing."""
    if isinstance(settings, Mapping):
        return Bounds(**{name: settings[name] for name in Bounds._fields if settings.get(name) is not None})
    return Bounds() if settings is None else Bounds(str(settings))


def refuse_off(bounds: Bounds, name: str) -> None:
    """NotAllowed where the agent may make no schedules at all."""
    if bounds.mode == OFF:
        raise NotAllowed(f"{name} may not schedule anything itself (self_schedule: off): ask a person to do it.")


def check_schedule_quota(bounds: Bounds, name: str, has: int) -> None:
    """QuotaReached where the agent has as many as it may have; those that wait for approval count."""
    if has >= bounds.max:
        most = counted(bounds.max, "schedule")
        raise QuotaReached(f"{name} has {has} of {most} of its own: remove one that is no longer needed.")


def within(trigger: Trigger, bounds: Bounds, now: int) -> Trigger:
    """The trigger with an end where it has none; a refusal says what the bound is and what would be accepted.

    `trigger` is settled: it has the zone and the anchor with which it is stored.
    """
    if trigger.type not in OFFERED:
        raise InvalidTrigger("A schedule of an agent has times: give when, cron, every or at.")
    if too_often(trigger, bounds.min_interval):
        least, most = format_interval(bounds.min_interval), interval_words(bounds.min_interval, every=True)
        raise NotAllowed(
            f"{trigger.brief()} is too often: your schedules are at least {least} apart, such as every {most}."
        )
    first = trigger.next_slot(now)
    if first is None and trigger.type == "interval":
        first = now
    if first is None:
        raise InvalidTrigger(f"{trigger.brief()} has no time that is still to come: give a later one.")
    if first > now + bounds.max_ahead:
        latest, most = iso(now + bounds.max_ahead), format_interval(bounds.max_ahead)
        raise NotAllowed(f"It would first start at {iso(first)}: the latest is {latest}, {most} ahead.")
    if trigger.type == ONCE:
        return trigger
    if first > now + bounds.expires:
        end, most = iso(now + bounds.expires), format_interval(bounds.expires)
        raise NotAllowed(
            f"It would first start at {iso(first)}, and a schedule of yours ends at {end}, {most} after you make it: "
            "start it before that, or give one time."
        )
    return _ending(trigger, now + bounds.expires)


def _ending(trigger: Trigger, latest: int) -> Trigger:
    """The trigger that ends then, or before."""
    until = getattr(trigger, "until_ms", None)
    if until is not None and until <= latest:
        return trigger
    return trigger_from_data({**trigger.to_data(), "until": iso(latest)})


def answer_until(trigger: Trigger, bounds: Bounds, now: int) -> int:
    """Until when a question about a schedule is open: its only time, or when it would end."""
    first = trigger.next_slot(now)
    if trigger.type == ONCE and first is not None:
        return first
    return min(getattr(trigger, "until_ms", None) or now + bounds.expires, now + bounds.expires)
