"""Reading server-sent events as a browser does."""

from __future__ import annotations

import itertools
import json
from contextlib import contextmanager
from typing import Any, NamedTuple


class Sent(NamedTuple):
    """One event."""

    id: str | None
    event: str
    data: Any


@contextmanager
def reading(client, **query):
    """The events of a stream, as they come; `last` is sent as Last-Event-ID."""
    headers = {"Last-Event-ID": query.pop("last")} if "last" in query else {}
    with client.stream("GET", "/api/events", params=query, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        next(lines)  # the greeting: from here on nothing is missed
        yield parsed(lines)


def parsed(lines):
    """Each event that ends with an empty line; comments are nothing."""
    event_id, name, data = None, "message", []
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "" and data:
            yield Sent(event_id, name, json.loads("\n".join(data)))
            name, data = "message", []
        elif field == "id":
            event_id = value
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)


def take(events, count):
    return list(itertools.islice(events, count))
