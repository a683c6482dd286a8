"""The trigger that the parts of a sentence make."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from wakeful.triggers.base import Trigger
from wakeful.triggers.cron import Cron
from wakeful.triggers.durations import UNITS, interval_words
from wakeful.triggers.every import Every
from wakeful.triggers.external import Chat, Manual, Webhook
from wakeful.triggers.interval import Interval
from wakeful.triggers.moments import FIRST_SECOND, LAST_MS, from_ms
from wakeful.triggers.once import Once
from wakeful.triggers.ping import Ping
from wakeful.triggers.sentences.expressions import clock_text, expression, refused
from wakeful.triggers.sentences.times import OUT_OF_REACH, TimeExpression, settled
from wakeful.triggers.zones import settled_zone, system_zone

_EXTERNAL: dict[str, type[Trigger]] = {"webhook": Webhook, "chat": Chat, "manual": Manual}
_BOUNDS = frozenset(("hours_only", "except", "start", "until", "max_runs", "times", "stagger", "jitter", "tz"))
_RHYTHM = frozenset(("pace", "daily"))
_SAME = {"each_dates": "dates", "times": "max_runs"}  # said in another way, which may not go with everything
_TIMES = frozenset(("clocks", "once", "pace", "daily", "part", "marks", "days", "dates", "month_day", "hours"))


class Present:
    """The present and the default zone that a sentence is read with; either may be unknown."""

    __slots__ = ("now", "used", "zone")

    def __init__(self, now: int | None, zone: str | None, own: str | None) -> None:
        self.now = now
        self.zone = settled_zone(own, system_zone()) if own else zone
        self.used = False  # whether the default zone decided which moment is meant

    def settled(self, said: TimeExpression) -> datetime:
        ms = settled(said, self.now, self.zone)
        self.used = self.used or said.on_the_wall
        if not FIRST_SECOND * 1000 <= ms < LAST_MS:
            raise refused(OUT_OF_REACH)
        return from_ms(ms)


def make(parts: Mapping[str, Any], now: int | None, zone: str | None) -> Trigger:
    """The trigger; InvalidTrigger says which part is missing or too much."""
    if "external" in parts:
        return _external(parts)
    for name, plain in _SAME.items():
        if name in parts and plain in parts:
            raise refused("says the same thing twice: say it once.")
        parts = {**parts, plain: parts[name]} if name in parts else parts
    present = Present(now, zone, parts.get("tz"))
    rhythm = frozenset(parts) - _BOUNDS - {"report", "grace", "anchor", "each_dates"}
    options = _options(parts, present)
    trigger = _timed(rhythm, parts, present, options)
    if "report" in parts:
        return Ping(trigger, timedelta(milliseconds=parts["grace"]) if "grace" in parts else "1h")
    if "grace" in parts:
        raise refused('has a grace, which goes with "expected to report in …".')
    return trigger


def _timed(rhythm: frozenset[str], parts: Mapping[str, Any], present: Present, options: dict[str, Any]) -> Trigger:
    """Which trigger it is, by the parts that say its rhythm."""
    if "anchor" in parts and not rhythm <= _RHYTHM:
        raise refused('counts from a moment, which goes with a rhythm such as "every 2 hours since 2026-01-05 09:00".')
    if not rhythm & _TIMES and not rhythm & {"cron", "pause", "window"}:
        raise refused("says no time.")
    if rhythm == {"cron"}:
        return Cron(parts["cron"], **_zoned(options, parts, present))
    if rhythm == {"pause"}:
        return Interval(timedelta(milliseconds=parts["pause"]), **_zoned(options, parts, present))
    if rhythm in ({"pace"}, {"daily"}):
        anchor = present.settled(parts["anchor"]) if "anchor" in parts else None
        return Every(timedelta(milliseconds=parts.get("pace", UNITS["d"])), anchor, **_zoned(options, parts, present))
    if rhythm in ({"once"}, {"clocks"}):
        if parts.get("times", 1) > 1:
            raise refused("has one time for several runs: say every day, or which days.")
        at = present.settled(_single(parts))
        return Once(at, **_zoned(options, parts, present))
    if parts.get("pace", 0) % UNITS["d"] == 0 and "pace" in parts:
        raise refused(f"has days that cron cannot count: {_counted(parts)}")
    if rhythm & {"cron", "pause", "once"}:
        raise refused("says two schedules: say one of them.")
    return Cron(expression(parts), **_zoned(options, parts, present))


def _single(parts: Mapping[str, Any]) -> TimeExpression:
    if "once" in parts:
        once: TimeExpression = parts["once"]
        return once
    if len(parts["clocks"]) > 1:
        raise refused("has several times of no day: say every day, or which days.")
    return TimeExpression(clock=parts["clocks"][0].ms)


def _counted(parts: Mapping[str, Any]) -> str:
    rhythm = interval_words(parts["pace"], every=True)
    once = parts["once"].clock if "once" in parts else 9 * UNITS["h"]
    time = clock_text(parts["clocks"][0].ms if "clocks" in parts else once)
    return f'say from when it counts, such as "every {rhythm} since 2026-01-05 {time}".'


def _zoned(options: dict[str, Any], parts: Mapping[str, Any], present: Present) -> dict[str, Any]:
    """With its own zone, or with the default one where that decided what is meant: then it is stored, too."""
    name = parts.get("tz") or (present.zone if present.used else None)
    return {**options, "tz": name} if name else options


def _options(parts: Mapping[str, Any], present: Present) -> dict[str, Any]:
    options: dict[str, Any] = {name: parts[name] for name in ("max_runs", "jitter") if name in parts}
    options |= {name: present.settled(parts[name]) for name in ("start", "until") if name in parts}
    if "stagger" in parts:
        options["stagger"] = timedelta(milliseconds=parts["stagger"])
    if "except" in parts:
        options["except_dates"] = parts["except"]
    if "hours_only" in parts:
        (start, end), zone = parts["hours_only"]
        if start % 60_000 or end % 60_000:
            raise refused("has active hours with seconds: write hours and minutes.")
        options["active_hours"] = {"start": clock_text(start), "end": clock_text(end), "timezone": zone}
    return options


def _external(parts: Mapping[str, Any]) -> Trigger:
    name = parts["external"]
    if name == "ping" and set(parts) <= {"external", "grace"}:
        return Ping(None, timedelta(milliseconds=parts["grace"]) if "grace" in parts else "1h")
    if set(parts) != {"external"}:
        raise refused("says a time of something that has none: say one of them.")
    return _EXTERNAL[name]()
