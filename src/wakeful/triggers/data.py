"""Triggers from plain data: the other way of `to_data`."""

from __future__ import annotations

from typing import Any, NoReturn

from wakeful.errors import InvalidTrigger
from wakeful.triggers.base import Trigger
from wakeful.triggers.fields import BY_TYPE, Rhythm, keyword
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
