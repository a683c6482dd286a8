"""The event bus: what happened, told to whoever listens, and unable to change anything.

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
    """Something that happened, in one stream: run, job or alert."""

    id: int  # of the group it was stored with
    stream: str
    seq: int  # its number in the stream
    at: datetime
    type: str
    data: dict[str, Any]


Listener = Callable[[Event], None]


_ABOUT_APPROVAL = {"approval_needed": ("question",), "approved": ("by", "note"), "rejected": ("by", "note")}


class Bus:
    """Tells listeners what was committed."""

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

    def tell(self, groups: list[EventGroup]) -> None:
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
        log.exception("a listener failed on %s %s; nothing else is affected", event.stream, event.type)


def events_of(group: EventGroup) -> list[Event]:
    """The single events of a stored group."""
    bodies: list[list[Any]] = json.loads(group.body)
    first = group.seq - len(bodies) + 1
    at = from_ms(group.at)
    return [
        Event(group.id, group.stream, first + number, at, body[0], _data(group.stream, body))
        for number, body in enumerate(bodies)
    ]


def _data(stream: str, body: list[Any]) -> dict[str, Any]:
    if stream == "run":
        about = {"run": ids.run_text(body[1]), "job_id": ids.job_text(body[2])}
        if body[0] in _ABOUT_APPROVAL:
            return {**about, **dict(zip(_ABOUT_APPROVAL[body[0]], body[3:], strict=False))}
        return about if body[3] is None else {**about, "reason" if body[0] == "started" else "outcome": body[3]}
    if stream == "job" and body[1] is None:
        return {"count": body[3]}
    if stream == "job":
        return {"job_id": ids.job_text(body[1]), "job": body[2]}
    return {"alert": ids.encode("alr", body[1]), "kind": body[2], "message": body[3]}
