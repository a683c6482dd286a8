"""When a schedule runs, as `/api/schedule` says it: a trigger's long form in camelCase, with intervals in minutes."""

from __future__ import annotations

from typing import Any

from wakeful.errors import InvalidTrigger, SchedulerError, TooOften
from wakeful.kernel.rules.policy import limit_words
from wakeful.triggers import Trigger, iso, trigger_from_data
from wakeful.triggers.durations import interval_ms
from wakeful.triggers.fields import BESIDE, RHYTHMS

MINUTE_MS = 60_000
_NEEDS = {
    rhythm.type: "intervalMinutes" if rhythm.value == "interval" else rhythm.value
    for rhythm in RHYTHMS
    if rhythm.value is not None
}
_ELSEWHERE = ("tz", "grace")  # the zone has a name of its own, and monitors are no schedules
_OWN_START = {"interval": "start", "every": "anchor"}  # counted from when it was made, unless given


def camel(name: str) -> str:
    """A name as the wire has it."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


MODIFIERS = {camel(name): name for name in BESIDE if name not in _ELSEWHERE}
"""What may be given besides the type, and the name of each in a trigger."""


def read_timing(timing: dict[str, Any], now: int, limit: int | None) -> Trigger:
    """The trigger behind `{"type": "cron", "expression": "0 9 * * 1-5"}` and the like.

    An interval runs for the first time when it has passed, and from then on so long after each run ended.
    """
    kind = "once" if timing.get("type") == "at" else timing.get("type")
    needed = _NEEDS.get(str(kind))
    if needed is None:
        message = f"schedule.type is one of cron, interval, once, after and when, not {timing.get('type')!r:.60}."
        raise InvalidTrigger(message, "schedule.type")
    if timing.get(needed) is None:
        raise InvalidTrigger(f'A schedule of type "{kind}" needs "{needed}".', f"schedule.{needed}")
    for name in set(_NEEDS.values()) - {needed}:
        if timing.get(name) is not None:
            raise InvalidTrigger(f'A schedule of type "{kind}" has no "{name}".', f"schedule.{name}")
    given = {MODIFIERS[key]: value for key, value in timing.items() if key in MODIFIERS and value is not None}
    data = {"type": kind, **given, **({"tz": timing["timezone"]} if timing.get("timezone") else {})}
    if needed != "intervalMinutes":
        return trigger_from_data({**data, needed: timing[needed]})
    minutes = timing["intervalMinutes"]
    if limit and minutes * MINUTE_MS < limit:
        raise TooOften(limit_words(limit), "schedule.intervalMinutes")
    if kind == "interval":
        data = {"start": iso(now + interval_ms(minutes * 60)), **data}
    return trigger_from_data({**data, "interval": minutes * 60})


def timing_of(trigger: Trigger, zone: str) -> dict[str, Any]:
    """The same the other way round; the zone only where it is not the server's own."""
    stored = trigger.to_data()
    found: dict[str, Any] = {"type": trigger.type}
    for name in ("expression", "at", "job"):
        if name in stored:
            found[name] = stored[name]
    if "interval" in stored:
        minutes = interval_ms(stored["interval"]) / MINUTE_MS
        found["intervalMinutes"] = int(minutes) if minutes.is_integer() else minutes
    for key, name in MODIFIERS.items():
        if stored.get(name) is not None and name != _OWN_START.get(trigger.type):
            found[key] = stored[name]
    tz = stored.get("tz")
    return {**found, "timezone": tz} if tz and tz != zone else found


def is_same(timing: dict[str, Any], stored: Trigger, now: int, zone: str) -> bool:
    """Whether the timing says what is stored already: then nothing moves, least of all the start of an interval."""
    own_start = _OWN_START.get(stored.type)
    if own_start is not None and timing.get(own_start) is not None:
        return False
    try:
        wanted = read_timing(timing, now, None)
    except SchedulerError:
        return False  # whoever reads it next says what is wrong
    return timing_of(wanted.resolved(now, zone), zone) == timing_of(stored, zone)
