"""Where a message goes: to a connector by name, or to the connector through which a person last wrote. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LAST, NOWHERE = "last", "none"


class Interaction(NamedTuple):
    """A person wrote through a connector."""

    agent: str  # empty: to no agent in particular
    connector: str
    sender: str
    at: int
    id: int


class DeliveryRoute(NamedTuple):
    """A connector and who it is for there; or why there is none."""

    connector: str | None
    recipient: str | None = None
    reason: str | None = None


def route(to: str, agent: str | None, names: Sequence[str], interactions: Sequence[Interaction]) -> DeliveryRoute:
    """Choose. `names`: the connectors there are, in the order in which they were registered."""
    if to != LAST:
        known = to in names
        return DeliveryRoute(to, None, None if known else f"no connector named {to} is registered")
    usable = [item for item in interactions if item.connector in names]
    own = [item for item in usable if agent is not None and item.agent == agent]
    for found in (own, usable):
        if found:
            latest = max(found, key=lambda item: (item.at, item.id))
            return DeliveryRoute(latest.connector, latest.sender)
    if names:
        return DeliveryRoute(names[0])
    return DeliveryRoute(None, None, "no person has written yet and no connector is registered: add one to connectors")
