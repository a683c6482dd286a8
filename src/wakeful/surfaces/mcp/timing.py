"""When, as tools are told it: in words, as a cron expression, an interval or a time."""

from __future__ import annotations

from typing import Any

from wakeful.errors import InvalidTrigger
from wakeful.surfaces.mcp.arguments import Schema, text, whole
from wakeful.triggers import Trigger, trigger_from_data
from wakeful.triggers.fields import trigger_as_written
from wakeful.triggers.sentences import read_sentence

RHYTHMS = ("when", "cron", "every", "at")
BESIDE = ("tz", "until", "max_runs")
FIELDS: dict[str, Schema] = {
    "when": text("A schedule in words: weekdays at 9am, every 2 hours, tomorrow at 9, in 20 minutes."),
    "cron": text("A cron expression, such as 0 9 * * 1-5."),
    "every": text("A fixed rate, such as 90m, 6h or 1d.", most=40),
    "at": text("One time, as ISO 8601: 2026-12-24T18:00:00Z.", most=60),
    "tz": text("The time zone of the schedule, such as Europe/Berlin.", most=100),
    "until": text("No start after this time, as ISO 8601.", most=60),
    "max_runs": whole("Stop after this many runs.", 1, 1_000_000),
}


def read_timing(given: dict[str, Any], now: int, zone: str, known: Trigger | None = None) -> Trigger | None:
    """The trigger; with `known`, what is not said stays, and None means that nothing changes."""
    words = [word for word in RHYTHMS if word in given]
    beside = {name: given[name] for name in BESIDE if name in given}
    if len(words) > 1:
        raise InvalidTrigger(f"{words[0]} and {words[1]} are two schedules: give one of {', '.join(RHYTHMS)}.")
    if not words:
        if known is None:
            raise InvalidTrigger(f'Say when: give one of {", ".join(RHYTHMS)}, such as "when": "weekdays at 9am".')
        return trigger_from_data({**known.to_data(), **beside}) if beside else None
    if words[0] != "when":
        return trigger_as_written({words[0]: given[words[0]], **beside})
    found = read_sentence(given["when"], now, zone, given.get("tz"))
    further = {name: value for name, value in beside.items() if name != "tz"}
    return trigger_from_data({**found.to_data(), **further}) if further else found
