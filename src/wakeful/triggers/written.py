"""Triggers as people write them: the long form of `to_data`, or a short one named by its rhythm.

{"type": "every", "interval": "6h"}      {"every": "6h"}
{"type": "cron", "expression": "0 9 * * 1-5", "tz": "Europe/Berlin"}      {"cron": "0 9 * * 1-5", "tz": …}
{"ping": true, "every": "24h", "grace": "1h"}
{"interval": "5m"}      {"at": "2026-01-01T09:00:00Z"}      {"after": "backup", "on": "failure"}      {"manual": true}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wakeful.errors import InvalidTrigger
from wakeful.triggers.base import Trigger
from wakeful.triggers.data import trigger_from_data
from wakeful.triggers.fields import BY_WORD, PING


def trigger_as_written(data: object) -> Trigger:
    """The trigger of either form; InvalidTrigger says what is missing or too much."""
    if not isinstance(data, Mapping):
        raise InvalidTrigger(f'A trigger is a map such as {{"every": "6h"}}, not {data!r:.40}.')
    given: dict[str, Any] = {str(key): value for key, value in data.items() if value is not None}
    if "type" in given:
        if given["type"] == "ping" and isinstance(given.get("schedule"), Mapping):
            given["schedule"] = trigger_as_written(given["schedule"])
        return trigger_from_data(given)
    if "ping" in given:
        return _ping(given)
    words = [word for word in BY_WORD if word in given]
    if len(words) != 1:
        several = f"{words[0]} and {words[1]} are two triggers: give one" if words else "A trigger says when: give one"
        raise InvalidTrigger(f"{several} of {', '.join((*BY_WORD, 'ping'))}.")
    rhythm = BY_WORD[words[0]]
    value = given.pop(rhythm.word)
    if rhythm.value is not None:
        return trigger_from_data({"type": rhythm.type, rhythm.value: value, **given})
    rhythm.field.read(rhythm.word, value)
    return trigger_from_data({"type": rhythm.type, **given})


def _ping(given: dict[str, Any]) -> Trigger:
    """A schedule that says when pings are expected."""
    PING.read("ping", given["ping"])
    grace = {"grace": given["grace"]} if "grace" in given else {}
    rest = {key: value for key, value in given.items() if key not in ("ping", "grace")}
    return trigger_from_data({"type": "ping", **({"schedule": trigger_as_written(rest)} if rest else {}), **grace})
