"""The event bus: what happened, for listeners. Listeners cannot change anything.

Events are stored in the transaction that causes them, one row per stream and commit. Each has a number in its stream
that only goes up. A listener is called after the commit; one that fails is logged and nothing else.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.store.records import EventGroup
from wakeful.triggers.moments import from_ms

log = logging.getLogger("wakeful.events")


class Event(NamedTuple):
    """Something that happened, in one stream."""

    id: int  # of the group it was stored with
    stream: str
    seq: int  # its number in the stream
    at: datetime
    type: str
    data: dict[str, Any]


Listener = Callable[[Event], None]


#: The streams there are; domains add theirs.
STREAMS: dict[str, None] = dict.fromkeys(("run", "job", "alert", "node", "heartbeat", "delivery", "workflow"))
#: Fields that hold ids, which are stored as numbers, and the prefix people see; domains add theirs.
ID_FIELDS = {"run": "run", "job_id": "job", "alert": "alr"}
_ABOUT_APPROVAL = {"approval_needed": ("question",), "approved": ("by", "note"), "rejected": ("by", "note")}


class Bus:
    """Notifies listeners of what was committed."""

    def __init__(self) -> None:
        self._listeners: list[tuple[str | None, Listener]] = []

    def subscribe(self, listener: Listener, stream: str | None = None) -> Callable[[], None]:
        """Listen to one stream or to all; the answer ends the subscription."""
        entry = (stream, listener)
        self._listeners.append(entry)

        def unsubscribe() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return unsubscribe

    def notify(self, groups: list[EventGroup]) -> None:
        if not self._listeners:
            return
        for group in groups:
            for event in events_of(group):
                for stream, listener in list(self._listeners):
                    if stream in (None, event.stream):
                        _call(listener, event)


def _call(listener: Listener, event: Event) -> None:
    try:
        listener(event)
    except Exception:
        log.exception("an event listener failed on %s %s", event.stream, event.type)


def events_of(group: EventGroup) -> list[Event]:
    """The single events of a stored group."""
    bodies: list[Any] = json.loads(group.body)
    first = group.seq - len(bodies) + 1
    at = from_ms(group.at)
    read = [_by_name(group.stream, body) if isinstance(body, list) else dict(body) for body in bodies]
    return [
        Event(group.id, group.stream, first + number, at, str(fields.pop("type")), _shown(fields))
        for number, fields in enumerate(read)
    ]


def _shown(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields as people and programs see them: ids as text."""
    for name in fields.keys() & ID_FIELDS.keys():
        if isinstance(fields[name], int):
            fields[name] = ids.encode(ID_FIELDS[name], fields[name])
    return fields


def _by_name(stream: str, body: list[Any]) -> dict[str, Any]:
    """An event as version 0.1 stored it, by position."""
    kind = str(body[0])
    if stream == "run":
        names = ("type", "run", "job_id", *_ABOUT_APPROVAL.get(kind, ("reason" if kind == "started" else "outcome",)))
    elif stream == "job":
        names = ("type", "job_id", "job", "count" if body[1] is None else "revision")
    else:
        names = ("type", "alert", "kind", "message")
    return {name: value for name, value in zip(names, body, strict=False) if value is not None}
