"""Triggers from plain data: the other way of `to_data`."""

from __future__ import annotations

from typing import Any

from wakeful.errors import InvalidTrigger
from wakeful.triggers.after import After
from wakeful.triggers.base import Trigger
from wakeful.triggers.cron import Cron
from wakeful.triggers.every import Every
from wakeful.triggers.external import Chat, Manual, Webhook
from wakeful.triggers.interval import Interval
from wakeful.triggers.once import Once
from wakeful.triggers.ping import Ping

_MODIFIERS = {
    "jitter": "jitter",
    "stagger": "stagger",
    "active_hours": "active_hours",
    "start": "start",
    "until": "until",
    "max_runs": "max_runs",
    "except": "except_dates",
    "tz": "tz",
}
_KINDS: dict[str, tuple[type[Trigger], tuple[str, ...], dict[str, str]]] = {
    "every": (Every, ("interval",), {"anchor": "anchor", **_MODIFIERS}),
    "interval": (Interval, ("interval",), _MODIFIERS),
    "cron": (Cron, ("expression",), _MODIFIERS),
    "once": (Once, ("at",), _MODIFIERS),
    "at": (Once, ("at",), _MODIFIERS),
    "after": (After, ("job",), {"on": "on"}),
    "webhook": (Webhook, (), {}),
    "chat": (Chat, (), {}),
    "manual": (Manual, (), {}),
    "ping": (Ping, (), {"schedule": "schedule", "grace": "grace"}),
}


def trigger_from_data(data: dict[str, Any]) -> Trigger:
    """The trigger of `{"type": "every", "interval": "5m"}` and the like; unknown keys are refused by name."""
    kind = _kind(data)
    make, needed, optional = _KINDS[kind]
    for name in needed:
        if name not in data:
            raise InvalidTrigger(f'A trigger of type "{kind}" needs "{name}".', name)
    options: dict[str, Any] = {}
    for name, value in data.items():
        if name in needed:
            options[name] = value
        elif name in optional:
            options[optional[name]] = value
        elif name != "type":
            raise InvalidTrigger(
                f'A trigger of type "{kind}" has no "{name!s:.40}"{_nearest(str(name), [*needed, *optional])}',
                str(name),
            )
    if isinstance(options.get("schedule"), dict):
        options["schedule"] = trigger_from_data(options["schedule"])
    return make(**options)


def _kind(data: object) -> str:
    kind = data.get("type") if isinstance(data, dict) else None
    if isinstance(kind, str) and kind in _KINDS:
        return kind
    raise InvalidTrigger(f'A trigger needs a "type", one of {", ".join(_KINDS)}; not {kind!r:.40}.', "type")


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # only when something is wrong

    near = get_close_matches(name, known, 1)
    return f': did you mean "{near[0]}"?' if near else f": it takes {', '.join(known) or 'nothing else'}."
