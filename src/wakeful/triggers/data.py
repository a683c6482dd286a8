"""Triggers from data: from what `to_data` gives, and as people write them, in a long or a short form.

{"type": "every", "interval": "6h"}      {"every": "6h"}
{"type": "cron", "expression": "0 9 * * 1-5", "tz": "Europe/Berlin"}      {"cron": "0 9 * * 1-5", "tz": …}
{"ping": true, "every": "24h", "grace": "1h"}
{"interval": "5m"}      {"at": "2026-01-01T09:00:00Z"}      {"after": "backup", "on": "failure"}      {"manual": true}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from wakeful.errors import InvalidTrigger
from wakeful.triggers.base import Trigger
from wakeful.triggers.fields import BY_TYPE, BY_WORD, PING, Rhythm, keyword
from wakeful.triggers.worded import Worded

_ALSO = {"at": "once"}


def trigger_from_data(data: dict[str, Any]) -> Trigger:
    """The trigger of `{"type": "every", "interval": "5m"}` and the like; unknown keys are refused by name."""
    kind = _kind(data)
    rhythm = BY_TYPE[_ALSO.get(kind, kind)]
    value, beside = rhythm.value, rhythm.beside
    if value is not None and value not in data:
        raise InvalidTrigger(f'A trigger of type "{kind}" needs "{value}".', value)
    options: dict[str, Any] = {}
    for name, said in data.items():
        if name == value or name in beside:
            options[keyword(name)] = said
        elif name != "type":
            refuse_beside(rhythm, str(name), kind)
    if isinstance(options.get("schedule"), dict):
        options["schedule"] = trigger_from_data(options["schedule"])
    made = rhythm.make(**options)
    return made.plain() if isinstance(made, Worded) else made


def refuse_beside(rhythm: Rhythm, name: str, kind: str = "") -> NoReturn:
    """InvalidTrigger: the rhythm does not take this."""
    known = [*([rhythm.value] if rhythm.value is not None else []), *rhythm.beside]
    raise InvalidTrigger(f'A trigger of type "{kind or rhythm.type}" has no "{name:.40}"{_nearest(name, known)}', name)


def _kind(data: object) -> str:
    kind = data.get("type") if isinstance(data, dict) else None
    if isinstance(kind, str) and (kind in BY_TYPE or kind in _ALSO):
        return kind
    raise InvalidTrigger(f'A trigger needs a "type", one of {", ".join(BY_TYPE)}; not {kind!r:.40}.', "type")


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # only when something is wrong

    near = get_close_matches(name, known, 1)
    return f': did you mean "{near[0]}"?' if near else f": it takes {', '.join(known) or 'nothing else'}."


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
