"""Which events a consumer has reserved, as its author wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wakeful.domains.workflows.authoring import Consumer, Event
from wakeful.domains.workflows.failures import LogicError, shown


def reservations(consumer: Consumer, given: Any) -> dict[str, list[str]]:
    """What prepare reserved, by topic; LogicError where it cannot be reserved."""
    if not isinstance(given, Mapping) or not all(isinstance(events, list | tuple) for events in given.values()):
        message = f"reserve maps topics to lists of event ids, as in {{'mail': [mail.id]}}, and is {shown(given)}."
        raise LogicError(message)
    unknown = sorted(shown(topic) for topic in set(given) - set(consumer.subscribes))
    if unknown:
        message = f"{consumer.name} reserved events of {unknown[0]}, which it does not subscribe to."
        raise LogicError(message)
    for event in (event for events in given.values() for event in events if not isinstance(event, str)):
        what = "an Event" if isinstance(event, Event) else shown(event)
        message = f"{consumer.name} reserved {what}, which is no id of an event: give the `id` of what peek found."
        raise LogicError(message)
    return {topic: list(events) for topic, events in given.items()}
