"""Events: what happened, in streams that anyone may follow.

Events are stored in the transaction that causes them, one row per stream and commit. Each has a number in its stream
that only goes up.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.store.records import EventGroup
from wakeful.triggers.moments import from_ms, iso, to_ms


class Event(NamedTuple):
    """Something that happened, in one stream."""

    id: int  # of the group it was stored with
    stream: str
    seq: int  # its number in the stream
    at: datetime
    type: str
    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as it travels."""
        at = iso(to_ms(self.at))
        return {"stream": self.stream, "seq": self.seq, "at": at, "type": self.type, "data": self.data}


Listener = Callable[[Event], None] | Callable[[Event], Awaitable[None]]


#: The streams there are; domains add theirs.
STREAMS: dict[str, None] = dict.fromkeys(("run", "job", "alert", "node", "heartbeat", "delivery", "workflow"))
#: Fields that hold ids, which are stored as numbers, and the prefix people see; domains add theirs.
ID_FIELDS = {"run": "run", "job_id": "job", "alert": "alr"}
_ABOUT_APPROVAL = {"approval_needed": ("question",), "approved": ("by", "note"), "rejected": ("by", "note")}


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
